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
	"github.com/firnid/firn/typed"
)

// Keys are secret keys by number, from 1 to 9999. The text of a veiled ID
// has the number of its key: v2_ and the digits of typed text. To replace a
// key, add one with a higher number, which veils new texts, and keep the old
// one for as long as its texts are in use.
type Keys map[int][]byte

// maxNumber is the highest number of a key.
const maxNumber = 9999

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
		} else if number, ok = parseNumber(digits); !ok {
			return nil, fmt.Errorf("veil: line %d: the number before the colon must be 1 to %d", i+1, maxNumber)
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

// parseNumber parses the number of a key, without leading zeros.
func parseNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= maxNumber && strconv.Itoa(n) == s
}

// A Text writes and reads the veiled IDs of one sequencer as text. It is safe
// for concurrent use.
type Text struct {
	ciphers map[int]*Cipher
	newest  *Cipher // of new texts
	prefix  string  // of these
}

// Text returns the Text of a sequencer; see New.
func (k Keys) Text(sequencer string, l firn.Layout) (*Text, error) {
	if len(k) == 0 {
		return nil, errors.New("veil: no key given")
	}
	t := &Text{ciphers: make(map[int]*Cipher)}
	for n, key := range k {
		if n < 1 || n > maxNumber {
			return nil, fmt.Errorf("veil: key %d: the number must be 1 to %d", n, maxNumber)
		}
		c, err := New(key, sequencer, l)
		if err != nil {
			return nil, err
		}
		t.ciphers[n] = c
	}
	newest := slices.Max(slices.Collect(maps.Keys(k)))
	t.newest, t.prefix = t.ciphers[newest], fmt.Sprintf("v%d_", newest)
	return t, nil
}

// Append appends the veiled text of an ID: 13 digits after the underscore. After
// an error, which is that of Cipher.Veil, it returns b.
func (t *Text) Append(b []byte, id firn.ID) ([]byte, error) {
	veiled, err := t.newest.Veil(id)
	if err != nil {
		return b, err
	}
	return typed.Append(append(b, t.prefix...), "", veiled), nil
}

// Append128 is Append for UUIDs: 26 digits after the underscore.
func (t *Text) Append128(b []byte, id firn.ID128) ([]byte, error) {
	veiled, err := t.newest.Veil128(id)
	if err != nil {
		return b, err
	}
	return typed.Append(append(b, t.prefix...), "", veiled), nil
}

// Parse returns the ID of a veiled text. It is as strict as typed.Parse, and
// the key must be one of Keys. The error is a *firn.ParseError.
func (t *Text) Parse(text string) (firn.ID, error) { return parse(t, text, (*Cipher).Unveil) }

// Parse128 is Parse for UUIDs.
func (t *Text) Parse128(text string) (firn.ID128, error) {
	return parse(t, text, (*Cipher).Unveil128)
}

func parse[I firn.ID | firn.ID128](t *Text, text string, unveil func(*Cipher, I) (I, error)) (id I, err error) {
	c, masked, err := t.cut(text)
	if err != nil {
		return id, err
	}
	veiled, err := typed.Parse[I](masked, masked+text[len(masked):])
	if err == nil {
		id, err = unveil(c, veiled)
	}
	return id, named(err, text)
}

// cut returns the Cipher of a text, and a prefix for package typed that is as
// long as that of the text.
func (t *Text) cut(text string) (c *Cipher, masked string, err error) {
	fail := func(format string, args ...any) (*Cipher, string, error) {
		return nil, "", &firn.ParseError{What: "veiled ID", Text: text, Pos: -1, Reason: fmt.Sprintf(format, args...)}
	}
	number, ok := KeyNumber(text)
	if !ok {
		_, _, err := typed.Cut(text)
		if _, notNumber := firn.ParseID(text); err == nil || notNumber == nil {
			return fail("it is a plain ID; a veiled one begins with v, the number of a key and _")
		}
		return fail("it does not begin with v, the number of a key and _")
	}
	if c = t.ciphers[number]; c == nil {
		return fail("it was veiled with key %d, and this key is not known", number)
	}
	return c, strings.Repeat("v", strings.IndexByte(text, '_')), nil
}

// named makes an error of package typed, or of a Cipher, one about a veiled text.
func named(err error, text string) error {
	if err == nil {
		return nil
	}
	parse, ok := errors.AsType[*firn.ParseError](err)
	if !ok {
		parse = &firn.ParseError{Pos: -1, Reason: strings.TrimPrefix(err.Error(), "veil: ")}
	}
	parse.What, parse.Text = "veiled ID", text
	return parse
}

// KeyNumber returns the number of the key that a veiled text names. ok is false if
// the text does not begin like one.
func KeyNumber(text string) (n int, ok bool) {
	prefix, _, ok := strings.Cut(text, "_")
	if !ok || !strings.HasPrefix(prefix, "v") {
		return 0, false
	}
	return parseNumber(prefix[1:])
}
