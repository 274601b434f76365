package service

import (
	"fmt"
	"unicode/utf8"

	"github.com/firnid/firn/server/internal/ids/inspect"
)

// MaxName is the length of the longest sequencer name: enough for a reversed
// domain name, short enough for a database key or a log line.
const MaxName = 128

// nameRule states the rule of CheckName.
const nameRule = "a name has 1 to 128 characters (ASCII letters, digits and . _ - :) and begins with a letter or a digit"

// CheckName returns an error if a sequencer name is invalid. A name has 1 to
// 128 characters: ASCII letters, digits and . _ - : of which the first is a
// letter or a digit. Case matters.
//
// Such a name is one URL segment without escapes and one word of the RESP
// protocol, and never a path (.., a/b) or a flag (-n).
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("empty sequencer name: %s", nameRule)
	}
	for i, c := range name {
		isWord := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		switch {
		case isWord:
		case c == utf8.RuneError:
			return fmt.Errorf("invalid sequencer name %s: the byte at offset %d is not UTF-8: %s", inspect.Quote(name), i, nameRule)
		case c != '.' && c != '_' && c != '-' && c != ':':
			return fmt.Errorf("invalid sequencer name %s: %q at offset %d is not allowed: %s", inspect.Quote(name), c, i, nameRule)
		case i == 0:
			return fmt.Errorf("invalid sequencer name %s: it begins with %q: %s", inspect.Quote(name), c, nameRule)
		}
	}
	if len(name) > MaxName {
		return fmt.Errorf("invalid sequencer name %s: it has %d characters: %s", inspect.Quote(name), len(name), nameRule)
	}
	return nil
}
