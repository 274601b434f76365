package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/firnid/firn"
)

// errFraming is the error of bytes that are not an answer to the request.
// Whatever follows them is meaningless.
var errFraming = errors.New("not an answer to the request")

// appendCommand appends a command with its arguments.
func appendCommand(b []byte, words ...string) []byte {
	head := func(kind byte, n int) { b = append(strconv.AppendInt(append(b, kind), int64(n), 10), "\r\n"...) }
	head('*', len(words))
	for _, w := range words {
		head('$', len(w))
		b = append(append(b, w...), "\r\n"...)
	}
	return b
}

// readLine reads a line: its type and the text that follows.
func readLine(r *bufio.Reader) (kind byte, text []byte, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(text) == 0 {
		return 0, nil, errFraming
	}
	return text[0], text[1:], nil
}

// readNumber reads a line of one kind that consists of a number up to most.
func readNumber(r *bufio.Reader, want byte, most int) (int, error) {
	kind, text, err := readLine(r)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil || kind != want || int(n) > most {
		return 0, errFraming
	}
	return int(n), nil
}

// readText reads a string of up to most bytes.
func readText(r *bufio.Reader, most int) ([]byte, error) {
	n, err := readNumber(r, '$', most)
	if err != nil {
		return nil, err
	}
	data := make([]byte, n+2)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	text, ok := bytes.CutSuffix(data, []byte("\r\n"))
	if !ok {
		return nil, errFraming
	}
	return text, nil
}

// maxText is the longest text of a run.
const maxText = 64

// readRuns reads up to most runs, each of its first ID, its step and its count.
// wrong is the error of an invalid ID: the rest of the answer is not read then.
func readRuns[I firn.AnyID](r *bufio.Reader, most int) (runs []firn.RunOf[I], wrong, err error) {
	n, err := readNumber(r, '*', most)
	for range n {
		if items, err := readNumber(r, '*', 3); err != nil || items != 3 {
			return nil, nil, cmp.Or(err, errFraming)
		}
		first, err := readText(r, maxText)
		if err != nil {
			return nil, nil, err
		}
		text, err := readText(r, maxText)
		if err != nil {
			return nil, nil, err
		}
		count, err := readNumber(r, ':', math.MaxInt32)
		if err != nil {
			return nil, nil, err
		}
		id, wrong := parseHex[I](string(first))
		step, badStep := strconv.ParseUint(string(text), 10, 64)
		if wrong = cmp.Or(wrong, badStep); wrong != nil {
			return nil, wrong, nil
		}
		runs = append(runs, firn.RunOf[I]{First: id, Step: step, Count: count})
	}
	return runs, nil, err
}

// requestRESP asks over RESP.
func (s *SequencerOf[I]) requestRESP(ctx context.Context, to *server, token string, n int,
	packed bool) (runs []firn.RunOf[I], err error) {
	command := "NEXTR"
	if packed {
		command = "NEXTB"
	}
	words := appendCommand(nil, command, s.name, strconv.Itoa(n))
	err = to.pool.roundTrip(ctx, token, words, func(r *bufio.Reader, refused string) (err error) {
		var wrong error
		first, err := r.Peek(1)
		switch {
		case err != nil:
		case first[0] == '-':
			var text []byte
			if _, text, err = readLine(r); err == nil {
				err = s.parseRESPError(cmp.Or(refused, string(text)), to)
			}
		case packed:
			var data []byte
			if data, err = readText(r, 16*n); err == nil {
				runs, wrong = parsePacked[I](data, n)
			}
		default:
			runs, wrong, err = readRuns[I](r, n)
		}
		if wrong != nil {
			err = s.answerErrorf(to, "%v", wrong)
		}
		return err
	})
	switch {
	case err == nil || errors.As(err, new(*Error)) || errors.As(err, new(*answerError)):
		return runs, err
	case err == errFraming:
		return nil, s.answerErrorf(to, "it is %v: use firn:// only for the address of a Firn server", err)
	}
	return nil, fmt.Errorf("client: %s: %w", nameAt(s.name, to.name), err)
}

// parseRESPError parses an error of RESP: WORD kind: detail; retry after N s.
// Errors without a kind come from something other than a Firn server, or from
// Redis's own texts for authentication.
func (s *SequencerOf[I]) parseRESPError(text string, from *server) error {
	e := &Error{Sequencer: s.name, Server: from.name, Status: http.StatusInternalServerError}
	word, rest, _ := strings.Cut(text, " ")
	kind, detail, _ := strings.Cut(rest, ": ")
	if k, known := problemKinds[Kind(kind)]; known {
		e.Kind, e.Status = Kind(kind), k.status
	} else {
		detail = rest
		switch word {
		case "NOAUTH", "WRONGPASS":
			e.Kind, e.Status = KindUnauthorized, http.StatusUnauthorized
		case "NOPERM":
			e.Kind, e.Status = KindForbidden, http.StatusForbidden
		case "TRYAGAIN", "UNAVAILABLE":
			e.Status = http.StatusServiceUnavailable
		}
	}
	if i := strings.LastIndex(detail, "; retry after "); i >= 0 {
		seconds, _ := strings.CutSuffix(detail[i+len("; retry after "):], " s")
		if e.RetryAfter = retryAfter(seconds); e.RetryAfter > 0 {
			detail = detail[:i]
		}
	}
	e.Detail = printable(detail)
	e.Hint = hintOf(e.Kind, e.Status)
	return e
}
