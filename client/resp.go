package client

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"strconv"

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
// wrong is the error of an ID, which nobody reads on after.
func readRuns[I firn.AnyID[I]](r *bufio.Reader, most int) (runs []firn.RunOf[I], wrong, err error) {
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
