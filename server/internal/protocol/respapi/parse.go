package respapi

import (
	"bytes"
	"fmt"
)

// limits bound the size of a command, and so the memory of a connection.
type limits struct {
	args    int // how many, including the name
	bulk    int // bytes of one argument
	command int // bytes of the whole command, or of an inline command

	stranger bool // for a client that is not authenticated
}

// limitsOf returns limits with room for what client libraries send on their
// own. bulk is the size of an argument. Firn's own commands are far smaller.
func limitsOf(bulk int) limits { return limits{args: 64, bulk: bulk, command: 2 * bulk} }

// strangerLimits are for clients that are not authenticated, as in Redis.
func strangerLimits(bulk int) limits {
	bulk = min(16<<10, bulk)
	return limits{args: 10, bulk: bulk, command: 2 * bulk, stranger: true}
}

// maxInline is the length of the longest inline command, including the line
// ending.
const maxInline = 64 << 10

// maxLength is the longest line with a length: a type, a sign, 19 digits, and
// CR LF.
const maxLength = 1 + 1 + 19 + 2

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
	switch {
	case !ok || count < 0:
		return 0, args, protocolError(fmt.Sprintf("invalid multibulk length: * must be followed by the number of arguments, 1 to %d, and CR LF", l.args))
	case count > l.args && l.stranger:
		return 0, args, protocolError(fmt.Sprintf("unauthenticated multibulk length: before AUTH a command may have up to %d arguments", l.args))
	case count > l.args:
		return 0, args, protocolError(fmt.Sprintf("invalid multibulk length: a command may have up to %d arguments", l.args))
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
			return 0, args, protocolError(fmt.Sprintf("expected '$', got %s: an argument must be a bulk string", quoteByte(rest[0])))
		}
		size, n, ok := parseLength(rest)
		switch {
		case !ok || size < 0:
			return 0, args, protocolError(fmt.Sprintf("invalid bulk length: $ must be followed by the length of an argument, 0 to %d, and CR LF", l.bulk))
		case size > l.bulk && l.stranger:
			return 0, args, protocolError(fmt.Sprintf("unauthenticated bulk length: before AUTH an argument may have up to %d bytes", l.bulk))
		case size > l.bulk:
			return 0, args, protocolError(fmt.Sprintf("invalid bulk length: an argument may have up to %d bytes", l.bulk))
		case n == 0:
			return 0, args, nil
		}
		pos += n
		end := pos + size + 2
		if end > l.command {
			return 0, args, protocolError(fmt.Sprintf("command too big: all its arguments together may have up to %d bytes", l.command))
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
// more bytes are needed. It is strict: numbers have no plus and no leading
// zeros.
func parseLength(b []byte) (v, n int, ok bool) {
	line := b[1:min(len(b), maxLength)]
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		return 0, 0, len(line) < maxLength-1
	}
	if end < 2 || line[end-1] != '\r' {
		return 0, 0, false
	}
	digits := line[:end-1]
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(digits) > 1 {
		// 18 digits fit an int64 and exceed every limit. More digits are an error in
		// any case.
		return 0, 0, false
	}
	var v64 int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		v64 = v64*10 + int64(c-'0')
	}
	if v64 > 1<<30 {
		v64 = 1 << 30 // above every limit, also if int has 32 bits
	}
	if negative {
		v64 = -v64
	}
	return int(v64), 1 + end + 1, true
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
			return 0, args, protocolError(fmt.Sprintf("byte %s in an inline request: an inline request is text, any other request begins with *", quoteByte(c)))
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

// quoteByte formats a byte for a message.
func quoteByte(c byte) string {
	if c < ' ' || c > '~' {
		return fmt.Sprintf("0x%02x", c)
	}
	return "'" + string(rune(c)) + "'"
}
