package form

import (
	"cmp"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/typed"
	"github.com/firnid/firn/veil"
)

// A Decoding is a text decoded in one form.
type Decoding struct {
	Text      string
	Form      Form
	Bytes     ID
	About     string // what the text looks like, if that matters
	Ambiguous bool   // the form fits many texts that are not IDs
}

// Bits returns the size of the ID.
func (n *Decoding) Bits() int { return 8 * len(n.Bytes) }

// Uint64 returns an ID of 64 bits.
func (n *Decoding) Uint64() uint64 { return binary.BigEndian.Uint64(n.Bytes) }

// A shape is a way in which texts of some lengths are read when the form is
// unknown.
type shape struct {
	form      Form
	lengths   []int // nil for any
	bits      int   // 0: as many as the number needs
	ambiguous bool
	about     string
}

// shapes are what Guess tries: first the forms whose texts hardly look like
// anything else, then those whose texts are often a word, a name or a hash.
// Without 0x, only the full width distinguishes hexadecimal from other texts.
var shapes = []shape{
	{Of(firn.Decimal), nil, 0, false, ""},
	{Of(firn.Hex), []int{16}, 64, false, ""},
	{Of(firn.Hex), []int{32}, 128, false, ""},
	{Of(firn.Hex), []int{24, 40}, 0, false, "hexadecimal digits"},
	{Of(firn.UUID), []int{36}, 128, false, "characters of a UUID, 8-4-4-4-12"},
	{Form{kind: isXID}, []int{20}, 0, false, "digits of an xid"},
	{Form{kind: isKSUID}, []int{27}, 0, false, "digits of a KSUID"},
	{Of(firn.Binary), []int{64}, 64, false, "digits of base 2"},
	{Of(firn.Binary), []int{128}, 128, false, "digits of base 2"},
	{Of(firn.Base32), []int{13}, 64, true, "digits of Crockford's base 32"},
	{Of(firn.Base32), []int{26}, 128, false, "digits of Crockford's base 32"},
	{Of(firn.Base36), []int{11, 12, 13}, 64, true, "digits of base 36"},
	{Of(firn.Base36), []int{22, 23, 24, 25}, 128, true, "digits of base 36"},
	{Of(firn.Base58), []int{9, 10, 11}, 64, true, "digits of base 58"},
	{Of(firn.Base58), []int{19, 20, 21, 22}, 128, true, "digits of base 58"},
	{Of(firn.Base62), []int{9, 10, 11}, 64, true, "digits of base 62"},
	{Of(firn.Base62), []int{18, 19, 20, 21, 22}, 128, true, "digits of base 62"},
}

// writes reports whether a text looks as if it was written in an ambiguous
// form: digits without a leading zero are a number, and bases 32 and 36 have
// letters of one case.
func (s shape) writes(text string) bool {
	oneCase := text == strings.ToLower(text) || text == strings.ToUpper(text)
	return (!IsDigits(text) || strings.HasPrefix(text, "0")) &&
		(oneCase || !s.form.Is(firn.Base32) && !s.form.Is(firn.Base36))
}

// Decodings reads text in every way that the Form allows: in itself, and auto
// in every form that the text fits. bits is the size of the IDs, or 0 if it is
// unknown. Without an error there is at least one Decoding.
func (f Form) Decodings(text string, bits int) (found []*Decoding, err error) {
	text = unquote(text)
	if !f.IsAuto() {
		id, err := f.decode(text, bits)
		if err == nil && bits != 0 && bits != 8*len(id) {
			err = fmt.Errorf("%s has %d bits, not %d", textfmt.Quote(text), 8*len(id), bits)
		}
		return []*Decoding{{Text: text, Form: f, Bytes: id}}, err
	}
	add := func(s shape, bits int) {
		id, err := s.form.decode(text, bits)
		if err != nil || bits != 0 && bits != 8*len(id) {
			return
		}
		n := &Decoding{Text: text, Form: s.form, Bytes: id, Ambiguous: s.ambiguous}
		if s.about != "" {
			n.About = fmt.Sprintf("it has %d %s", len(text), s.about)
		}
		found = append(found, n)
	}
	switch {
	case strings.Contains(text, "_"):
		if found, err = TypedAs("").Decodings(text, bits); err == nil {
			prefix, _, _ := typed.Cut(text)
			found[0].About = "it has the prefix " + prefix
		}
		return found, err
	case strings.HasPrefix(text, "0x"): // leaves no other form
		add(shape{form: Of(firn.Hex)}, bits)
	case len(text) > 16 && text[0] != '0' && (bits == 0 || bits == 64) && IsDigits(text):
		add(shapes[0], 64) // so many digits are a decimal number
	}
	if len(found) > 0 {
		return found, nil
	}
	for _, s := range shapes {
		if s.ambiguous && !s.writes(text) {
			continue
		}
		if (s.lengths == nil || slices.Contains(s.lengths, len(text))) && (bits == 0 || s.bits == 0 || bits == s.bits) {
			add(s, max(bits, s.bits))
		}
	}
	if len(found) == 0 {
		return nil, notRead(text, bits)
	}
	return found, nil
}

// An AmbiguousError means that a text fits several forms, or one that many
// other texts fit as well.
type AmbiguousError struct {
	Text  string
	Names []string // of the forms
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s could be %s: name the encoding", textfmt.Quote(e.Text), strings.Join(e.Names, " or "))
}

// Decode reads an ID without a layout. Auto reads only text that is
// unambiguous: digits are decimal, except that 16 or 32 of them with a leading
// zero are hexadecimal, and a word that is a number in some base is an
// *AmbiguousError. bits is the size of the ID, or 0 to use the text: the size
// of a fixed width (uuid, 16 or 32 hexadecimal digits), otherwise the smallest
// of 64 and 128 that holds the number. It returns the form that was read.
func (f Form) Decode(text string, bits int) (ID, Form, error) {
	if f.Is(firn.Raw) {
		if bits != 0 && 8*len(text) == bits { // also of sizes that have no other form
			return ID(text), f, nil
		}
		id, err := f.decode(text, bits)
		return id, f, err
	}
	text = unquote(text)
	if as := OfDigits(text); f.IsAuto() && IsDigits(text) {
		if id, err := as.decode(text, bits); err == nil {
			return id, as, nil
		}
	}
	found, err := f.Decodings(text, bits)
	if err != nil {
		return nil, f, err
	}
	var sure []*Decoding
	var names []string
	for _, n := range found {
		if !n.Ambiguous {
			sure = append(sure, n)
		}
		names = append(names, n.Form.String())
	}
	if suffix := Suffixed(text); suffix != "" {
		return nil, f, fmt.Errorf("%s is not an ID: %s", textfmt.Quote(text), suffix)
	}
	if len(sure) != 1 {
		return nil, f, &AmbiguousError{text, names}
	}
	return sure[0].Bytes, sure[0].Form, nil
}

// decode reads text as an ID of 64 or 128 bits. If bits is 0, the text shows
// the size: that of a fixed width, otherwise the smallest that holds the
// number. Some forms have IDs of 96 or 160 bits instead.
func (f Form) decode(text string, bits int) (ID, error) {
	switch {
	case f.IsTyped():
		return f.decodeTyped(text)
	case f.IsVeiled():
		return f.decodeVeiled(text)
	case f.kind == isXID:
		return decodeXID(text)
	case f.kind == isKSUID:
		return decodeKSUID(text)
	case f.format == firn.Hex && bits != 64 && bits != 128:
		digits := strings.TrimPrefix(text, "0x")
		id, err := hex.DecodeString(digits)
		if err == nil && (len(digits) == 24 || len(digits) == 40) && (bits == 0 || bits == 8*len(id)) {
			return id, nil
		}
	}
	greatest := firn.ID128FromUint64s(math.MaxUint64, math.MaxUint64)
	switch {
	case bits == 96 || bits == 160:
		return nil, fmt.Errorf("firn: parse ID %s: not an ID of %d bits in %s", textfmt.Quote(text), bits, f)
	case bits != 0:
		return parse(f.format, text, bits)
	case f.format.CheckBits(64) == nil && len(strings.TrimPrefix(text, "0x")) < len(f.format.Append128(nil, greatest)):
		id, err := parse(f.format, text, 64)
		if err == nil {
			return id, nil
		}
		if id, wideErr := parse(f.format, text, 128); wideErr == nil {
			return id, nil
		}
		return nil, err
	}
	return parse(f.format, text, 128)
}

// parse parses an ID of 64 or 128 bits.
func parse(f firn.Format, text string, bits int) (ID, error) {
	if bits == 64 {
		id, err := f.Parse(text)
		return firn.Raw.Append(nil, id), err
	}
	id, err := f.Parse128(text)
	return id[:], err
}

func (f Form) decodeTyped(text string) (ID, error) {
	if k, ok := veil.KeyNumber(text); ok {
		return nil, fmt.Errorf("firn: %s is veiled with key %d, and can only be read with that key: see "+
			"--veil-key-file of firn convert",
			textfmt.Quote(text), k)
	}
	prefix, digits, err := typed.Cut(text)
	if err != nil {
		return nil, err
	}
	if prefix = cmp.Or(f.prefix, prefix); len(digits) == 26 {
		id, err := typed.Parse[firn.ID128](prefix, text)
		return id[:], err
	}
	id, err := typed.Parse[firn.ID](prefix, text)
	return firn.Raw.Append(nil, id), err
}

func (f Form) decodeVeiled(text string) (ID, error) {
	_, digits, _ := strings.Cut(text, "_")
	switch v := f.veil; {
	case v == Veil{}:
		return nil, fmt.Errorf("firn: %s cannot be read without the key of veiled IDs", textfmt.Quote(text))
	case v.Of128 != nil && (v.Of64 == nil || len(digits) > 13):
		id, err := v.Of128.Parse128(text)
		return id[:], err
	default:
		id, err := v.Of64.Parse(text)
		return firn.Raw.Append(nil, id), err
	}
}

var xidText = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

func decodeXID(text string) (ID, error) {
	// The last digit has one bit of the ID and four zeros.
	if id, err := xidText.DecodeString(text); err == nil && len(text) == 20 && xidText.EncodeToString(id) == text {
		return id, nil
	}
	return nil, fmt.Errorf("firn: parse ID %s: not a valid xid, which has 20 digits of 0-9a-v and ends with 0 or g",
		textfmt.Quote(text))
}

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func decodeKSUID(text string) (ID, error) {
	v := new(big.Int)
	for _, digit := range text {
		v.Add(v.Mul(v, big.NewInt(62)), big.NewInt(int64(strings.IndexRune(alphanumeric, digit))))
	}
	if len(text) != 27 || strings.Trim(text, alphanumeric) != "" || v.BitLen() > 160 {
		return nil, fmt.Errorf("firn: parse ID %s: not a valid KSUID, which has 27 digits of 0-9A-Za-z",
			textfmt.Quote(text))
	}
	return v.FillBytes(make([]byte, 20)), nil
}

// unquote returns the text in a cell that keeps a spreadsheet from reading a
// number, ="123" or '123, and a number without its plus sign.
func unquote(text string) string {
	if inner, ok := strings.CutPrefix(text, `="`); ok && strings.HasSuffix(inner, `"`) {
		return inner[:len(inner)-1]
	}
	if digits, ok := strings.CutPrefix(text, "+"); ok && digits != "" && IsDigits(digits) {
		return digits
	}
	return strings.TrimPrefix(text, "'")
}

// IsMissing reports whether a text that is not an ID stands for none, as
// databases and data frames write NULL.
func IsMissing(text string) bool {
	switch strings.ToLower(text) {
	case "", "null", `\n`, "none", "nil", "nan", "(null)", "<null>", "<na>":
		return true
	}
	return false
}

// OfDigits returns the form of a text of decimal digits: hexadecimal if it has
// the full width of 16 or 32 digits with leading zeros, which decimal numbers
// do not have.
func OfDigits(text string) Form {
	if (len(text) == 16 || len(text) == 32) && text[0] == '0' {
		return Of(firn.Hex)
	}
	return Of(firn.Decimal)
}

var literal = regexp.MustCompile("^[0-9]+(n|[uU]?[lL]{1,2}|[uU][lL]{0,2})$")

// Suffixed says that text is a number with the suffix of a literal in a
// programming language, such as 1593572310593806338n. Otherwise it is empty.
func Suffixed(text string) string {
	m := literal.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("it is a number with the suffix %s of a programming language: remove the %[1]s", m[1])
}

// IsDigits reports whether text consists of decimal digits.
func IsDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// notRead says why text fits no form.
func notRead(text string, bits int) error {
	reason := "is not an ID"
	if bits != 0 {
		reason = fmt.Sprintf("is not an ID of %d bits", bits)
	}
	switch {
	case text == "":
		return errors.New("the text is empty")
	case len(text) > 1 && text[0] == '-' && IsDigits(text[1:]):
		reason += ": it has a sign"
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			reason += fmt.Sprintf("; as an unsigned number it is %d", uint64(v))
		}
	case isFloat(text):
		reason += ": it was written as a floating-point number, which loses the last digits of an ID; export it as text"
	case IsDigits(text):
		reason += fmt.Sprintf(": as a decimal number it exceeds %d bits", cmp.Or(bits, 128))
	case strings.Trim(text, "0123456789abcdefABCDEF") == "":
		reason += fmt.Sprintf(": hexadecimal without 0x has 16, 24, 32 or 40 digits, not %d", len(text))
	case Suffixed(text) != "":
		reason += ": " + Suffixed(text)
	case grouped.MatchString(text):
		reason += ": it has separators between its digits: remove them"
	default:
		reason += ": it fits no known encoding"
	}
	return fmt.Errorf("%s %s", textfmt.Quote(text), reason)
}

// grouped matches a number with separators of thousands, as spreadsheets and
// formatters of messages write it: 1,179,183,313,482,456,071.
var grouped = regexp.MustCompile("^[0-9]{1,3}([ ,.'_’\u00a0\u202f][0-9]{3})+$")

// isFloat reports whether a text is a large number as spreadsheets and data
// frames write it: 1.2E+18, 12e17 or 1200000000000000000.0.
func isFloat(text string) bool {
	if !strings.ContainsAny(text, ".eE+") || strings.Trim(text, "0123456789.,eE+-") != "" {
		return false
	}
	_, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	return err == nil
}
