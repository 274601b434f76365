package textfmt

import (
	"errors"
	"slices"
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

// maxShort is the maximum length of a Short text.
const maxShort = 256

// Short returns what a log line or span has of a text of a client, such as a
// path: valid UTF-8, and not long. A trace collector refuses all spans that are
// sent together with one invalid text.
func Short(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxShort)], "\uFFFD")
}

// packages are the packages whose names stand before the text of their errors.
var packages = []string{
	"firn", "grant", "sequencer", "client", "typed", "veil",
	"dirstore", "sqlstore", "etcdstore", "kubestore", "s3store",
}

// Cause returns the last error of a chain: users need no more than "address
// already in use".
func Cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// Message returns the text of err without the names of packages in front, which
// tell users nothing.
func Message(err error) string {
	text := err.Error()
	for {
		name, rest, ok := strings.Cut(text, ": ")
		if !ok || !slices.Contains(packages, name) {
			return text
		}
		text = rest
	}
}

// Plain returns err without words that people who see the value already know.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*firn.ParseError](err); ok {
		return errors.New(p.Reason)
	}
	if text := Message(err); text != err.Error() {
		return errors.New(text)
	}
	return err
}
