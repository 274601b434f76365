// Package form has all ways in which Firn writes and reads an ID: the formats of
// package firn, which need only the ID; typed text, which needs the prefix of
// its sequencer; veiled text, which needs a key; and the texts of xid and KSUID,
// which it only reads. What the bits of an ID mean is up to package inspect.
package form

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/typed"
	"github.com/firnid/firn/veil"
)

// A Form is a way to write or read IDs. The zero Form is auto: it reads every
// form that fits the text. Forms can be compared with ==.
type Form struct {
	kind   kind
	format firn.Format
	prefix string // of typed text; to read, "" allows any
	veil   Veil
}

type kind uint8

const (
	isAuto kind = iota
	isTyped
	isVeiled
	isXID
	isKSUID
	isFormat
)

// names has the names of the forms that are not formats.
var names = []string{isAuto: "auto", isTyped: "typed", isVeiled: "veiled", isXID: "xid", isKSUID: "ksuid"}

// A Veil writes and reads the veiled IDs of a sequencer. An ID of a size whose
// field is nil has no veiled text.
type Veil struct{ Of64, Of128 *veil.Codec }

// NewVeil returns the Veil of a sequencer with a layout.
func NewVeil(keys veil.Keys, sequencer string, l firn.Layout) (v Veil, err error) {
	c, err := keys.Codec(sequencer, l)
	if l.Bits() == 128 {
		return Veil{Of128: c}, textfmt.Plain(err)
	}
	return Veil{Of64: c}, textfmt.Plain(err)
}

// VeiledBy returns veiled text.
func VeiledBy(v Veil) Form { return Form{kind: isVeiled, veil: v} }

// Of returns the Form of a format.
func Of(f firn.Format) Form { return Form{kind: isFormat, format: f} }

// TypedAs returns typed text with a prefix. To read, an empty one allows any.
func TypedAs(prefix string) Form { return Form{kind: isTyped, prefix: prefix} }

// Parse returns the Form with that name to write IDs: typed, veiled, or one that
// firn.ParseFormat knows. Typed text has no prefix until SetPrefix, and veiled
// text no key: see VeiledBy.
func Parse(name string) (Form, error) {
	switch name {
	case names[isTyped]:
		return Form{kind: isTyped}, nil
	case names[isVeiled]:
		return Form{kind: isVeiled}, nil
	}
	f, err := firn.ParseFormat(name)
	if parse, ok := errors.AsType[*firn.ParseError](err); ok {
		parse.Reason += "; or typed or veiled"
	}
	return Of(f), err
}

// ParseInput returns the Form with that name to read IDs: one of Parse, auto,
// xid or ksuid. ulid is another name of base32, and objectid of hex.
func ParseInput(name string) (Form, error) {
	if k := slices.Index(names, name); k >= 0 {
		return Form{kind: kind(k)}, nil
	}
	switch name {
	case "ulid":
		return Of(firn.Base32), nil
	case "objectid":
		return Of(firn.Hex), nil
	}
	f, err := firn.ParseFormat(name)
	if parse, ok := errors.AsType[*firn.ParseError](err); ok {
		parse.Reason += "; or auto, typed, veiled, ulid, xid, ksuid or objectid"
	}
	return Of(f), err
}

// ParsePrefix returns s if it is a valid prefix of typed text.
func ParsePrefix(s string) (string, error) { return s, textfmt.Plain(typed.CheckPrefix(s)) }

// String returns the name of the Form.
func (f Form) String() string {
	if f.kind == isFormat {
		return f.format.String()
	}
	return names[f.kind]
}

// Format returns the format that the Form is, if it is one.
func (f *Form) Format() (firn.Format, bool) { return f.format, f.kind == isFormat }

// Is reports whether the Form is a format.
func (f *Form) Is(format firn.Format) bool { return f.kind == isFormat && f.format == format }

// IsTyped reports whether the Form is typed text.
func (f *Form) IsTyped() bool { return f.kind == isTyped }

// IsVeiled reports whether the Form is veiled text.
func (f *Form) IsVeiled() bool { return f.kind == isVeiled }

// IsAuto reports whether the Form is the zero Form.
func (f *Form) IsAuto() bool { return f.kind == isAuto }

// Fixed reports whether texts of IDs of one size have one width, so that they
// sort like the IDs. Veiled text has one width, but another order.
func (f *Form) Fixed() bool { return f.kind != isFormat || f.format.Fixed() }

// CheckBits returns nil if the Form can write IDs with that many bits.
func (f *Form) CheckBits(bits int) error {
	if f.kind == isFormat {
		return f.format.CheckBits(bits)
	}
	return nil
}

// SetPrefix sets the prefix of typed text to that of a sequencer, which must
// have one. It does nothing for a format.
func (f *Form) SetPrefix(prefix string) error {
	if f.IsTyped() && prefix == "" {
		return errors.New("the sequencer has no prefix for typed text: it can only get one when it is created")
	}
	f.prefix = prefix
	return nil
}

// Check returns an error if the Form is veiled text and cannot hold an ID.
func (f *Form) Check(id ID) (err error) {
	switch {
	case !f.IsVeiled():
	case len(id) == 8 && f.veil.Of64 != nil:
		_, err = f.veil.Of64.Text(firn.ID(binary.BigEndian.Uint64(id)))
	case len(id) == 16 && f.veil.Of128 != nil:
		_, err = f.veil.Of128.Text128(firn.ID128(id))
	default:
		err = fmt.Errorf("an ID of %d bits is not one of the layout, and cannot be veiled", 8*len(id))
	}
	return textfmt.Plain(err)
}

// Append appends the text of a 64-bit ID, which must fit. IDs of a layout fit
// the Veil of that layout, and Check reports whether another one does.
func (f *Form) Append(b []byte, id firn.ID) []byte {
	switch f.kind {
	case isTyped:
		return typed.Append(b, f.prefix, id)
	case isVeiled:
		return must(f.veil.Of64.Append(b, id))
	}
	return f.format.Append(b, id)
}

// Append128 appends the text of a 128-bit ID.
func (f *Form) Append128(b []byte, id firn.ID128) []byte {
	switch f.kind {
	case isTyped:
		return typed.Append(b, f.prefix, id)
	case isVeiled:
		return must(f.veil.Of128.Append128(b, id))
	}
	return f.format.Append128(b, id)
}

// Append appends the text of an ID of either size, as Form.Append does.
func Append[I firn.AnyID](b []byte, id I, f *Form) []byte {
	if wide, ok := any(id).(firn.ID128); ok {
		return f.Append128(b, wide)
	}
	return f.Append(b, any(id).(firn.ID))
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err.Error())
	}
	return b
}

// An ID is an ID as bytes, big-endian: 8, 12, 16 or 20.
type ID []byte

// Number returns an ID of up to 128 bits as a number.
func (id ID) Number() (n firn.ID128) {
	copy(n[16-len(id):], id)
	return n
}

// Append appends the text of an ID of 64 or 128 bits, as Form.Append does.
func (id ID) Append(b []byte, f Form) []byte {
	if len(id) == 16 {
		return f.Append128(b, firn.ID128(id))
	}
	return f.Append(b, firn.ID(binary.BigEndian.Uint64(id)))
}
