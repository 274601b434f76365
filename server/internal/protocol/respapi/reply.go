package respapi

import (
	"strconv"
	"unicode/utf8"
)

// Answers are appended to a buffer. Types with two forms take resp3.

func appendHead(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), "\r\n"...)
}

func appendSimple(b []byte, text string) []byte {
	return append(append(append(b, '+'), text...), "\r\n"...)
}

func appendBulk[T string | []byte](b []byte, text T) []byte {
	b = append(appendHead(b, '$', len(text)), text...)
	return append(b, "\r\n"...)
}

func appendInt(b []byte, v int64) []byte {
	return append(strconv.AppendInt(append(b, ':'), v, 10), "\r\n"...)
}

func appendArray(b []byte, n int) []byte { return appendHead(b, '*', n) }

// appendMap begins a map of n pairs. In RESP2 it is an array of 2n elements.
func appendMap(b []byte, resp3 bool, n int) []byte {
	if resp3 {
		return appendHead(b, '%', n)
	}
	return appendHead(b, '*', 2*n)
}

func appendNull(b []byte, resp3 bool) []byte {
	if resp3 {
		return append(b, "_\r\n"...)
	}
	return append(b, "$-1\r\n"...)
}

// appendDouble appends a number, which in RESP2 is a bulk string.
func appendDouble(b []byte, resp3 bool, v float64) []byte {
	var scratch [32]byte
	text := strconv.AppendFloat(scratch[:0], v, 'f', -1, 64)
	if resp3 {
		return append(append(append(b, ','), text...), "\r\n"...)
	}
	return appendBulk(b, text)
}

// appendVerbatim appends a text for people.
func appendVerbatim(b []byte, resp3 bool, text []byte) []byte {
	if !resp3 {
		return appendBulk(b, text)
	}
	b = append(appendHead(b, '=', len("txt:")+len(text)), "txt:"...)
	return append(append(b, text...), "\r\n"...)
}

// maxError is the maximum length of an error's text in bytes.
const maxError = 1024

// appendError appends an error. Its text may contain client input: line breaks
// and bytes that are not text become question marks.
func appendError(b []byte, code, text string) []byte {
	b = append(append(append(b, '-'), code...), ' ')
	end := len(b) + maxError
	for _, r := range text {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			r = '?'
		}
		if len(b)+utf8.RuneLen(r) > end {
			break
		}
		b = utf8.AppendRune(b, r)
	}
	return append(b, "\r\n"...)
}
