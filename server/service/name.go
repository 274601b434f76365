package service

import (
	"fmt"
	"unicode/utf8"

	"github.com/firnid/firn/server/inspect"
)

// MaxName is the length of the longest name of a sequencer: enough for a
// reversed domain name, short enough for a database key or a line of a log.
const MaxName = 128

// nameRule is the rule of CheckName in words.
const nameRule = "a name has 1 to 128 characters, each an ASCII letter, a digit or one of . _ - : and begins with a letter or a digit"

// CheckName reports what is wrong with the name of a sequencer. A name has 1 to
// 128 characters: ASCII letters, digits and . _ - : of which the first is a
// letter or a digit. Upper and lower case differ.
//
// So a name is one segment of a URL that needs no escapes, a word of the RESP
// protocol, and never a path (.., a/b) or a flag (-n).
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("the name of the sequencer is empty: %s", nameRule)
	}
	for i, c := range name {
		isWord := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		switch {
		case isWord:
		case c == utf8.RuneError:
			return fmt.Errorf("the name %s has a byte at offset %d that is not UTF-8: %s", inspect.Quote(name), i, nameRule)
		case c != '.' && c != '_' && c != '-' && c != ':':
			return fmt.Errorf("the name %s has %q at offset %d: %s", inspect.Quote(name), c, i, nameRule)
		case i == 0:
			return fmt.Errorf("the name %s begins with %q: %s", inspect.Quote(name), c, nameRule)
		}
	}
	if len(name) > MaxName {
		return fmt.Errorf("the name %s has %d characters: %s", inspect.Quote(name), len(name), nameRule)
	}
	return nil
}
