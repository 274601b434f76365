package firn

import (
	"bytes"
	"database/sql/driver"
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// An ID is a unique 64-bit number. IDs compare as unsigned numbers, with == and
// <, and their big-endian bytes sort in the same order. If the time is the
// topmost field of the layout, that is the order of time.
//
// The zero ID means no ID: no generator makes it, and in SQL it is NULL. An ID
// is a plain value that can be a map key in Go and in JSON.
//
// The text form of an ID is decimal. In JSON it is a decimal string, because
// JavaScript and many JSON decoders round numbers above 2^53. See Format for
// other text forms.
type ID uint64

// ParseID parses an ID from 1 to 20 decimal digits, or from 0x and 1 to 16
// hexadecimal digits of either case. Leading zeros count as digits. Signs,
// spaces and underscores are not allowed. The error is a *ParseError.
func ParseID(s string) (ID, error) { return parseID([]byte(s)) }

// parseID neither keeps nor changes text, so the conversion in ParseID costs
// nothing.
func parseID(text []byte) (ID, error) {
	f := textFormat(text)
	base, _ := f.base()
	if v, ok := base.Parse64(text[f.prefixLen(text):]); ok {
		return ID(v), nil
	}
	return 0, hintHex(f.parseError("ID", text, 64))
}

// textFormat returns Hex for a text that begins with 0x, and Decimal otherwise.
func textFormat(text []byte) Format {
	if hasHexPrefix(text) {
		return Hex
	}
	return Decimal
}

// hintHex extends the error for hexadecimal digits without a prefix, or with
// 0X.
func hintHex(err *ParseError) *ParseError {
	if err.Pos < 0 || err.Pos >= len(err.Text) {
		return err
	}
	switch c := err.Text[err.Pos] | 0x20; {
	case c >= 'a' && c <= 'f' || c == 'x' && err.Pos == 1:
		err.Reason += "; hexadecimal begins with 0x"
	}
	return err
}

// IsZero reports whether id is the zero ID. encoding/json calls it for fields
// with the option omitzero.
func (id ID) IsZero() bool { return id == 0 }

// String returns id in decimal.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// MarshalText returns id in decimal. The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return Decimal.Append(make([]byte, 0, 20), id), nil }

// UnmarshalText sets id from a text that ParseID accepts. On error, id is
// unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	v, err := parseID(text)
	if err == nil {
		*id = v
	}
	return err
}

// MarshalJSON returns id as a JSON string of decimal digits. The error is
// always nil.
func (id ID) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 22), '"')
	return append(Decimal.Append(b, id), '"'), nil
}

// UnmarshalJSON sets id from a JSON string that ParseID accepts, or from a JSON
// integer, which is read without rounding. A number with a fraction, an
// exponent or a sign is an error. JSON null and errors leave id unchanged.
func (id *ID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	return id.UnmarshalText(jsonText(data))
}

// MarshalBinary returns the 8 bytes of id, big-endian. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return Raw.Append(make([]byte, 0, 8), id), nil }

// UnmarshalBinary sets id from exactly 8 bytes, big-endian. On error, id is
// unchanged.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != 8 {
		return Raw.parseError("binary ID", data, 64)
	}
	*id = ID(binary.BigEndian.Uint64(data))
	return nil
}

// Value returns the value that database/sql stores: NULL for the zero ID, and
// an int64 for any other. An ID of 2^63 or more is an error, because no SQL
// bigint can hold it; layouts whose top bit is zero never make one.
//
// For a text column, pass id.String(): pgx rejects an integer there. A primary
// key in GORM needs the tag autoIncrement:false. See docs/orm.md.
func (id ID) Value() (driver.Value, error) {
	switch {
	case id == 0:
		return nil, nil
	case id > math.MaxInt64:
		err := &RangeError{"ID", id.String(), "0", ID(math.MaxInt64).String()}
		return nil, fmt.Errorf("%w in SQL's bigint: store its String in a numeric column, or its MarshalBinary in a "+
			"bytea or binary(8) column", err)
	}
	return int64(id), nil
}

// Scan sets id from a column. NULL gives the zero ID, an integer must not be
// negative, and a string is parsed by ParseID. A []byte of exactly 8 bytes is
// the big-endian ID, and one of any other length is text: MySQL's text protocol
// sends a bigint as its digits. Only a number below 10^8 has a text of 8 bytes:
// in the layout default, an ID of the first 24 ms after the epoch. On error, id
// is unchanged.
func (id *ID) Scan(src any) error {
	return scan("ID", 8, src, id, func(n uint64) { *id = ID(n) })
}

// scan implements Scan for an ID of size bytes. It sets an integer with number.
func scan(what string, size int, src any, id interface {
	encoding.TextUnmarshaler
	encoding.BinaryUnmarshaler
}, number func(uint64)) error {
	switch src := src.(type) {
	case nil:
		number(0)
	case int64:
		if src < 0 {
			return id.UnmarshalText(strconv.AppendInt(nil, src, 10)) // an error about the sign
		}
		number(uint64(src))
	case uint64:
		number(src)
	case string:
		return id.UnmarshalText([]byte(src))
	case []byte:
		if len(src) == size {
			return id.UnmarshalBinary(src)
		}
		return id.UnmarshalText(src)
	default:
		return fmt.Errorf("firn: scan %s: a column of type %T is not an ID; it should be an integer, text or %d bytes",
			what, src, size)
	}
	return nil
}

// jsonText returns the text of an ID in JSON: the contents of a string, or the
// digits of an integer. The text may alias data.
func jsonText(data []byte) (text []byte) {
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return data
	}
	text = data[1 : len(data)-1]
	if bytes.IndexByte(text, '\\') >= 0 { // no ID needs it, but an encoder may do so
		if plain, err := strconv.Unquote(string(data)); err == nil {
			text = []byte(plain)
		}
	}
	return text
}

// Format implements fmt.Formatter: %d, %b, %o, %O, %x and %X print the number,
// with the flags of integers; %v, %s and %q print the text of String.
func (id ID) Format(f fmt.State, verb rune) {
	var v any = id.String()
	if printsNumber(f, verb) {
		v = uint64(id)
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), v)
}

// printsNumber reports whether a verb prints the number instead of the text.
func printsNumber(f fmt.State, verb rune) bool {
	switch verb {
	case 'd', 'b', 'o', 'O', 'x', 'X':
		return true
	case 'v':
		return f.Flag('#') // as a number in Go syntax
	}
	return false
}
