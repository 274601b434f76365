package inspect

import (
	"cmp"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/typed"
	"github.com/firnid/firn/veil"
)

// An Encoding is a way to write an ID as text: a firn.Format, or a format that
// can only be read. The zero Encoding is auto: any encoding that fits the text.
// Encodings are plain values that can be compared with ==. They print as a name
// that ParseEncoding accepts: their own, except that objectid prints hex, which
// reads the same texts.
type Encoding struct {
	name   string // xid, ksuid, objectid or typed; "" for a format
	format firn.Format
	prefix string // of typed text; "" allows any
	veil   form.Veil
	isSet  bool
}

// As returns the Encoding of a format.
func As(f firn.Format) Encoding { return Encoding{format: f, isSet: true} }

// Typed returns the Encoding of typed text with a prefix, or with any prefix if
// it is empty.
func Typed(prefix string) Encoding { return Encoding{name: "typed", prefix: prefix, isSet: true} }

// Veiled returns the Encoding of veiled text.
func Veiled(v form.Veil) Encoding { return Encoding{name: "veiled", veil: v, isSet: true} }

// ParseEncoding parses the name of an encoding: auto, the name of a format (see
// firn.ParseFormat), or typed, veiled, xid, ksuid or objectid. ulid is another
// name of base32. Veiled text cannot be read without a key; see Veiled.
func ParseEncoding(name string) (Encoding, error) {
	switch name {
	case "auto":
		return Encoding{}, nil
	case "veiled":
		return Veiled(form.Veil{}), nil
	case "typed", "xid", "ksuid", "objectid":
		return Encoding{name: name, isSet: true}, nil
	case "ulid":
		return As(firn.Base32), nil
	}
	f, err := firn.ParseFormat(name)
	if err != nil {
		return Encoding{}, fmt.Errorf("%w, or one of auto, typed, veiled, ulid, xid, ksuid, objectid", err)
	}
	return As(f), nil
}

// IsTyped reports whether e is typed text.
func (e Encoding) IsTyped() bool { return e.name == "typed" }

// IsVeiled reports whether e is veiled text.
func (e Encoding) IsVeiled() bool { return e.name == "veiled" }

// IsAuto reports whether e is the zero Encoding.
func (e Encoding) IsAuto() bool { return !e.isSet }

// Format returns the format of e, if it is one.
func (e Encoding) Format() (firn.Format, bool) { return e.format, e.isSet && e.name == "" }

// String returns the name of e.
func (e Encoding) String() string {
	switch {
	case !e.isSet:
		return "auto"
	case e.name == "objectid":
		return "hex"
	case e.name != "":
		return e.name
	}
	return e.format.String()
}

// A number is a text read in an encoding.
type number struct {
	text     string
	encoding Encoding
	bytes    []byte // big-endian: 8, 12, 16 or 20
	about    string // what the text looks like, if that matters
	loose    bool   // the encoding fits many texts that are not IDs
}

func (n *number) bits() int { return 8 * len(n.bytes) }

// uint64 returns a number of 64 bits.
func (n *number) uint64() uint64 { return binary.BigEndian.Uint64(n.bytes) }

// A shape is a way in which texts of some lengths are read when the encoding is
// unknown.
type shape struct {
	encoding Encoding
	lengths  []int // nil for any
	bits     int   // 0: as many as the number needs
	loose    bool
	about    string
}

// shapes are what guess tries: first the encodings whose texts hardly look like
// anything else, then those whose texts are often a word, a name or a hash.
// Without 0x, only the full width distinguishes hexadecimal from other texts.
var shapes = []shape{
	{As(firn.Decimal), nil, 0, false, ""},
	{As(firn.Hex), []int{16}, 64, false, ""},
	{As(firn.Hex), []int{32}, 128, false, ""},
	{Encoding{name: "objectid", isSet: true}, []int{24, 40}, 0, false, "hexadecimal digits"},
	{As(firn.UUID), []int{36}, 128, false, "characters of a UUID, 8-4-4-4-12"},
	{Encoding{name: "xid", isSet: true}, []int{20}, 0, false, "digits of an xid"},
	{Encoding{name: "ksuid", isSet: true}, []int{27}, 0, false, "digits of a KSUID"},
	{As(firn.Binary), []int{64}, 64, false, "digits of base 2"},
	{As(firn.Binary), []int{128}, 128, false, "digits of base 2"},
	{As(firn.Base32), []int{13}, 64, true, "digits of Crockford's base 32"},
	{As(firn.Base32), []int{26}, 128, false, "digits of Crockford's base 32"},
	{As(firn.Base36), []int{11, 12, 13}, 64, true, "digits of base 36"},
	{As(firn.Base36), []int{22, 23, 24, 25}, 128, true, "digits of base 36"},
	{As(firn.Base58), []int{9, 10, 11}, 64, true, "digits of base 58"},
	{As(firn.Base58), []int{19, 20, 21, 22}, 128, true, "digits of base 58"},
	{As(firn.Base62), []int{9, 10, 11}, 64, true, "digits of base 62"},
	{As(firn.Base62), []int{18, 19, 20, 21, 22}, 128, true, "digits of base 62"},
}

// encodingNames are the names of the encodings of shapes.
const encodingNames = "dec, hex, objectid, uuid, xid, ksuid, bin, base32, base36, base58, base62"

// guess reads text in every encoding that it fits. bits is the size of the IDs,
// or 0 if it is unknown.
func guess(text string, bits int) (found []*number) {
	add := func(f shape, bits int) {
		b, err := f.encoding.decode(text, bits)
		if err != nil || bits != 0 && bits != 8*len(b) {
			return
		}
		n := &number{text: text, encoding: f.encoding, bytes: b, loose: f.loose}
		if f.about != "" {
			n.about = fmt.Sprintf("it has %d %s", len(text), f.about)
		}
		found = append(found, n)
	}
	if strings.Contains(text, "_") {
		if add(shape{encoding: Typed("")}, bits); len(found) > 0 {
			prefix, _, _ := typed.Cut(text)
			found[0].about = "it has the prefix " + prefix
		}
		return found
	}
	if strings.HasPrefix(text, "0x") {
		if add(shape{encoding: As(firn.Hex)}, bits); len(found) > 0 {
			return found // 0x leaves no other encoding
		}
	}
	if len(text) > 16 && text[0] != '0' && (bits == 0 || bits == 64) && isDigits(text) {
		if add(shapes[0], 64); len(found) > 0 {
			return found // so many digits are a decimal number
		}
	}
	for _, f := range shapes {
		if (f.lengths == nil || slices.Contains(f.lengths, len(text))) && (bits == 0 || f.bits == 0 || bits == f.bits) {
			add(f, max(bits, f.bits))
		}
	}
	return found
}

// decode reads text as an ID of 64 or 128 bits. If bits is 0, the text shows
// the size: that of a fixed width, otherwise the smallest that holds the number.
// Some encodings have IDs of 96 or 160 bits instead.
func (e Encoding) decode(text string, bits int) ([]byte, error) {
	if e.IsTyped() || e.IsVeiled() {
		id, err := e.decodeForm(text)
		if err == nil && bits != 0 && bits != 8*len(id) {
			err = fmt.Errorf("firn: %s has %d bits, not %d", Quote(text), 8*len(id), bits)
		}
		return id, err
	}
	if e.name != "" || e.format == firn.Hex && bits != 64 && bits != 128 {
		b := e.decodeLong(strings.TrimPrefix(text, "0x"))
		switch {
		case b != nil && (e.name != "" || bits == 0 || bits == 8*len(b)):
			return b, nil
		case e.name != "":
			return nil, fmt.Errorf("firn: parse ID %s: not a valid %s", Quote(text), map[string]string{
				"xid":      "xid, which has 20 digits of 0-9a-v and ends with 0 or g",
				"ksuid":    "KSUID, which has 27 digits of 0-9A-Za-z",
				"objectid": "ObjectID, which has 24 hexadecimal digits",
			}[e.name])
		}
	}
	switch {
	case bits == 96 || bits == 160:
		return nil, fmt.Errorf("firn: parse ID %s: not an ID of %d bits in %s", Quote(text), bits, e)
	case bits != 0:
		return parse(e.format, text, bits)
	case e.format.Fits(64) == nil && len(strings.TrimPrefix(text, "0x")) < len(e.format.Fixed().Append128(nil, firn.ID128{})):
		b, err := parse(e.format, text, 64)
		if err == nil {
			return b, nil
		}
		if b, wideErr := parse(e.format, text, 128); wideErr == nil {
			return b, nil
		}
		return nil, err
	}
	return parse(e.format, text, 128)
}

// decodeForm reads typed or veiled text.
func (e Encoding) decodeForm(text string) (ID, error) {
	if e.IsVeiled() {
		return e.decodeVeiled(text)
	}
	if k, ok := veil.Number(text); ok {
		return nil, fmt.Errorf("firn: %s is veiled with key %d, and can only be read with that key: see --veil-key-file of firn convert", Quote(text), k)
	}
	prefix, digits, err := typed.Cut(text)
	if err != nil {
		return nil, err
	}
	if prefix = cmp.Or(e.prefix, prefix); len(digits) == 26 {
		id, err := typed.Parse[firn.ID128](prefix, text)
		return id[:], err
	}
	id, err := typed.Parse[firn.ID](prefix, text)
	return firn.Raw.Append(nil, id), err
}

// decodeVeiled reads veiled text.
func (e Encoding) decodeVeiled(text string) (ID, error) {
	_, digits, _ := strings.Cut(text, "_")
	switch v := e.veil; {
	case v == form.Veil{}:
		return nil, fmt.Errorf("firn: %s cannot be read without the key of veiled IDs", Quote(text))
	case v.Of128 != nil && (v.Of64 == nil || len(digits) > 13):
		id, err := v.Of128.Parse128(text)
		return id[:], form.Plain(err)
	default:
		id, err := v.Of64.Parse(text)
		return firn.Raw.Append(nil, id), form.Plain(err)
	}
}

// parse parses an ID of 64 or 128 bits.
func parse(f firn.Format, text string, bits int) ([]byte, error) {
	if bits == 64 {
		id, err := f.Parse(text)
		return firn.Raw.Append(nil, id), err
	}
	id, err := f.Parse128(text)
	return id[:], err
}

// isPadded reports whether a text of decimal digits is hexadecimal: it has the
// full width of 16 or 32 digits, with leading zeros, which decimal numbers do
// not have.
func isPadded(text string) bool {
	return (len(text) == 16 || len(text) == 32) && text[0] == '0'
}

// ofDigits returns the encoding of a text of decimal digits.
func ofDigits(text string) Encoding {
	if isPadded(text) {
		return As(firn.Hex)
	}
	return As(firn.Decimal)
}

// isDigits reports whether text consists of decimal digits.
func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

var xidText = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// decodeLong reads an xid, a KSUID or, in hexadecimal, an ID of 96 or 160 bits.
// It returns nil if text is not one.
func (e Encoding) decodeLong(text string) []byte {
	switch {
	case e.name == "xid" && len(text) == 20:
		// The last digit has one bit of the ID and four zeros.
		if b, err := xidText.DecodeString(text); err == nil && xidText.EncodeToString(b) == text {
			return b
		}
	case e.name == "ksuid" && len(text) == 27 && strings.Trim(text, alphanumeric) == "":
		swapped := strings.Map(func(r rune) rune {
			if r < 'A' {
				return r
			}
			return r ^ ' ' // math/big has the small letters before the capital ones
		}, text)
		if v, ok := new(big.Int).SetString(swapped, 62); ok && v.BitLen() <= 160 {
			return v.FillBytes(make([]byte, 20))
		}
	case e.name != "xid" && e.name != "ksuid" && (len(text) == 24 || len(text) == 40):
		if b, err := hex.DecodeString(text); err == nil {
			return b
		}
	}
	return nil
}

// An AmbiguousError means that a text fits several encodings, or one that many
// other texts fit as well.
type AmbiguousError struct {
	Text  string
	Names []string // of the encodings
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s could be %s: name the encoding", Quote(e.Text), strings.Join(e.Names, " or "))
}

// Decode reads an ID without a layout. With the encoding auto, the text must be
// unambiguous: digits are decimal, except that 16 or 32 of them with a leading
// zero are hexadecimal, and a word that is a number in some base is an
// *AmbiguousError. bits is 64 or 128, or 0 to use the text: the size of a fixed
// width (uuid, 16 or 32 hexadecimal digits), otherwise the smallest that holds
// the number. It returns the bytes of the ID, big-endian, and the encoding.
func Decode(text string, from Encoding, bits int) ([]byte, Encoding, error) {
	if !from.IsAuto() {
		b, err := from.decode(text, bits)
		return b, from, err
	}
	if isDigits(text) {
		as := ofDigits(text)
		if b, err := as.decode(text, bits); err == nil {
			return b, as, nil
		}
	}
	found := guess(text, bits)
	if len(found) == 0 {
		return nil, from, notRead(text, bits)
	}
	var sure []*number
	var names []string
	for _, n := range found {
		if !n.loose {
			sure = append(sure, n)
		}
		names = append(names, n.encoding.String())
	}
	if len(sure) == 1 {
		return sure[0].bytes, sure[0].encoding, nil
	}
	return nil, from, &AmbiguousError{text, names}
}
