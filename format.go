package firn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/firnid/firn/internal/basen"
	"github.com/firnid/firn/internal/short"
)

// A Format is a way to write IDs: in a number base with a given alphabet, or as
// bytes.
//
// The zero Format is Decimal. Formats compare with ==, and two that read and
// write the same texts are equal. A Format prints and parses as its name, which
// is the same in Go, in flags, in configuration and on the wire. The numeric
// value of a Format may change between versions; store the name.
//
//	name               digits                                  64 bits  128 bits
//	dec                0-9                                     short    short
//	hex                0-9a-f                                  16       32
//	bin                01                                      64       128
//	base32             Crockford's: 0-9A-Z without I, L, O, U  13       26
//	base36             0-9A-Z                                  13       25
//	base58             Bitcoin's: 1-9A-Za-z without I, O, l    11       22
//	base62             0-9A-Za-z                               11       22
//	base2 … base62     the first n of 0-9A-Za-z                …        …
//	flake2 … flake62   the first n of 0-9A-Za-z                short    short
//	uuid               0-9a-f, in the form 8-4-4-4-12          none     36
//	raw                big-endian bytes                        8        16
//
// The last two columns are the lengths of texts. Texts of one length, compared
// byte by byte, sort like the IDs, because all alphabets are in ASCII order. A
// short text has no leading zeros, so it sorts first when IDs have grown by a
// digit; the number 0 is a single zero digit.
//
// The names flake2 to flake62 are the bases of Boundary's flake, whose texts
// are short. bin is also base2, and dec also flake10.
type Format uint16

// Formats with their own names. ParseFormat returns those of other bases.
const (
	Decimal Format = iota // dec: short
	Hex                   // hex: lower case
	Binary                // bin
	Base32                // base32: Crockford's alphabet
	Base36                // base36: upper case
	Base58                // base58: Bitcoin's alphabet
	Base62                // base62: 0-9A-Za-z
	UUID                  // uuid: 8-4-4-4-12, lower case; for 128 bits only
	Raw                   // raw: 8 or 16 bytes, big-endian
)

// A formatInfo is what is known of a Format.
type formatInfo struct {
	name  string     // "base" or "flake" for those without a constant
	base  basen.Base // not for UUID and Raw
	fixed bool
	n     int // the number behind the name, or 0
}

// formats has the constants above and the other bases.
var formats = makeFormats()

func makeFormats() []formatInfo {
	all := append(make([]formatInfo, 0, 2*basen.Max), []formatInfo{
		Decimal: {"dec", basen.Boundary(10), false, 0},
		Hex:     {"hex", basen.Hex(), true, 0},
		Binary:  {"bin", basen.Boundary(2), true, 0},
		Base32:  {"base32", basen.Crockford(), true, 0},
		Base36:  {"base36", basen.Boundary(36), true, 0},
		Base58:  {"base58", basen.Bitcoin(), true, 0},
		Base62:  {"base62", basen.Boundary(62), true, 0},
		UUID:    {"uuid", basen.Base{}, true, 0},
		Raw:     {"raw", basen.Base{}, true, 0},
	}...)
	for n := basen.Min; n <= basen.Max; n++ {
		switch n {
		case 2, 32, 36, 58, 62: // are above
		default:
			all = append(all, formatInfo{"base", basen.Boundary(n), true, n})
		}
		if n != 10 { // is dec
			all = append(all, formatInfo{"flake", basen.Boundary(n), false, n})
		}
	}
	return all
}

// formatNamed returns the formats by name. Most programs need few of the names,
// or none, so they are not made at the start of each.
var formatNamed = sync.OnceValue(func() map[string]Format {
	named := map[string]Format{"base2": Binary, "flake10": Decimal}
	for f := range Format(len(formats)) {
		named[f.String()] = f
	}
	return named
})

// base returns the digits of f. It reports false for UUID and Raw, which are
// not number bases, and for an invalid Format.
func (f Format) base() (b basen.Base, ok bool) {
	if int(f) < len(formats) && f != UUID && f != Raw {
		return formats[f].base, true
	}
	return b, false
}

// Fixed reports whether all texts of IDs of one size have one length, so that
// they sort like the IDs.
func (f Format) Fixed() bool { return int(f) < len(formats) && formats[f].fixed }

// CheckBits returns nil if f can write and read IDs with that many bits, 64 or
// 128, and otherwise an error that explains why not. All formats fit both
// sizes, except UUID, which is only for 128 bits.
func (f Format) CheckBits(bits int) error {
	if bits != 64 && bits != 128 {
		return fmt.Errorf("firn: IDs have 64 or 128 bits, not %d", bits)
	}
	if _, ok := f.base(); ok || f == Raw || f == UUID && bits == 128 {
		return nil
	}
	if f == UUID {
		return errors.New("firn: format uuid is for 128-bit IDs; a 64-bit ID can be written as hex or base32")
	}
	return fmt.Errorf("firn: %v is not a format; make one with ParseFormat", f)
}

// ParseFormat returns the format with that name; see Format. Names are
// lower-case. The error is a *ParseError that lists the names.
func ParseFormat(s string) (Format, error) {
	if f, ok := formatNamed()[s]; ok {
		return f, nil
	}
	return 0, &ParseError{What: "format", Text: short.Text(s), Pos: -1,
		Reason: "unknown format; the formats are dec, hex, bin, uuid, raw, base2 to base62 " +
			"(base32 is Crockford's, base58 Bitcoin's) and, without leading zeros, flake2 to flake62"}
}

// String returns the name of f, and "Format(n)" if f is not a format.
func (f Format) String() string {
	if int(f) >= len(formats) {
		return "Format(" + strconv.Itoa(int(f)) + ")"
	}
	info := &formats[f]
	if info.n == 0 {
		return info.name
	}
	return info.name + strconv.Itoa(info.n)
}

// MarshalText returns the name of f. It is an error if f is not a format.
func (f Format) MarshalText() ([]byte, error) {
	return []byte(f.String()), f.CheckBits(128)
}

// UnmarshalText sets f to the format that ParseFormat returns.
func (f *Format) UnmarshalText(text []byte) error {
	g, err := ParseFormat(string(text))
	if err == nil {
		*f = g
	}
	return err
}

// Text returns id in format f. Like Append, it panics if f does not fit 64-bit
// IDs.
func (f Format) Text(id ID) string { return string(f.Append(nil, id)) }

// Text128 returns id in format f. It panics if f is not a format.
func (f Format) Text128(id ID128) string { return string(f.Append128(nil, id)) }

// Append appends id in format f to b. It panics if f does not fit 64-bit IDs;
// see CheckBits.
func (f Format) Append(b []byte, id ID) []byte {
	v := uint64(id)
	switch f {
	case Decimal:
		return basen.AppendDec(b, v)
	case Hex:
		return basen.AppendHex64(b, v)
	case Base32:
		return basen.AppendCrockford64(b, v)
	case Raw:
		return binary.BigEndian.AppendUint64(b, v)
	}
	base, ok := f.base()
	if !ok {
		panic(f.CheckBits(64).Error())
	}
	return base.Append64(b, v, f.Fixed())
}

// Append128 appends id in format f to b. It panics if f is not a format.
func (f Format) Append128(b []byte, id ID128) []byte {
	hi, lo := id.Uint64s()
	switch f {
	case UUID:
		return basen.AppendUUID(b, hi, lo)
	case Hex:
		return basen.AppendHex64(basen.AppendHex64(b, hi), lo)
	case Base32:
		return basen.AppendCrockford128(b, hi, lo)
	case Raw:
		return append(b, id[:]...)
	}
	base, ok := f.base()
	if !ok {
		panic(f.CheckBits(128).Error())
	}
	return base.Append128(b, hi, lo, f.Fixed())
}

// Parse parses an ID in format f. Leading zeros may be missing, or be more than
// f writes, up to the length of the greatest ID. Hex may begin with 0x. Hex,
// Base32 and the bases up to 36 accept letters of either case. Any other text
// is a *ParseError, and so is a number that needs more than 64 bits.
func (f Format) Parse(s string) (ID, error) { return f.parse([]byte(s)) }

// parse neither keeps nor changes text, so the conversion in Parse costs
// nothing.
func (f Format) parse(text []byte) (ID, error) {
	switch f { // the most common texts; what these cases reject is tried again below
	case Base32:
		if v, ok := basen.ParseCrockford64(text); ok {
			return ID(v), nil
		}
	case Hex:
		if v, ok := basen.ParseHex64(text); ok {
			return ID(v), nil
		}
	}
	if base, ok := f.base(); ok {
		if v, ok := base.Parse64(text[f.prefixLen(text):]); ok {
			return ID(v), nil
		}
	}
	if f == Raw && len(text) == 8 {
		return ID(binary.BigEndian.Uint64(text)), nil
	}
	return 0, f.parseError(f.String()+" ID", text, 64)
}

// Parse128 parses a 128-bit ID in format f, as Parse does.
func (f Format) Parse128(s string) (ID128, error) { return f.parse128([]byte(s)) }

func (f Format) parse128(text []byte) (ID128, error) {
	switch {
	case f == Hex && len(text) == 32:
		hi, ok1 := basen.ParseHex64(text[:16])
		lo, ok2 := basen.ParseHex64(text[16:])
		if ok1 && ok2 {
			return ID128FromUint64s(hi, lo), nil
		}
	case f == Base32:
		if hi, lo, ok := basen.ParseCrockford128(text); ok {
			return ID128FromUint64s(hi, lo), nil
		}
	}
	if base, ok := f.base(); ok {
		if hi, lo, ok := base.Parse128(text[f.prefixLen(text):]); ok {
			return ID128FromUint64s(hi, lo), nil
		}
	}
	if f == UUID {
		if hi, lo, ok := basen.ParseUUID(text); ok {
			return ID128FromUint64s(hi, lo), nil
		}
	}
	if f == Raw && len(text) == 16 {
		return ID128(text), nil
	}
	return ID128{}, f.parseError(f.String()+" ID128", text, 128)
}

// prefixLen returns the number of bytes at the start of text that are not
// digits: those of 0x, which only Hex may have.
func (f Format) prefixLen(text []byte) int {
	if f == Hex && hasHexPrefix(text) {
		return 2
	}
	return 0
}

func hasHexPrefix(text []byte) bool {
	return len(text) >= 2 && text[0] == '0' && text[1] == 'x'
}

// parseError returns the error for a text that f rejects as an ID with that
// many bits.
func (f Format) parseError(what string, text []byte, bits int) *ParseError {
	fail := func(pos int, format string, args ...any) *ParseError {
		return &ParseError{What: what, Text: short.Text(text), Pos: pos, Reason: fmt.Sprintf(format, args...)}
	}
	if err := f.CheckBits(bits); err != nil {
		return fail(-1, "%s", strings.TrimPrefix(err.Error(), "firn: "))
	}
	switch f {
	case Raw:
		return fail(-1, "it has %d bytes; a %d-bit ID has exactly %d, big-endian", len(text), bits, bits/8)
	case UUID:
		return fail(-1, "it is not 36 characters in the form 8-4-4-4-12, of hexadecimal digits")
	}

	base, _ := f.base()
	width, greatest := base.Width64(), base.Append64(nil, 1<<64-1, false)
	if bits == 128 {
		width, greatest = base.Width128(), base.Append128(nil, 1<<64-1, 1<<64-1, false)
	}
	skip := f.prefixLen(text)
	digits := text[skip:]
	if len(digits) == 0 {
		reason := "it is empty"
		if skip > 0 {
			reason = "nothing follows the 0x"
		}
		return fail(-1, "%s; a %d-bit ID has 1 to %d digits", reason, bits, width)
	}
	for i, r := range string(digits) {
		if r < utf8.RuneSelf && base.Has(byte(r)) {
			continue
		}
		pos := skip + i
		at := characterAt(text, pos)
		switch {
		case pos == 0 && (r == '-' || r == '+'):
			return fail(pos, "%s is a sign; IDs have none", at)
		case f == Decimal && slices.Contains(text, '_'):
			return fail(pos, "%s is not a decimal digit; a text with _ is a typed or a veiled ID", at)
		case f == Decimal:
			return fail(pos, "%s is not a decimal digit", at)
		case f == Hex:
			return fail(pos, "%s is not a hexadecimal digit", at)
		case f == Base32 && strings.ContainsRune("ILOUilou", r):
			return fail(pos, "%s is not a digit: Crockford's alphabet leaves out I, L, O and U: %s", at, base.Alphabet())
		}
		return fail(pos, "%s is not a digit of %v: they are %s", at, f, base.Alphabet())
	}
	if len(digits) > width {
		return fail(-1, "it has %d digits; a %d-bit ID has at most %d", len(digits), bits, width)
	}
	return fail(-1, "it is more than the greatest %d-bit ID, %s%s", bits, string(text[:skip]), greatest)
}

// characterAt describes the character of text at byte pos.
func characterAt(text []byte, pos int) string {
	r, _ := utf8.DecodeRune(text[pos:])
	return fmt.Sprintf("%q at offset %d", r, pos)
}
