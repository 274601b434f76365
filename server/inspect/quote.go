package inspect

import (
	"strconv"
	"unicode/utf8"
)

// maxQuoted is how many bytes of a text Quote shows: what a line can hold.
const maxQuoted = 64

// Quote quotes a text that somebody sent, for a message. A long one is cut
// between two characters, and … after the quotes says so.
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
