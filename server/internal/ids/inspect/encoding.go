package inspect

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/typed"
)

// An Encoding is a way to write an ID as text: a firn.Format, or a format that
// can only be read. The zero Encoding is auto: any encoding that fits the text.
// Encodings are plain values that can be compared with ==. They print as a name
// that ParseEncoding accepts: their own, except that objectid prints hex, which
// reads the same texts.
type Encoding struct {
	kind   kind
	format firn.Format
	prefix string // of typed text; "" allows any
}

type kind uint8

const (
	auto      kind = iota
	format         // a firn.Format
	xid            // 20 digits of base32hex in lower case, 96 bits
	ksuid          // 27 digits of base62, 160 bits
	longHex        // 24 or 40 hexadecimal digits
	typedText      // see package typed
)

// As returns the Encoding of a format.
func As(f firn.Format) Encoding { return Encoding{kind: format, format: f} }

// Typed returns the Encoding of typed text with a prefix, or with any prefix if
// it is empty.
func Typed(prefix string) Encoding { return Encoding{kind: typedText, prefix: prefix} }

// ParseEncoding parses the name of an encoding: auto, the name of a format (see
// firn.ParseFormat), or typed, xid, ksuid or objectid. ulid is another name of
// base32.
func ParseEncoding(name string) (Encoding, error) {
	switch name {
	case "auto":
		return Encoding{}, nil
	case "xid":
		return Encoding{kind: xid}, nil
	case "ksuid":
		return Encoding{kind: ksuid}, nil
	case "objectid":
		return Encoding{kind: longHex}, nil
	case "typed":
		return Typed(""), nil
	case "ulid":
		return As(firn.Base32), nil
	}
	f, err := firn.ParseFormat(name)
	if err != nil {
		return Encoding{}, fmt.Errorf("%w, or one of auto, typed, ulid, xid, ksuid, objectid", err)
	}
	return As(f), nil
}

// IsTyped reports whether e is typed text.
func (e Encoding) IsTyped() bool { return e.kind == typedText }

// IsAuto reports whether e is the zero Encoding.
func (e Encoding) IsAuto() bool { return e.kind == auto }

// Format returns the format of e, if it is one.
func (e Encoding) Format() (firn.Format, bool) { return e.format, e.kind == format }

// String returns the name of e.
func (e Encoding) String() string {
	switch e.kind {
	case format:
		return e.format.String()
	case xid:
		return "xid"
	case ksuid:
		return "ksuid"
	case longHex:
		return "hex"
	case typedText:
		return "typed"
	}
	return "auto"
}

// A number is a text read in an encoding.
type number struct {
	encoding Encoding
	size     int      // bits: 64, 96, 128 or 160
	bytes    [20]byte // big-endian, in the first size/8 bytes
	about    string   // what the text looks like, if that matters
	padded   bool     // see isPadded
	loose    bool     // the encoding fits many texts that are not IDs
	digits   bool     // the text has only decimal digits, whatever the encoding
}

func (n *number) raw() []byte { return n.bytes[:n.size/8] }

func number64(e Encoding, id firn.ID) *number {
	n := &number{encoding: e, size: 64}
	binary.BigEndian.PutUint64(n.bytes[:], uint64(id))
	return n
}

func number128(e Encoding, id firn.ID128) *number {
	n := &number{encoding: e, size: 128}
	copy(n.bytes[:], id[:])
	return n
}

func numberOf(e Encoding, b []byte) *number {
	n := &number{encoding: e, size: 8 * len(b)}
	copy(n.bytes[:], b)
	return n
}

// id64 and id128 return the number as an ID; it must have that size.
func (n *number) id64() firn.ID { return firn.ID(binary.BigEndian.Uint64(n.bytes[:])) }

func (n *number) id128() firn.ID128 { return firn.ID128(n.raw()) }

// isPlainDecimal reports whether a text has so many characters, all of them
// digits, that it is a decimal number.
func isPlainDecimal(text string, size int) bool {
	return len(text) > 16 && text[0] != '0' && size != 128 && isDigits(text)
}

// parseDecimal parses a decimal number of 64 bits.
func (n *number) parseDecimal(text string) bool {
	id, err := firn.Decimal.Parse(text)
	if err != nil {
		return false
	}
	*n = number{encoding: As(firn.Decimal), size: 64}
	binary.BigEndian.PutUint64(n.bytes[:], uint64(id))
	return true
}

// guess reads text, which is not a plain decimal number of 64 bits, in every
// encoding that it fits. size is the size of the layout's IDs, or 0 if the
// layout is unknown. tried has the names of the encodings.
func guess(text string, size int) (found []*number, tried []string) {
	try := func(name string, n *number) {
		if !slices.Contains(tried, name) {
			tried = append(tried, name)
		}
		if n != nil && (size == 0 || n.size == size) {
			n.padded, n.digits = isPadded(text), isDigits(text)
			found = append(found, n)
		}
	}
	hexText, prefixed := strings.CutPrefix(text, "0x")
	digits := len(hexText)

	// Encodings whose texts hardly look like anything else.
	if strings.Contains(text, "_") {
		n, _ := readTyped(Typed(""), text, size)
		try("typed", n)
		return found, tried
	}
	try("dec", inEither(firn.Decimal, text, size))
	switch {
	case prefixed:
		try("hex", inEither(firn.Hex, text, size))
	case digits == 16:
		// Without 0x, only the full width distinguishes hexadecimal from other texts.
		try("hex", in64(firn.Hex, text))
	case digits == 32:
		try("hex", in128(firn.Hex, text))
	default:
		try("hex", nil)
	}
	if prefixed && len(found) > 0 {
		return found, tried // 0x leaves no other encoding
	}
	long := parseLongHex(hexText)
	if long != nil {
		long.about = fmt.Sprintf("it has %d hexadecimal digits", digits)
	}
	try("objectid", long)
	uuid := in128(firn.UUID, text)
	if uuid != nil {
		uuid.about = "it has the form of a UUID, 8-4-4-4-12"
	}
	try("uuid", uuid)
	x := parseXID(text)
	if x != nil {
		x.about = "it has the 20 digits of an xid"
	}
	try("xid", x)
	k := parseKSUID(text)
	if k != nil {
		k.about = "it has the 27 digits of a KSUID"
	}
	try("ksuid", k)

	// Encodings whose texts are often something else: a word, a name, a hash.
	for _, t := range []struct {
		f      firn.Format
		widths []int // lengths of the texts of plausible IDs
		loose  bool
		about  string
	}{
		{firn.Binary, []int{64, 128}, false, "base 2"},
		{firn.Base32, []int{26}, false, "Crockford's base 32"},
		{firn.Base32, []int{13}, true, "Crockford's base 32"},
		{firn.Base36, []int{11, 12, 13, 22, 23, 24, 25}, true, "base 36"},
		{firn.Base58, []int{9, 10, 11, 19, 20, 21, 22}, true, "base 58"},
		{firn.Base62, []int{9, 10, 11, 18, 19, 20, 21, 22}, true, "base 62"},
	} {
		if !slices.Contains(t.widths, len(text)) {
			try(t.f.String(), nil)
			continue
		}
		read := in64
		if len(text) > 16 && len(text) != 64 {
			read = in128
		}
		n := read(t.f, text)
		if n != nil {
			n.loose = t.loose
			n.about = fmt.Sprintf("it has %d digits of %s", len(text), t.about)
		}
		try(t.f.String(), n)
	}
	return found, tried
}

// readAs reads text in the encoding e. size is the size of the layout's IDs, or
// 0.
func readAs(e Encoding, text string, size int) (*number, error) {
	f, ok := e.Format()
	if e.IsTyped() {
		return readTyped(e, text, size)
	}
	if !ok {
		var n *number
		switch e.kind {
		case xid:
			n = parseXID(text)
		case ksuid:
			n = parseKSUID(text)
		case longHex:
			n = parseLongHex(text)
		}
		if n == nil {
			return nil, fmt.Errorf("firn: parse ID %s: not a valid %s", Quote(text), map[kind]string{
				xid:     "xid, which has 20 digits of 0-9a-v and ends with 0 or g",
				ksuid:   "KSUID, which has 27 digits of 0-9A-Za-z",
				longHex: "ObjectID, which has 24 hexadecimal digits",
			}[e.kind])
		}
		return n, nil
	}
	switch size {
	case 64:
		id, err := f.Parse(text)
		return number64(e, id), err
	case 128:
		id, err := f.Parse128(text)
		return number128(e, id), err
	case 96, 160:
		if f == firn.Hex {
			if n := parseLongHex(strings.TrimPrefix(text, "0x")); n != nil && n.size == size {
				return n, nil
			}
		}
		return nil, fmt.Errorf("firn: parse ID %s: not an ID of %d bits in %s", Quote(text), size, e)
	}
	if f == firn.Hex {
		if n := parseLongHex(strings.TrimPrefix(text, "0x")); n != nil {
			return n, nil
		}
	}
	// A text of the full width of 128 bits is a 128-bit ID, however many zeros it
	// begins with.
	if n := len(strings.TrimPrefix(text, "0x")); f.Fits(64) == nil && n < len(f.Fixed().Append128(nil, firn.ID128{})) {
		id, err := f.Parse(text)
		if err == nil {
			return number64(e, id), nil
		}
		wide, wideErr := f.Parse128(text)
		if wideErr != nil {
			return nil, err
		}
		return number128(e, wide), nil
	}
	id, err := f.Parse128(text)
	return number128(e, id), err
}

// readTyped reads typed text.
func readTyped(e Encoding, text string, size int) (n *number, err error) {
	prefix, digits, err := typed.Cut(text)
	if err != nil {
		return nil, err
	}
	if e.prefix != "" {
		prefix = e.prefix
	}
	if len(digits) == 26 {
		var id firn.ID128
		id, err = typed.Parse[firn.ID128](prefix, text)
		n = number128(Typed(""), id)
	} else {
		var id firn.ID
		id, err = typed.Parse[firn.ID](prefix, text)
		n = number64(Typed(""), id)
	}
	if err == nil && size != 0 && size != n.size {
		err = fmt.Errorf("firn: %s has %d bits, not %d", Quote(text), n.size, size)
	}
	if err != nil {
		return nil, err
	}
	n.about = fmt.Sprintf("it has %d digits and no prefix", len(digits))
	if prefix != "" {
		n.about = "it has the prefix " + prefix
	}
	return n, nil
}

// isPadded reports whether a text of decimal digits is hexadecimal: it has the
// full width of 16 or 32 digits, with leading zeros, which decimal numbers do
// not have.
func isPadded(text string) bool {
	return (len(text) == 16 || len(text) == 32) && text[0] == '0'
}

// isDigits reports whether text consists of decimal digits.
func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// in64 and in128 read text in format f; nil means that it does not fit.
func in64(f firn.Format, text string) *number {
	id, err := f.Parse(text)
	if err != nil {
		return nil
	}
	return number64(As(f), id)
}

func in128(f firn.Format, text string) *number {
	id, err := f.Parse128(text)
	if err != nil {
		return nil
	}
	return number128(As(f), id)
}

// inEither reads a number of 64 bits, or of 128 if it needs more. size forces
// one of them, unless it is 0.
func inEither(f firn.Format, text string, size int) *number {
	if size != 128 {
		if n := in64(f, text); n != nil || size != 0 {
			return n
		}
	}
	return in128(f, text)
}

// parseLongHex reads IDs of 96 and 160 bits.
func parseLongHex(text string) *number {
	if len(text) != 24 && len(text) != 40 {
		return nil
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil
	}
	return numberOf(Encoding{kind: longHex}, b)
}

const xidDigits = "0123456789abcdefghijklmnopqrstuv"

// parseXID parses 20 digits of 5 bits; the last has one bit of the ID and four
// zeros.
func parseXID(text string) *number {
	if len(text) != 20 {
		return nil
	}
	v := new(big.Int)
	for i := range len(text) {
		d := strings.IndexByte(xidDigits, text[i])
		if d < 0 || i == 19 && d&15 != 0 {
			return nil
		}
		v.Lsh(v, 5).Or(v, big.NewInt(int64(d)))
	}
	return numberOf(Encoding{kind: xid}, v.Rsh(v, 4).FillBytes(make([]byte, 12)))
}

// parseKSUID parses 27 digits of base 62.
func parseKSUID(text string) *number {
	if len(text) != 27 {
		return nil
	}
	for i := range len(text) {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return nil
		}
	}
	v, base := new(big.Int), big.NewInt(62)
	for i := range len(text) {
		d := int64(text[i] - '0')
		if text[i] >= 'a' {
			d = int64(text[i]-'a') + 36
		} else if text[i] >= 'A' {
			d = int64(text[i]-'A') + 10
		}
		v.Mul(v, base).Add(v, big.NewInt(d))
	}
	if v.BitLen() > 160 {
		return nil
	}
	return numberOf(Encoding{kind: ksuid}, v.FillBytes(make([]byte, 20)))
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
		n, err := readAs(from, text, bits)
		if err != nil {
			return nil, from, err
		}
		return n.raw(), from, nil
	}
	if isDigits(text) && !isPadded(text) {
		// Most streams of IDs are decimal, so try that first.
		if n := inEither(firn.Decimal, text, bits); n != nil {
			return n.raw(), n.encoding, nil
		}
	}
	found, tried := guess(text, bits)
	var sure []*number
	var names []string
	for _, n := range found {
		if !n.loose {
			sure = append(sure, n)
		}
		names = append(names, n.encoding.String())
	}
	switch {
	case len(found) == 0:
		return nil, from, notRead(text, bits, tried)
	case isPadded(text):
		// Decimal fits too if all characters are digits.
		for _, n := range sure {
			if f, ok := n.encoding.Format(); ok && f == firn.Hex {
				return n.raw(), n.encoding, nil
			}
		}
	}
	if len(sure) == 1 {
		return sure[0].raw(), sure[0].encoding, nil
	}
	return nil, from, &AmbiguousError{text, names}
}
