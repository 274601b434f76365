package client

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"strconv"
)

// An expectation describes a valid reply.
type expectation struct {
	count  int  // of IDs
	size   int  // of an ID, in bytes
	packed bool // IDs one after the other instead of runs
}

// A reply is a server's answer to a command.
type reply struct {
	spans  []span // if runs were requested
	packed []byte // otherwise, IDs
	fault  string // the text of an error
	err    error  // what is wrong with the IDs
}

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

// readReply reads the answer to a command. Its error means that nothing more
// can be read; if only the IDs are wrong, the error is in the reply.
func readReply(r *bufio.Reader, want expectation) (a reply, err error) {
	kind, text, err := readLine(r)
	if err != nil {
		return a, err
	}
	if kind == '-' {
		a.fault = string(text)
		return a, nil
	}
	n, err := parseLength(text)
	switch {
	case err != nil:
	case kind == '$' && want.packed:
		a.packed, a.err, err = readPacked(r, n, want)
	case kind == '*' && !want.packed && n <= want.count:
		a.spans, a.err, err = readRuns(r, n, want)
	default:
		err = errFraming
	}
	return a, err
}

// readStatus reads the answer to AUTH: the text of an error, or "".
func readStatus(r *bufio.Reader) (fault string, err error) {
	kind, text, err := readLine(r)
	switch {
	case err != nil:
	case kind == '-':
		fault = string(text)
	case kind != '+':
		err = errFraming
	}
	return fault, err
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

// parseLength parses the number in a line.
func parseLength(text []byte) (int, error) {
	u, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil {
		return 0, errFraming
	}
	return int(u), nil
}

// readHead reads a line with a number after its type.
func readHead(r *bufio.Reader) (kind byte, n int, err error) {
	kind, text, err := readLine(r)
	if err != nil {
		return 0, 0, err
	}
	n, err = parseLength(text)
	return kind, n, err
}

// readPacked reads the rest of a string of n bytes.
func readPacked(r *bufio.Reader, n int, want expectation) (data []byte, wrong, err error) {
	other := 24 - want.size
	if n != want.count*want.size && n != want.count*other {
		return nil, nil, errFraming
	}
	data = make([]byte, n+2)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, nil, err
	}
	if string(data[n:]) != "\r\n" {
		return nil, nil, errFraming
	}
	if n == want.count*other {
		wrong = widthError(other)
	}
	return data[:n], wrong, nil
}

// readRuns reads n runs, each of its first ID, its step and its count.
func readRuns(r *bufio.Reader, n int, want expectation) (spans []span, wrong, err error) {
	all := collector{count: want.count}
	for range n {
		if kind, items, err := readHead(r); err != nil || kind != '*' || items != 3 {
			return nil, nil, cmp.Or(err, errFraming)
		}
		first, err := readText(r)
		if err != nil {
			return nil, nil, err
		}
		step, err := readText(r)
		if err != nil {
			return nil, nil, err
		}
		kind, count, err := readLine(r)
		if err != nil || kind != ':' {
			return nil, nil, cmp.Or(err, errFraming)
		}
		if wrong == nil {
			wrong = all.addText(first, step, string(count), want.size)
		}
	}
	if wrong == nil {
		wrong = all.end()
	}
	return all.spans, wrong, nil
}

// maxText is the longest text of a run.
const maxText = 64

// readText reads a short string.
func readText(r *bufio.Reader) (string, error) {
	kind, n, err := readHead(r)
	if err != nil || kind != '$' || n > maxText {
		return "", cmp.Or(err, errFraming)
	}
	var buf [maxText + 2]byte
	if _, err := io.ReadFull(r, buf[:n+2]); err != nil {
		return "", err
	}
	if string(buf[n:n+2]) != "\r\n" {
		return "", errFraming
	}
	return string(buf[:n]), nil
}
