package respapi

import (
	"bytes"
	"fmt"
	"strconv"
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
// no answer. The arguments are appended to args; they are parts of b, except in
// inline commands with quotes.
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

// parseInline parses a command that a person typed: words, with quotes as in
// Redis.
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
	args, err := splitWords(line, args, l.args)
	return end + 1, args, err
}

// splitWords splits a line into words. A word may have quoted parts: in "…" the
// escapes \n, \r, \t, \b, \a, \xff and \ before any other character stand for
// one byte, in '…' only \' does. The closing quote ends the word.
func splitWords(line []byte, args [][]byte, most int) ([][]byte, error) {
	const unbalanced = protocolError("unbalanced quotes in request: a quote must be closed and followed by a space")
	isSpace := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, nil
		}
		if len(args) == most {
			return args, protocolError(fmt.Sprintf("too many words in an inline request: the limit is %d", most))
		}
		start := i
		for i < len(line) && !isSpace(line[i]) && line[i] != '"' && line[i] != '\'' {
			i++
		}
		if i == len(line) || isSpace(line[i]) {
			args = append(args, line[start:i])
			continue
		}
		word := append([]byte(nil), line[start:i]...)
		for quote := byte(0); ; {
			if i == len(line) {
				if quote != 0 {
					return args, unbalanced
				}
				break
			}
			c := line[i]
			i++
			switch {
			case quote == 0 && isSpace(c):
				i--
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
				continue
			case quote == 0:
				word = append(word, c)
				continue
			case c == quote:
				if i < len(line) && !isSpace(line[i]) {
					return args, unbalanced
				}
			case c == '\\' && quote == '\'' && i < len(line) && line[i] == '\'':
				word = append(word, '\'')
				i++
				continue
			case c == '\\' && quote == '"' && i < len(line):
				var n int
				c, n = unescape(line[i:])
				word = append(word, c)
				i += n
				continue
			default:
				word = append(word, c)
				continue
			}
			break
		}
		args = append(args, word)
	}
}

// unescape reads what follows a \ in quotes, which is not empty. It returns the
// byte that the escape stands for, and the length of the escape.
func unescape(b []byte) (byte, int) {
	if b[0] == 'x' && len(b) >= 3 {
		if v, err := strconv.ParseUint(string(b[1:3]), 16, 8); err == nil {
			return byte(v), 3
		}
	}
	switch b[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	}
	return b[0], 1
}

// quoteByte formats a byte for a message.
func quoteByte(c byte) string {
	if c < ' ' || c > '~' {
		return fmt.Sprintf("0x%02x", c)
	}
	return "'" + string(rune(c)) + "'"
}
