// Package typed writes IDs with the type of what they identify in front:
// order_03887nf7a8003.
//
// The text is a prefix, an underscore and the ID in Crockford's base32, in
// lower case: 13 digits for 64 bits, 26 for 128. Texts of one prefix sort like
// their IDs. With a 128-bit ID of the layout uuidv7 the text is a TypeID,
// version 0.3; the same rules hold for all other IDs, which are not TypeIDs.
//
// To bind a prefix to a Go type, declare a kind once:
//
//	type order struct{}
//
//	func (order) Prefix() string { return "order" }
//
//	type OrderID = typed.ID[order]
//
// An OrderID converts from and to a firn.ID. In JSON and as text it is typed,
// and in SQL it is the number. ParseID[order] reads the text; that of another
// kind is an error. Append, Text and Parse are for prefixes that are not known
// when the program is compiled.
package typed

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/short"
)

// A Kind is a type of things that IDs identify. Its prefix must be valid, see
// CheckPrefix, and must never change.
type Kind interface{ Prefix() string }

// An ID is a 64-bit ID of one kind. Its text is typed. Values compare and sort
// like a firn.ID, and the zero ID means no ID. In SQL it is NULL. In JSON it is
// a text of zeros, such as "order_0000000000000", which parses without an
// error: mark fields that may have no ID with omitzero, and check IsZero.
type ID[K Kind] firn.ID

// An ID128 is a 128-bit ID of one kind.
type ID128[K Kind] firn.ID128

// ParseID parses the typed text of an ID of the kind, as strictly as Parse.
func ParseID[K Kind](text string) (ID[K], error) {
	id, err := Parse[firn.ID](prefixOf[K](), text)
	return ID[K](id), err
}

// ParseID128 parses the typed text of an ID128 of the kind, as strictly as
// Parse.
func ParseID128[K Kind](text string) (ID128[K], error) {
	id, err := Parse[firn.ID128](prefixOf[K](), text)
	return ID128[K](id), err
}

// String returns the typed text.
func (id ID[K]) String() string { return Text(prefixOf[K](), firn.ID(id)) }

// String returns the typed text.
func (id ID128[K]) String() string { return Text(prefixOf[K](), firn.ID128(id)) }

// Format implements fmt.Formatter: %v, %s and %q print the typed text, and all
// other verbs what they print of a firn.ID.
func (id ID[K]) Format(f fmt.State, verb rune) { format(f, verb, id, firn.ID(id)) }

// Format implements fmt.Formatter: %v, %s and %q print the typed text, and all
// other verbs what they print of a firn.ID128.
func (id ID128[K]) Format(f fmt.State, verb rune) { format(f, verb, id, firn.ID128(id)) }

func format(f fmt.State, verb rune, id fmt.Stringer, plain fmt.Formatter) {
	switch {
	case verb == 'v' && !f.Flag('#'), verb == 's', verb == 'q':
		fmt.Fprintf(f, fmt.FormatString(f, verb), id.String())
	default:
		plain.Format(f, verb)
	}
}

// Compare returns -1, 0 or 1 as id is less than, equal to or greater than
// other.
func (id ID128[K]) Compare(other ID128[K]) int { return firn.ID128(id).Compare(firn.ID128(other)) }

// IsZero reports whether id is the zero ID.
func (id ID[K]) IsZero() bool { return id == 0 }

// IsZero reports whether id is the zero ID128.
func (id ID128[K]) IsZero() bool { return id == ID128[K]{} }

// MarshalText returns the typed text. The error is that of CheckPrefix.
func (id ID[K]) MarshalText() ([]byte, error) {
	return Append(nil, prefixOf[K](), firn.ID(id)), CheckPrefix(prefixOf[K]())
}

// MarshalText returns the typed text. The error is that of CheckPrefix.
func (id ID128[K]) MarshalText() ([]byte, error) {
	return Append(nil, prefixOf[K](), firn.ID128(id)), CheckPrefix(prefixOf[K]())
}

// UnmarshalText sets id from its typed text. On error, id is unchanged.
func (id *ID[K]) UnmarshalText(text []byte) error {
	v, err := ParseID[K](string(text))
	if err == nil {
		*id = v
	}
	return err
}

// UnmarshalText sets id from its typed text. On error, id is unchanged.
func (id *ID128[K]) UnmarshalText(text []byte) error {
	v, err := ParseID128[K](string(text))
	if err == nil {
		*id = v
	}
	return err
}

// Value returns what database/sql stores: the number, as firn.ID.Value does.
func (id ID[K]) Value() (driver.Value, error) { return firn.ID(id).Value() }

// Value returns what database/sql stores: the UUID, as firn.ID128.Value does.
func (id ID128[K]) Value() (driver.Value, error) { return firn.ID128(id).Value() }

// Scan sets id from a column of numbers, as firn.ID.Scan does.
func (id *ID[K]) Scan(src any) error { return (*firn.ID)(id).Scan(src) }

// Scan sets id from a column of UUIDs, as firn.ID128.Scan does.
func (id *ID128[K]) Scan(src any) error { return (*firn.ID128)(id).Scan(src) }

func prefixOf[K Kind]() string {
	var kind K
	return kind.Prefix()
}

// maxPrefix is the maximum length of a prefix.
const maxPrefix = 63

// CheckPrefix returns an error if prefix is not 1 to 63 characters of a-z and
// _, beginning and ending with a letter.
func CheckPrefix(prefix string) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("typed: prefix %.80q %s; a prefix has 1 to %d characters of a-z and _, and begins and "+
			"ends with a letter",
			prefix, fmt.Sprintf(format, args...), maxPrefix)
	}
	switch {
	case prefix == "":
		return fail("is empty")
	case len(prefix) > maxPrefix:
		return fail("has %d characters", len(prefix))
	}
	for i, r := range prefix {
		if (r < 'a' || r > 'z') && r != '_' {
			return fail("has %q at offset %d", r, i)
		}
	}
	if prefix[0] == '_' || prefix[len(prefix)-1] == '_' {
		return fail("begins or ends with an underscore")
	}
	return nil
}

// The numbers of digits of an ID with 64 and with 128 bits.
const (
	digits64  = 13
	digits128 = 26
)

// Text returns the typed text of an ID, as Append appends it.
func Text[I firn.AnyID](prefix string, id I) string { return string(Append(nil, prefix, id)) }

// Append appends the typed text of an ID to b. With an empty prefix, that is
// only the digits. Append does not check the prefix.
func Append[I firn.AnyID](b []byte, prefix string, id I) []byte {
	if prefix != "" {
		b = append(append(b, prefix...), '_')
	}
	n := len(b)
	switch id := any(id).(type) {
	case firn.ID:
		b = firn.Base32.Append(b, id)
	case firn.ID128:
		b = firn.Base32.Append128(b, id)
	}
	for i := n; i < len(b); i++ {
		b[i] |= 0x20 // lower case; digits have this bit
	}
	return b
}

// Parse parses a typed text with that prefix; a text without a prefix has only
// the digits, and is for the empty prefix. It is strict: digits are in lower
// case, and there are exactly 13 of them for an ID of 64 bits, and 26 for one
// of 128. The error is a *firn.ParseError.
func Parse[I firn.AnyID](prefix, text string) (id I, err error) {
	got, digits, err := Cut(text)
	fail := func(pos int, format string, args ...any) (I, error) {
		var zero I
		return zero, &firn.ParseError{What: "typed ID", Text: text, Pos: pos, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case err != nil:
		return id, err
	case got != prefix:
		return fail(0, "its prefix is %q, not %q", got, prefix)
	}
	switch id := any(&id).(type) {
	case *firn.ID:
		if len(digits) != digits64 {
			return fail(-1, "it has 128 bits after the prefix, not 64")
		}
		*id, err = firn.Base32.Parse(digits)
	case *firn.ID128:
		if len(digits) != digits128 {
			return fail(-1, "it has 64 bits after the prefix, not 128")
		}
		*id, err = firn.Base32.Parse128(digits)
	}
	return id, err
}

// Cut returns the prefix and the digits of a typed text that Parse accepts with
// this prefix: 13 digits for a firn.ID, or 26 for a firn.ID128.
func Cut(text string) (prefix, digits string, err error) {
	fail := func(pos int, format string, args ...any) (string, string, error) {
		return "", "", &firn.ParseError{
			What: "typed ID", Text: short.Text(text), Pos: pos, Reason: fmt.Sprintf(format, args...),
		}
	}
	last := strings.LastIndexByte(text, '_')
	if last >= 0 {
		prefix = text[:last]
		if strings.HasPrefix(prefix, "v") && len(prefix) > 1 && strings.Trim(prefix[1:], "0123456789") == "" {
			return fail(0, "it is a veiled ID, which package veil reads with its key")
		}
		if err := CheckPrefix(prefix); err != nil {
			return fail(0, "%s", strings.TrimPrefix(err.Error(), "typed: "))
		}
	}
	start := last + 1
	digits = text[start:]
	for i, r := range digits {
		if r < utf8.RuneSelf && strings.IndexByte(alphabet, byte(r)) >= 0 {
			continue
		}
		pos := start + i
		switch lower := r | 0x20; {
		case r < utf8.RuneSelf && strings.IndexByte(alphabet, byte(lower)) >= 0 && r >= 'A':
			return fail(pos, "%q at offset %d is in upper case; it may mean %q", r, pos, lower)
		case lower == 'i' || lower == 'l':
			return fail(pos, "%q at offset %d is not a digit; it may mean '1'", r, pos)
		case lower == 'o':
			return fail(pos, "%q at offset %d is not a digit; it may mean '0'", r, pos)
		case lower == 'u':
			return fail(pos, "%q at offset %d is not a digit; it may mean 'v'", r, pos)
		}
		return fail(pos, "%q at offset %d is not a digit; digits are %s", r, pos, alphabet)
	}
	most := byte('7')
	switch len(digits) {
	case digits64:
		most = 'f'
	case digits128:
	default:
		return fail(-1, "it has %d digits after the prefix; an ID of 64 bits has %d, and one of 128 has %d",
			len(digits), digits64, digits128)
	}
	if digits[0] > most {
		return fail(start, "%q at offset %d is more than %q: the number does not fit %d bits",
			digits[0], start, most, 64*len(digits)/digits64)
	}
	return prefix, digits, nil
}

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
