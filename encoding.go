package firn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/firnid/firn/internal/basen"
)

// A Format is a way to write IDs: in a number base with a given alphabet, with
// as many digits as the number needs or a fixed width, or as bytes.
//
// The zero Format is Decimal. Formats compare with ==, and two that read and
// write the same texts are equal. A Format prints and parses as its name, which
// is the same in Go, in flags, in configuration and on the wire. The numeric
// value of a Format may change between versions; store the name.
//
//	name             digits                                  default      64 bits  128 bits
//	dec              0-9                                     short        20       39
//	hex              0-9a-f                                  fixed width  16       32
//	bin              01                                      fixed width  64       128
//	base32           Crockford's: 0-9A-Z without I, L, O, U  fixed width  13       26
//	base36           0-9A-Z                                  short        13       25
//	base58           Bitcoin's: 1-9A-Za-z without I, O, l    short        11       22
//	base62           0-9A-Za-z                               short        11       22
//	base2 … base62   the first n of 0-9A-Za-z                short
//	flake32 flake58  the first 32 or 58 of 0-9A-Za-z         short
//	uuid             0-9a-f, in the form 8-4-4-4-12          fixed width  none     36
//	raw              big-endian bytes                        fixed width  8        16
//
// The last two columns are the lengths of a text of fixed width. A short text
// has no leading zeros; the number 0 is a single zero digit. The suffixes
// -fixed and -short select a width: base62-fixed, hex-short.
//
// The names base2 to base62 are the bases of Boundary's flake. Since base32 and
// base58 mean other alphabets, Boundary's are called flake32 and flake58. For
// any other base n, flaken is another name of basen.
type Format uint16

// Formats with their own names. ParseFormat returns those of other bases.
const (
	Decimal Format = 2 * iota // dec
	Hex                       // hex: lower case, fixed width
	Binary                    // bin: fixed width
	Base32                    // base32: Crockford's alphabet, fixed width
	Base36                    // base36: upper case
	Base58                    // base58: Bitcoin's alphabet
	Base62                    // base62: 0-9A-Za-z
	UUID                      // uuid: 8-4-4-4-12, lower case; for 128 bits only
	Raw                       // raw: 8 or 16 bytes, big-endian
)

// A formatInfo is what is known of an even Format and of the odd one after it,
// which is the same with the other width.
type formatInfo struct {
	name  string     // of the even one
	base  basen.Base // not for UUID and Raw
	fixed bool       // the width of the even one
}

// formats has the constants above and the other bases of Boundary's flake.
// formatNamed has their names without a suffix.
var formats, formatNamed = makeFormats()

func makeFormats() (all []formatInfo, named map[string]Format) {
	all = []formatInfo{
		Decimal / 2: {name: "dec", base: basen.Boundary(10)},
		Hex / 2:     {name: "hex", base: basen.Hex(), fixed: true},
		Binary / 2:  {name: "bin", base: basen.Boundary(2), fixed: true},
		Base32 / 2:  {name: "base32", base: basen.Crockford(), fixed: true},
		Base36 / 2:  {name: "base36", base: basen.Boundary(36)},
		Base58 / 2:  {name: "base58", base: basen.Bitcoin()},
		Base62 / 2:  {name: "base62", base: basen.Boundary(62)},
		UUID / 2:    {name: "uuid", fixed: true},
		Raw / 2:     {name: "raw", fixed: true},
	}
	for n := basen.Min; n <= basen.Max; n++ {
		switch n {
		case 2, 10, 36, 62: // are above
		case 32, 58: // mean other alphabets
			all = append(all, formatInfo{name: fmt.Sprint("flake", n), base: basen.Boundary(n)})
		default:
			all = append(all, formatInfo{name: fmt.Sprint("base", n), base: basen.Boundary(n)})
		}
	}
	named = map[string]Format{"base2": binaryShort, "base10": Decimal}
	for i, info := range all {
		named[info.name] = Format(2 * i)
	}
	for n := basen.Min; n <= basen.Max; n++ {
		if flake := fmt.Sprint("flake", n); n != 32 && n != 58 {
			named[flake] = named[fmt.Sprint("base", n)]
		}
	}
	return all, named
}

// binaryShort is Binary with the other width. Its name is base2.
const binaryShort = Binary + 1

// info returns what is known of f, or nil if it is not a format.
func (f Format) info() *formatInfo {
	if int(f/2) >= len(formats) || f == UUID+1 || f == Raw+1 {
		return nil
	}
	return &formats[f/2]
}

// isFixed reports whether f has a fixed width. It is a format.
func (f Format) isFixed() bool { return f.info().fixed != (f%2 == 1) }

// base returns the digits of f. It reports false for UUID and Raw, which are
// not number bases, and for an invalid Format.
func (f Format) base() (b basen.Base, ok bool) {
	if i := f / 2; int(i) < len(formats) && i != UUID/2 && i != Raw/2 {
		return formats[i].base, true
	}
	return b, false
}

// Fixed returns f with a fixed width: leading zeros pad a text to the width of
// the greatest ID. Such texts of IDs of one size, compared byte by byte, sort
// like the IDs, because all alphabets are in ASCII order.
func (f Format) Fixed() Format {
	if f.info() != nil && !f.isFixed() {
		return f ^ 1
	}
	return f
}

// Fits returns nil if f can write and read IDs with that many bits, 64 or 128,
// and otherwise an error that explains why not. All formats fit both sizes,
// except UUID, which is only for 128 bits.
func (f Format) Fits(bits int) error {
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
	name, width, hasWidth := strings.Cut(s, "-")
	f, ok := formatNamed[name]
	if ok && hasWidth && f.isFixed() != (width == "fixed") {
		f ^= 1
	}
	if ok && f.info() != nil && (!hasWidth || width == "fixed" || width == "short") {
		return f, nil
	}
	return 0, newParseError("format", []byte(s), -1, "unknown format; the formats are dec, hex, bin, base2 to base62 "+
		"(base32 is Crockford's, base58 Bitcoin's), flake32, flake58, uuid and raw, each with the suffix -fixed or -short if wanted")
}

// String returns the name of f, and "Format(n)" if f is not a format.
func (f Format) String() string {
	info := f.info()
	switch {
	case info == nil:
		return "Format(" + strconv.Itoa(int(f)) + ")"
	case f == binaryShort:
		return "base2"
	case f%2 == 0:
		return info.name
	case info.fixed:
		return info.name + "-short"
	}
	return info.name + "-fixed"
}

// MarshalText returns the name of f. It is an error if f is not a format.
func (f Format) MarshalText() ([]byte, error) {
	return []byte(f.String()), f.Fits(128)
}

// UnmarshalText sets f to the format that ParseFormat returns.
func (f *Format) UnmarshalText(text []byte) error {
	g, err := ParseFormat(string(text))
	if err == nil {
		*f = g
	}
	return err
}

// Append appends id in format f to b. It panics if f does not fit 64-bit IDs;
// see Fits.
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
		panic(f.Fits(64).Error())
	}
	return base.Append64(b, v, f.isFixed())
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
		panic(f.Fits(128).Error())
	}
	return base.Append128(b, hi, lo, f.isFixed())
}

// Parse parses an ID in format f. It accepts the short text and a text with
// leading zeros up to the fixed width, whichever of the two f writes. Hex may
// begin with 0x. Hex, Base32 and the bases up to 36 accept letters of either
// case. Any other text is a *ParseError, and so is a number that needs more
// than 64 bits.
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
		if v, ok := base.Parse64(text[f.prefix(text):]); ok {
			return ID(v), nil
		}
	}
	if f == Raw && len(text) == 8 {
		return ID(binary.BigEndian.Uint64(text)), nil
	}
	return 0, f.fault(f.String()+" ID", text, 64)
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
		if hi, lo, ok := base.Parse128(text[f.prefix(text):]); ok {
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
	return ID128{}, f.fault(f.String()+" ID128", text, 128)
}

// prefix returns the number of bytes at the start of text that are not digits:
// those of 0x, which only Hex may have.
func (f Format) prefix(text []byte) int {
	if f&^1 == Hex && hasHexPrefix(text) {
		return 2
	}
	return 0
}

func hasHexPrefix(text []byte) bool {
	return len(text) >= 2 && text[0] == '0' && text[1] == 'x'
}

// fault returns the error for a text that f rejects as an ID with that many
// bits.
func (f Format) fault(what string, text []byte, bits int) *ParseError {
	fail := func(pos int, format string, args ...any) *ParseError {
		return newParseError(what, text, pos, fmt.Sprintf(format, args...))
	}
	if err := f.Fits(bits); err != nil {
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
	skip := f.prefix(text)
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
		switch kind := f &^ 1; {
		case pos == 0 && (r == '-' || r == '+'):
			return fail(pos, "%s is a sign; IDs have none", at)
		case kind == Decimal && slices.Contains(text, '_'):
			return fail(pos, "%s is not a decimal digit; a text with _ is a typed or a veiled ID", at)
		case kind == Decimal:
			return fail(pos, "%s is not a decimal digit", at)
		case kind == Hex:
			return fail(pos, "%s is not a hexadecimal digit", at)
		case kind == Base32 && strings.ContainsRune("ILOUilou", r):
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

// newParseError returns a ParseError with a copy of text, truncated if it is
// long.
func newParseError(what string, text []byte, pos int, reason string) *ParseError {
	const most = 256
	return &ParseError{What: what, Text: string(text[:min(len(text), most)]), Pos: pos, Reason: reason}
}
