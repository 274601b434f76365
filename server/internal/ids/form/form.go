// Package form has all ways in which Firn writes an ID: the formats of package
// firn, which need only the ID; typed text, which needs the prefix of its
// sequencer; and veiled text, which needs a key.
package form

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/typed"
	"github.com/firnid/firn/veil"
)

// The names of the forms that are not formats.
const (
	Typed  = "typed"
	Veiled = "veiled"
)

// A Form is a way to write IDs. The zero Form is decimal.
type Form struct {
	format firn.Format
	typed  bool
	prefix string
	veiled bool
	veil   Veil
}

// A Veil writes and reads the veiled IDs of a sequencer. An ID of a size whose
// field is nil has no veiled text.
type Veil struct{ Of64, Of128 *veil.Text }

// NewVeil returns the Veil of a sequencer with a layout.
func NewVeil(keys veil.Keys, sequencer string, l firn.Layout) (v Veil, err error) {
	t, err := keys.Text(sequencer, l)
	if l.Bits() == 128 {
		return Veil{Of128: t}, Plain(err)
	}
	return Veil{Of64: t}, Plain(err)
}

// VeiledBy returns veiled text.
func VeiledBy(v Veil) Form { return Form{veiled: true, veil: v} }

// Of returns the Form of a format.
func Of(f firn.Format) Form { return Form{format: f} }

// TypedAs returns typed text with a prefix, or without one if it is empty.
func TypedAs(prefix string) Form { return Form{typed: true, prefix: prefix} }

// Parse returns the Form with that name: typed, veiled, or one that
// firn.ParseFormat knows. Typed text has no prefix until SetPrefix, and veiled
// text no key until SetVeil.
func Parse(name string) (Form, error) {
	switch name {
	case Typed:
		return TypedAs(""), nil
	case Veiled:
		return VeiledBy(Veil{}), nil
	}
	f, err := firn.ParseFormat(name)
	if parse := (*firn.ParseError)(nil); errors.As(err, &parse) {
		parse.Reason += "; or typed or veiled"
	}
	return Of(f), err
}

// ParsePrefix returns s if it is a valid prefix of typed text.
func ParsePrefix(s string) (string, error) { return s, Plain(typed.CheckPrefix(s)) }

// String returns the name of the Form.
func (f *Form) String() string {
	switch {
	case f.typed:
		return Typed
	case f.veiled:
		return Veiled
	}
	return f.format.String()
}

// Is reports whether the Form is a format.
func (f *Form) Is(format firn.Format) bool { return !f.typed && !f.veiled && f.format == format }

// IsTyped reports whether the Form is typed text.
func (f *Form) IsTyped() bool { return f.typed }

// IsVeiled reports whether the Form is veiled text.
func (f *Form) IsVeiled() bool { return f.veiled }

// Fixed returns the Form with texts of one width, which sort like the IDs.
func (f Form) Fixed() Form {
	if !f.typed { // typed text has one width
		f.format = f.format.Fixed()
	}
	return f
}

// Fits returns nil if the Form can write IDs with that many bits.
func (f *Form) Fits(bits int) error {
	if f.typed || f.veiled {
		return nil
	}
	return f.format.Fits(bits)
}

// SetPrefix sets the prefix of typed text to that of a sequencer, which must
// have one. It does nothing for a format.
func (f *Form) SetPrefix(prefix string) error {
	if f.typed && prefix == "" {
		return errors.New("the sequencer has no prefix for typed text: it can only get one when it is created")
	}
	f.prefix = prefix
	return nil
}

// SetVeil sets how veiled text is written. It does nothing for another Form.
func (f *Form) SetVeil(v func() (Veil, error)) (err error) {
	if f.veiled {
		f.veil, err = v()
	}
	return err
}

// Check returns an error if the Form is veiled text and cannot hold an ID, given
// as 8 or 16 bytes.
func (f *Form) Check(raw []byte) (err error) {
	switch {
	case !f.veiled:
	case len(raw) == 8 && f.veil.Of64 != nil:
		_, err = f.veil.Of64.Append(nil, firn.ID(binary.BigEndian.Uint64(raw)))
	case len(raw) == 16 && f.veil.Of128 != nil:
		_, err = f.veil.Of128.Append128(nil, firn.ID128(raw))
	default:
		err = fmt.Errorf("an ID of %d bits is not one of the layout, and cannot be veiled", 8*len(raw))
	}
	return Plain(err)
}

// Plain returns an error of package veil without the name of the package.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	for _, name := range []string{"veil: ", "typed: "} {
		if text, ok := strings.CutPrefix(err.Error(), name); ok {
			return errors.New(text)
		}
	}
	return err
}

// Append appends the text of a 64-bit ID, which must fit. IDs of a layout fit
// the Veil of that layout, and Check reports whether another one does.
func (f *Form) Append(b []byte, id firn.ID) []byte {
	switch {
	case f.typed:
		return typed.Append(b, f.prefix, id)
	case f.veiled:
		return must(f.veil.Of64.Append(b, id))
	}
	return f.format.Append(b, id)
}

// Append128 appends the text of a 128-bit ID.
func (f *Form) Append128(b []byte, id firn.ID128) []byte {
	switch {
	case f.typed:
		return typed.Append(b, f.prefix, id)
	case f.veiled:
		return must(f.veil.Of128.Append128(b, id))
	}
	return f.format.Append128(b, id)
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err.Error())
	}
	return b
}
