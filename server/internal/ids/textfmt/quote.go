package textfmt

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/firnid/firn"
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

// Plain returns err without words that people who see the value already know.
func Plain(err error) error {
	if p, ok := errors.AsType[*firn.ParseError](err); ok {
		return errors.New(p.Reason)
	}
	if err == nil {
		return nil
	}
	for _, name := range []string{"firn: ", "veil: ", "typed: "} {
		if text, ok := strings.CutPrefix(err.Error(), name); ok {
			return errors.New(text)
		}
	}
	return err
}
