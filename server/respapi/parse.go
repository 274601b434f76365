package respapi

import (
	"bytes"
	"fmt"
	"strconv"
)

// limits are what a command can have. They bound what a connection keeps in
// memory.
type limits struct {
	args    int // how many, the name included
	bulk    int // bytes of one
	command int // bytes of all of it, or of an inline command

	stranger bool // they are of a client that has not said who it is
}

// limitsOf leave room for what clients send on their own, where an argument may
// have the usual number of bytes. No command of ours comes near.
func limitsOf(bulk int) limits { return limits{args: 64, bulk: bulk, command: 2 * bulk} }

// strangerLimits are for clients that have not said who they are. Redis has
// such too.
func strangerLimits(bulk int) limits {
	bulk = min(16<<10, bulk)
	return limits{args: 10, bulk: bulk, command: 2 * bulk, stranger: true}
}

// maxInline is the length of the longest inline command, with its line's end.
const maxInline = 64 << 10

// maxLength is how many bytes the line of a length can have: a type, a sign,
// 19 digits, and CR LF.
const maxLength = 1 + 1 + 19 + 2

// A protocolError is what is wrong with bytes that are no command. What follows
// them cannot be read either, so the connection ends. It begins with Redis'
// words.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// parse reads the first command of b: its arguments, and how many bytes it is
// long. A length of 0 means that there is more to come, and the arguments
// nothing. Without arguments the command is empty, and has no answer. The
// arguments are appended to args; they are parts of b, except in inline
// commands that have quotes.
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
		return 0, args, protocolError(fmt.Sprintf("invalid multibulk length: after * comes how many arguments there are, 1 to %d, and CR LF", l.args))
	case count > l.args && l.stranger:
		return 0, args, protocolError(fmt.Sprintf("unauthenticated multibulk length: before AUTH a command has at most %d arguments", l.args))
	case count > l.args:
		return 0, args, protocolError(fmt.Sprintf("invalid multibulk length: a command has at most %d arguments", l.args))
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
			return 0, args, protocolError(fmt.Sprintf("expected '$', got %s: an argument is a bulk string", quoteByte(rest[0])))
		}
		size, n, ok := parseLength(rest)
		switch {
		case !ok || size < 0:
			return 0, args, protocolError(fmt.Sprintf("invalid bulk length: after $ comes the length of an argument, 0 to %d, and CR LF", l.bulk))
		case size > l.bulk && l.stranger:
			return 0, args, protocolError(fmt.Sprintf("unauthenticated bulk length: before AUTH an argument has at most %d bytes", l.bulk))
		case size > l.bulk:
			return 0, args, protocolError(fmt.Sprintf("invalid bulk length: an argument has at most %d bytes", l.bulk))
		case n == 0:
			return 0, args, nil
		}
		pos += n
		end := pos + size + 2
		if end > l.command {
			return 0, args, protocolError(fmt.Sprintf("too big a command: all its arguments together have at most %d bytes", l.command))
		}
		// As much of CR LF as there is.
		for i, c := range "\r\n" {
			if at := pos + size + i; at < len(b) && b[at] != byte(c) {
				return 0, args, protocolError("invalid bulk string: after as many bytes as its length says comes CR LF")
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

// parseLength reads a line of a type, a number and CR LF. Its length is 0 where
// there is more to come. It is strict: numbers have no plus and no zeros
// before.
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
		// 18 digits are more than any limit, and fit an int64. More are too many
		// whatever they are.
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
		v64 = 1 << 30 // above every limit, also where int has 32 bits
	}
	if negative {
		v64 = -v64
	}
	return int(v64), 1 + end + 1, true
}

// parseInline reads a command that somebody typed: words, and quotes as in
// Redis.
func parseInline(b []byte, args [][]byte, l limits) (int, [][]byte, error) {
	limit := min(maxInline, l.command)
	end := bytes.IndexByte(b[:min(len(b), limit)], '\n')
	line := b[:min(len(b), limit)]
	if end >= 0 {
		line = bytes.TrimSuffix(b[:end], []byte("\r"))
	}
	// Only a part of the line can tell, so that no junk is waited for.
	if b[0] == 0x16 {
		return 0, args, protocolError("this begins as TLS does, and the server speaks none here: connect without TLS")
	}
	for _, c := range line {
		if c < ' ' && c != '\t' && c != '\r' {
			return 0, args, protocolError(fmt.Sprintf("byte %s in an inline request: one is text, any other begins with *", quoteByte(c)))
		}
	}
	if end < 0 {
		if len(b) >= limit {
			return 0, args, protocolError(fmt.Sprintf("too big inline request: a line has at most %d bytes", limit))
		}
		return 0, args, nil
	}
	args, err := splitWords(line, args, l.args)
	return end + 1, args, err
}

// splitWords splits a line into words. A word may have parts in quotes: in "…"
// \n, \r, \t, \b, \a, \xff and any character after \ stand for one byte, in '…'
// only \' does. After the closing quote the word ends.
func splitWords(line []byte, args [][]byte, most int) ([][]byte, error) {
	const unbalanced = protocolError("unbalanced quotes in request: a quote is closed, and a space follows")
	isSpace := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, nil
		}
		if len(args) == most {
			return args, protocolError(fmt.Sprintf("too many words in an inline request: there are at most %d", most))
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

// unescape reads what follows a \ in quotes, which is not empty: the byte that
// it stands for, and how many it is written with.
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

// quoteByte is a byte as one writes it in a message.
func quoteByte(c byte) string {
	if c < ' ' || c > '~' {
		return fmt.Sprintf("0x%02x", c)
	}
	return "'" + string(rune(c)) + "'"
}
