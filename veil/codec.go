package veil

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/short"
	"github.com/firnid/firn/typed"
)

// A Codec writes and reads the veiled IDs of one sequencer as text. It is safe
// for concurrent use, and must be made by Keys.Codec.
type Codec struct {
	ciphers map[int]*Cipher
	newest  *Cipher // of new texts
	prefix  string  // of these
}

// Text returns the veiled text of an ID: 13 digits after the underscore. The
// error is that of Cipher.Veil.
func (c *Codec) Text(id firn.ID) (string, error) {
	b, err := c.Append(nil, id)
	return string(b), err
}

// Text128 is Text for UUIDs: 26 digits after the underscore.
func (c *Codec) Text128(id firn.ID128) (string, error) {
	b, err := c.Append128(nil, id)
	return string(b), err
}

// Append appends the veiled text of an ID to b. After an error, it returns b.
func (c *Codec) Append(b []byte, id firn.ID) ([]byte, error) {
	veiled, err := c.newest.Veil(id)
	if err != nil {
		return b, err
	}
	return typed.Append(append(b, c.prefix...), "", veiled), nil
}

// Append128 is Append for UUIDs.
func (c *Codec) Append128(b []byte, id firn.ID128) ([]byte, error) {
	veiled, err := c.newest.Veil128(id)
	if err != nil {
		return b, err
	}
	return typed.Append(append(b, c.prefix...), "", veiled), nil
}

// Parse returns the ID of a veiled text. It is as strict as typed.Parse, and
// the key must be one of Keys. The error is a *firn.ParseError.
func (c *Codec) Parse(text string) (firn.ID, error) { return parse(c, text, (*Cipher).Unveil) }

// Parse128 is Parse for UUIDs.
func (c *Codec) Parse128(text string) (firn.ID128, error) {
	return parse(c, text, (*Cipher).Unveil128)
}

func parse[I firn.ID | firn.ID128](c *Codec, text string, unveil func(*Cipher, I) (I, error)) (id I, err error) {
	cipher, masked, err := c.cipherOf(text)
	if err != nil {
		return id, err
	}
	veiled, err := typed.Parse[I](masked, masked+text[len(masked):])
	if err == nil {
		id, err = unveil(cipher, veiled)
	}
	return id, asVeiledError(err, text)
}

// cipherOf returns the Cipher of a text, and a prefix for package typed that is
// as long as that of the text.
func (c *Codec) cipherOf(text string) (cipher *Cipher, masked string, err error) {
	fail := func(format string, args ...any) (*Cipher, string, error) {
		return nil, "", &firn.ParseError{
			What: "veiled ID", Text: short.Text(text), Pos: -1, Reason: fmt.Sprintf(format, args...),
		}
	}
	number, ok := KeyNumber(text)
	if !ok {
		_, _, err := typed.Cut(text)
		if _, notNumber := firn.ParseID(text); err == nil || notNumber == nil {
			return fail("it is a plain ID; a veiled one begins with v, the number of a key and _")
		}
		return fail("it does not begin with v, the number of a key and _")
	}
	if cipher = c.ciphers[number]; cipher == nil {
		return fail("it was veiled with key %d, and this key is not known", number)
	}
	return cipher, strings.Repeat("v", strings.IndexByte(text, '_')), nil
}

// asVeiledError makes an error of package typed, or of a Cipher, one about a
// veiled text.
func asVeiledError(err error, text string) error {
	if err == nil {
		return nil
	}
	parse, ok := errors.AsType[*firn.ParseError](err)
	if !ok {
		parse = &firn.ParseError{Pos: -1, Reason: strings.TrimPrefix(err.Error(), "veil: ")}
	}
	parse.What, parse.Text = "veiled ID", short.Text(text)
	return parse
}
