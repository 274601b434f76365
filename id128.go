package firn

import (
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"slices"

	"github.com/firnid/firn/internal/basen"
)

// An ID128 is a unique number of 128 bits, as its 16 bytes, big-endian. IDs
// are compared as unsigned numbers, with == and Compare, which is the order of
// the bytes. Where the layout has its time on top, that is the order of time.
//
// The zero ID128 means no ID; none is ever made with this value. It is NULL in
// SQL. An ID128 is a plain value, and a map key in Go and in JSON.
//
// As text an ID128 has the form of a UUID, 8-4-4-4-12. It converts to and from
// the UUID types of most packages, as they are also arrays of 16 bytes:
// uuid.UUID(id), firn.ID128(u). Whether it is a UUID by RFC 9562, with version
// and variant, is a matter of the layout. A Format writes and reads other
// texts.
type ID128 [16]byte

// ParseID128 reads an ID of 128 bits from the form 8-4-4-4-12 (36 characters,
// letters of either case), from 1 to 39 decimal digits, or from 0x and 1 to 32
// hexadecimal digits. Leading zeros count as digits. There are no signs,
// spaces, underscores or braces. The error is a *ParseError.
func ParseID128(s string) (ID128, error) { return parseID128([]byte(s)) }

func parseID128(text []byte) (ID128, error) {
	if hi, lo, ok := basen.ParseUUID(text); ok {
		return ID128FromUint64s(hi, lo), nil
	}
	f := textFormat(text)
	base, _ := f.base()
	skip := f.prefix(text)
	if hi, lo, ok := base.Parse128(text[skip:]); ok {
		return ID128FromUint64s(hi, lo), nil
	}
	// A dash tells which form was meant; at the start it is a sign.
	if slices.Index(text, '-') > 0 {
		return ID128{}, UUID.fault("ID128", text, 0, 128)
	}
	return ID128{}, hintHex(f.fault("ID128", text, skip, 128))
}

// ID128FromUint64s returns the ID with the number hi<<64 | lo.
func ID128FromUint64s(hi, lo uint64) ID128 {
	var id ID128
	id.put(wide{hi, lo})
	return id
}

// put sets id where it is, which costs less than to make it and copy it there.
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

// AppendText appends id to b in the form 8-4-4-4-12. The error is always nil.
func (id ID128) AppendText(b []byte) ([]byte, error) { return UUID.Append128(b, id), nil }

// MarshalText returns id in the form 8-4-4-4-12. The error is always nil.
func (id ID128) MarshalText() ([]byte, error) { return id.AppendText(make([]byte, 0, 36)) }

// UnmarshalText sets id from a text as ParseID128 reads it. On an error id
// stays as it was.
func (id *ID128) UnmarshalText(text []byte) error {
	v, err := parseID128(text)
	if err != nil {
		return err
	}
	*id = v
	return nil
}

// MarshalJSON returns id as a JSON string in the form 8-4-4-4-12. The error is
// always nil.
func (id ID128) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 38), '"')
	return append(UUID.Append128(b, id), '"'), nil
}

// UnmarshalJSON sets id from a JSON string as ParseID128 reads it, or from a
// JSON integer, which is read exactly: a fraction, an exponent and a sign are
// errors. JSON null leaves id as it was, and so does an error.
func (id *ID128) UnmarshalJSON(data []byte) error {
	text, null, err := jsonText("ID128", data)
	if err != nil || null {
		return err
	}
	return id.UnmarshalText(text)
}

// AppendBinary appends the 16 bytes of id to b. The error is always nil.
func (id ID128) AppendBinary(b []byte) ([]byte, error) { return append(b, id[:]...), nil }

// MarshalBinary returns the 16 bytes of id. The error is always nil.
func (id ID128) MarshalBinary() ([]byte, error) { return id.AppendBinary(make([]byte, 0, 16)) }

// UnmarshalBinary sets id from exactly 16 bytes. On an error id stays as it
// was.
func (id *ID128) UnmarshalBinary(data []byte) error {
	if len(data) != 16 {
		return Raw.fault("binary ID128", data, 0, 128)
	}
	*id = ID128(data)
	return nil
}

// Value returns what database/sql stores: NULL for the zero ID128, else its
// text, which fits a uuid, text or char(36) column. For a bytea or binary(16)
// column store its MarshalBinary.
func (id ID128) Value() (driver.Value, error) {
	if id.IsZero() {
		return nil, nil
	}
	return id.String(), nil
}

// Scan sets id from a column: NULL gives the zero ID128, an integer must not be
// negative, a string is read as ParseID128 reads it. Of []byte, exactly 16
// bytes are the ID, and any other length is text: some drivers send text
// columns as []byte, and an ID whose text has exactly 16 characters is below
// 2^56, without a time. On an error id stays as it was.
func (id *ID128) Scan(src any) error {
	return scan("ID128", 16, src, id, func(n uint64) { *id = ID128FromUint64s(0, n) })
}
