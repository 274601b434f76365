package respapi

import (
	"bytes"
	"fmt"
	"strconv"
)

// limits bound the size of a command, and so the memory of a connection.
type limits struct {
	args    int    // how many, including the name
	bulk    int    // bytes of one argument
	command int    // bytes of the whole command, or of an inline command
	when    string // when they apply, for messages
}

// knownLimits returns limits with room for what client libraries send on their
// own. bulk is the size of an argument. Firn's own commands are far smaller.
func knownLimits(bulk int) limits { return limits{args: 64, bulk: bulk, command: 2 * bulk} }

// strangerLimits returns those of clients that are not authenticated, as in
// Redis.
func strangerLimits(bulk int) limits {
	bulk = min(16<<10, bulk)
	return limits{args: 10, bulk: bulk, command: 2 * bulk, when: " before AUTH"}
}

// maxInline is the length of the longest inline command, including the line
// ending.
const maxInline = 64 << 10

// maxLength is the longest line with a length: a type, 19 digits, and CR LF.
const maxLength = 1 + 19 + 2

// A protocolError reports bytes that are not a command. What follows them
// cannot be read either, so the connection ends. It begins with Redis's words.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// parse parses the first command of b and returns its length in bytes and its
// arguments. A length of 0 means that the command is incomplete, and the
// arguments then mean nothing. A command without arguments is empty, and gets
// no answer. The arguments are appended to args; they are parts of b.
func parse(b []byte, args [][]byte, l limits) (int, [][]byte, error) {
	if len(b) == 0 {
		return 0, args, nil
	}
	if b[0] != '*' {
		return parseInline(b, args, l)
	}
	count, pos, ok := parseLength(b)
	if !ok || count > l.args {
		return 0, args, protocolError(fmt.Sprintf("invalid multibulk length: * must be followed by the number of arguments, "+
			"up to %d%s, and CR LF", l.args, l.when))
	}
	if pos == 0 || count == 0 {
		return pos, args, nil
	}
	for range count {
		rest := b[pos:]
		if len(rest) == 0 {
			return 0, args, nil
		}
		if rest[0] != '$' {
			return 0, args, protocolError(fmt.Sprintf("expected '$', got %q: an argument must be a bulk string", rest[0]))
		}
		size, n, ok := parseLength(rest)
		switch {
		case !ok || size > l.bulk:
			return 0, args, protocolError(fmt.Sprintf("invalid bulk length: $ must be followed by the bytes of an argument, up "+
				"to %d%s, and CR LF", l.bulk, l.when))
		case n == 0:
			return 0, args, nil
		}
		pos += n
		end := pos + size + 2
		if end > l.command {
			return 0, args, protocolError(fmt.Sprintf("command too big: all its arguments together may have up to %d bytes",
				l.command))
		}
		// As much of CR LF as has arrived.
		for i, c := range "\r\n" {
			if at := pos + size + i; at < len(b) && b[at] != byte(c) {
				return 0, args, protocolError("invalid bulk string: CR LF must follow after exactly its length in bytes")
			}
		}
		if end > len(b) {
			return 0, args, nil
		}
		args = append(args, b[pos:pos+size])
		pos = end
	}
	return pos, args, nil
}

// parseLength parses a line of a type, a number and CR LF. Its length is 0 if
// more bytes are needed. It is strict: numbers have no sign and no leading
// zeros.
func parseLength(b []byte) (v, n int, ok bool) {
	line := b[1:min(len(b), maxLength)]
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		return 0, 0, len(line) < maxLength-1
	}
	digits, ended := bytes.CutSuffix(line[:end], []byte("\r"))
	v, err := strconv.Atoi(string(digits))
	if !ended || err != nil || len(digits) > 1 && (digits[0] < '1' || digits[0] > '9') {
		return 0, 0, false
	}
	return v, 1 + end + 1, true
}

// parseInline parses a command that a person typed: words between spaces.
func parseInline(b []byte, args [][]byte, l limits) (int, [][]byte, error) {
	limit := min(maxInline, l.command)
	end := bytes.IndexByte(b[:min(len(b), limit)], '\n')
	line := b[:min(len(b), limit)]
	if end >= 0 {
		line = bytes.TrimSuffix(b[:end], []byte("\r"))
	}
	// Check the first part of the line, so that the server does not wait for more
	// junk.
	if b[0] == 0x16 {
		return 0, args, protocolError("this is a TLS handshake, but this listener has no TLS: connect without TLS")
	}
	for _, c := range line {
		if c < ' ' && c != '\t' && c != '\r' {
			return 0, args, protocolError(fmt.Sprintf("byte %q in an inline request: an inline request is text, any other "+
				"request begins with *", c))
		}
	}
	if end < 0 {
		if len(b) >= limit {
			return 0, args, protocolError(fmt.Sprintf("too big inline request: a line may have up to %d bytes", limit))
		}
		return 0, args, nil
	}
	for word := range bytes.FieldsSeq(line) {
		if len(args) == l.args {
			return 0, args, protocolError(fmt.Sprintf("too many words in an inline request: the limit is %d", l.args))
		}
		args = append(args, word)
	}
	return end + 1, args, nil
}
