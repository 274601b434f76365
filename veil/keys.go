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
type Keys map[int][]byte

// maxKeyNumber is the highest number of a key.
const maxKeyNumber = 9999

// ParseKeys parses the contents of a file of keys: one per line in hexadecimal,
// with the number and a colon in front unless it is 1. Blank lines, and those
// that begin with #, are skipped. Errors do not contain keys.
func ParseKeys(text string) (Keys, error) {
	keys := make(Keys)
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
			return nil, fmt.Errorf("veil: line %d: the number before the colon must be 1 to %d", i+1, maxKeyNumber)
		}
		secret = strings.TrimSpace(secret)
		key, err := hex.DecodeString(secret)
		switch {
		case err != nil || len(key) != 16 && len(key) != 24 && len(key) != 32:
			return nil, fmt.Errorf("veil: line %d: the key is not 32, 48 or 64 hexadecimal digits", i+1)
		case keys[number] != nil:
			return nil, fmt.Errorf("veil: line %d: key %d is there twice", i+1, number)
		}
		keys[number] = key
	}
	if len(keys) == 0 {
		return nil, errors.New("veil: no key found: write 64 hexadecimal digits, as from openssl rand -hex 32")
	}
	return keys, nil
}

// parseKeyNumber parses the number of a key, without leading zeros.
func parseKeyNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= maxKeyNumber && strconv.Itoa(n) == s
}

// Codec returns the Codec of a sequencer; see New.
func (k Keys) Codec(sequencer string, l firn.Layout) (*Codec, error) {
	if len(k) == 0 {
		return nil, errors.New("veil: no key given")
	}
	codec := &Codec{ciphers: make(map[int]*Cipher)}
	for n, key := range k {
		if n < 1 || n > maxKeyNumber {
			return nil, fmt.Errorf("veil: key %d: the number must be 1 to %d", n, maxKeyNumber)
		}
		c, err := New(key, sequencer, l)
		if err != nil {
			return nil, err
		}
		codec.ciphers[n] = c
	}
	newest := slices.Max(slices.Collect(maps.Keys(k)))
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
