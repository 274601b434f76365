package veil

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/firnid/firn"
)

// Keys are secret keys by number, from 1 to 9999. The text of a veiled ID has
// the number of its key: v2_ and the digits of typed text. To replace a key,
// add one with a higher number, which veils new texts, and keep the old one for
// as long as its texts are in use.
//
// Keys come from ParseKeys; the zero Keys has none. To print, log or marshal
// them, or what contains them, shows no secret.
type Keys struct {
	// byNumber returns the keys. It is a function because nothing prints what
	// one returns. Methods such as String would not do: fmt calls none of a
	// value in an unexported field. Nor would a pointer: %s follows it.
	byNumber func() map[int][]byte
}

// maxKeyNumber is the highest number of a key.
const maxKeyNumber = 9999

// ParseKeys parses the contents of a file of keys: one per line in hexadecimal,
// with the number and a colon in front unless it is 1. Blank lines, and those
// that begin with #, are skipped. Errors do not contain keys.
func ParseKeys(text string) (Keys, error) {
	keys := make(map[int][]byte)
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		number := 1
		digits, secret, ok := strings.Cut(line, ":")
		if !ok {
			secret = line
		} else if number, ok = parseKeyNumber(digits); !ok {
			return Keys{}, fmt.Errorf("veil: line %d: the number before the colon must be 1 to %d", i+1, maxKeyNumber)
		}
		secret = strings.TrimSpace(secret)
		key, err := hex.DecodeString(secret)
		switch {
		case err != nil || len(key) != 16 && len(key) != 24 && len(key) != 32:
			return Keys{}, fmt.Errorf("veil: line %d: the key is not 32, 48 or 64 hexadecimal digits", i+1)
		case keys[number] != nil:
			return Keys{}, fmt.Errorf("veil: line %d: key %d is there twice", i+1, number)
		}
		keys[number] = key
	}
	if len(keys) == 0 {
		return Keys{}, errors.New("veil: no key found: write 64 hexadecimal digits, as from openssl rand -hex 32")
	}
	return Keys{func() map[int][]byte { return keys }}, nil
}

// IsZero reports whether k is the zero Keys, which has no key.
func (k Keys) IsZero() bool { return k.byNumber == nil }

// parseKeyNumber parses the number of a key, without leading zeros.
func parseKeyNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= maxKeyNumber && strconv.Itoa(n) == s
}

// Codec returns the Codec of a sequencer; see New.
func (k Keys) Codec(sequencer string, l firn.Layout) (*Codec, error) {
	if k.IsZero() {
		return nil, errors.New("veil: no key given")
	}
	keys := k.byNumber()
	codec := &Codec{ciphers: make(map[int]*Cipher)}
	for n, key := range keys {
		c, err := New(key, sequencer, l)
		if err != nil {
			return nil, err
		}
		codec.ciphers[n] = c
	}
	newest := slices.Max(slices.Collect(maps.Keys(keys)))
	codec.newest, codec.prefix = codec.ciphers[newest], fmt.Sprintf("v%d_", newest)
	return codec, nil
}

// KeyNumber returns the number of the key that a veiled text names. ok is false
// if the text does not begin like one.
func KeyNumber(text string) (n int, ok bool) {
	prefix, _, ok := strings.Cut(text, "_")
	if !ok || !strings.HasPrefix(prefix, "v") {
		return 0, false
	}
	return parseKeyNumber(prefix[1:])
}
