package inspect

import (
	"strconv"
	"unicode/utf8"
)

// maxQuoted is how many bytes of a text Quote shows: what fits into a line.
const maxQuoted = 64

// Quote quotes text from elsewhere for a message. It cuts a long text between
// two characters and then appends … after the quotes.
func Quote(s string) string {
	if len(s) <= maxQuoted {
		return strconv.Quote(s)
	}
	end := maxQuoted
	for end > maxQuoted-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return strconv.Quote(s[:end]) + "…"
}
