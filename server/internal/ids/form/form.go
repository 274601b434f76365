// Package form has all ways in which Firn writes an ID: the formats of package
// firn, which need only the ID, and typed text, which needs the prefix of its
// sequencer.
package form

import (
	"errors"

	"github.com/firnid/firn"
	"github.com/firnid/firn/typed"
)

// Typed is the name of typed text.
const Typed = "typed"

// A Form is a way to write IDs. The zero Form is decimal.
type Form struct {
	format firn.Format
	typed  bool
	prefix string
}

// Of returns the Form of a format.
func Of(f firn.Format) Form { return Form{format: f} }

// TypedAs returns typed text with a prefix, or without one if it is empty.
func TypedAs(prefix string) Form { return Form{typed: true, prefix: prefix} }

// Parse returns the Form with that name: typed, or one that firn.ParseFormat
// knows. Typed text has no prefix until SetPrefix.
func Parse(name string) (Form, error) {
	if name == Typed {
		return TypedAs(""), nil
	}
	f, err := firn.ParseFormat(name)
	if parse := (*firn.ParseError)(nil); errors.As(err, &parse) {
		parse.Reason += "; or typed"
	}
	return Of(f), err
}

// ParsePrefix returns s if it is a valid prefix of typed text.
func ParsePrefix(s string) (string, error) { return s, typed.CheckPrefix(s) }

// String returns the name of the Form.
func (f *Form) String() string {
	if f.typed {
		return Typed
	}
	return f.format.String()
}

// Is reports whether the Form is a format.
func (f *Form) Is(format firn.Format) bool { return !f.typed && f.format == format }

// IsTyped reports whether the Form is typed text.
func (f *Form) IsTyped() bool { return f.typed }

// Fixed returns the Form with texts of one width, which sort like the IDs.
func (f Form) Fixed() Form {
	if !f.typed { // typed text has one width
		f.format = f.format.Fixed()
	}
	return f
}

// Fits returns nil if the Form can write IDs with that many bits.
func (f *Form) Fits(bits int) error {
	if f.typed {
		return nil
	}
	return f.format.Fits(bits)
}

// SetPrefix sets the prefix of typed text to that of a sequencer, which must
// have one. It does nothing for a format.
func (f *Form) SetPrefix(prefix string) error {
	if f.typed && prefix == "" {
		return errors.New("the sequencer has no prefix for typed text")
	}
	f.prefix = prefix
	return nil
}

// Append appends the text of a 64-bit ID, which must fit.
func (f *Form) Append(b []byte, id firn.ID) []byte {
	if f.typed {
		return typed.Append(b, f.prefix, id)
	}
	return f.format.Append(b, id)
}

// Append128 appends the text of a 128-bit ID.
func (f *Form) Append128(b []byte, id firn.ID128) []byte {
	if f.typed {
		return typed.Append(b, f.prefix, id)
	}
	return f.format.Append128(b, id)
}
