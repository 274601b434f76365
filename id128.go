package firn

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"

	"github.com/firnid/firn/internal/basen"
)

// An ID128 is a unique 128-bit number, stored as 16 big-endian bytes. IDs
// compare as unsigned numbers, with == and Compare, which is also the order of
// their bytes. If the time is the topmost field of the layout, that is the
// order of time.
//
// The zero ID128 means no ID: no generator makes it, and in SQL it is NULL. An
// ID128 is a plain value that can be a map key in Go and in JSON.
//
// The text form of an ID128 is that of a UUID, 8-4-4-4-12. It converts to and
// from the UUID types of most packages, which are also arrays of 16 bytes:
// uuid.UUID(id), firn.ID128(u). Whether it is a UUID by RFC 9562, with version
// and variant, depends on the layout. See Format for other text forms.
type ID128 [16]byte

// ParseID128 parses a 128-bit ID from the form 8-4-4-4-12 (36 characters,
// letters of either case), from 1 to 39 decimal digits, or from 0x and 1 to 32
// hexadecimal digits. Leading zeros count as digits. Signs, spaces, underscores
// and braces are not allowed. The error is a *ParseError.
func ParseID128(s string) (ID128, error) { return parseID128([]byte(s)) }

func parseID128(text []byte) (ID128, error) {
	if hi, lo, ok := basen.ParseUUID(text); ok {
		return ID128FromUint64s(hi, lo), nil
	}
	f := textFormat(text)
	base, _ := f.base()
	if hi, lo, ok := base.Parse128(text[f.prefixLen(text):]); ok {
		return ID128FromUint64s(hi, lo), nil
	}
	// A dash shows that the UUID form was meant; at the start it is a sign.
	if slices.Index(text, '-') > 0 {
		return ID128{}, UUID.parseError("ID128", text, 128)
	}
	return ID128{}, hintHex(f.parseError("ID128", text, 128))
}

// ID128FromUint64s returns the ID with the number hi<<64 | lo.
func ID128FromUint64s(hi, lo uint64) ID128 {
	var id ID128
	id.put(wide{hi, lo})
	return id
}

// put sets id in place, which costs less than making an ID128 and copying it.
func (id *ID128) put(w wide) {
	binary.BigEndian.PutUint64(id[:8], w.hi)
	binary.BigEndian.PutUint64(id[8:], w.lo)
}

// Uint64s returns the number of id as hi<<64 | lo.
func (id ID128) Uint64s() (hi, lo uint64) {
	return binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
}

// Compare returns -1, 0 or 1 as id is less than, equal to or greater than
// other.
func (id ID128) Compare(other ID128) int {
	hi, lo := id.Uint64s()
	otherHi, otherLo := other.Uint64s()
	return cmp.Or(cmp.Compare(hi, otherHi), cmp.Compare(lo, otherLo))
}

// IsZero reports whether id is the zero ID128. encoding/json calls it for
// fields with the option omitzero.
func (id ID128) IsZero() bool { return id == ID128{} }

// String returns id in the form 8-4-4-4-12, in lower case.
func (id ID128) String() string { return string(UUID.Append128(make([]byte, 0, 36), id)) }

// MarshalText returns id in the form 8-4-4-4-12. The error is always nil.
func (id ID128) MarshalText() ([]byte, error) {
	return UUID.Append128(make([]byte, 0, 36), id), nil
}

// UnmarshalText sets id from a text that ParseID128 accepts. On error, id is
// unchanged.
func (id *ID128) UnmarshalText(text []byte) error {
	v, err := parseID128(text)
	if err == nil {
		*id = v
	}
	return err
}

// MarshalJSON returns id as a JSON string in the form 8-4-4-4-12. The error is
// always nil.
func (id ID128) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 38), '"')
	return append(UUID.Append128(b, id), '"'), nil
}

// UnmarshalJSON sets id from a JSON string that ParseID128 accepts, or from a
// JSON integer, which is read without rounding. A number with a fraction, an
// exponent or a sign is an error. JSON null and errors leave id unchanged.
func (id *ID128) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	return id.UnmarshalText(jsonText(data))
}

// MarshalBinary returns the 16 bytes of id. The error is always nil.
func (id ID128) MarshalBinary() ([]byte, error) { return bytes.Clone(id[:]), nil }

// UnmarshalBinary sets id from exactly 16 bytes. On error, id is unchanged.
func (id *ID128) UnmarshalBinary(data []byte) error {
	if len(data) != 16 {
		return Raw.parseError("binary ID128", data, 128)
	}
	*id = ID128(data)
	return nil
}

// Value returns the value that database/sql stores: NULL for the zero ID128,
// and its text for any other, which fits a uuid, text or char(36) column. For a
// bytea or binary(16) column, store the result of MarshalBinary.
func (id ID128) Value() (driver.Value, error) {
	if id.IsZero() {
		return nil, nil
	}
	return id.String(), nil
}

// Scan sets id from a column. NULL gives the zero ID128, an integer must not be
// negative, and a string is parsed by ParseID128. A []byte of exactly 16 bytes
// is the ID, and one of any other length is text: some drivers return text
// columns as []byte. String returns 36 bytes, and only a number below 2^56 has a
// text of 16: in the presets, an ID of the first tick. On error, id is
// unchanged.
func (id *ID128) Scan(src any) error {
	return scan("ID128", 16, src, id, func(n uint64) { *id = ID128FromUint64s(0, n) })
}

// Format implements fmt.Formatter: %d, %b, %o, %O, %x and %X print the number,
// with the flags of integers; %v, %s and %q print the text of String.
func (id ID128) Format(f fmt.State, verb rune) {
	var v any = id.String()
	switch {
	case verb == 'v' && f.Flag('#'):
		v = [16]byte(id)
	case printsNumber(f, verb):
		v = new(big.Int).SetBytes(id[:])
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), v)
}
