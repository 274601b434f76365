package inspect

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// Options say what is known about an ID. The zero Options know nothing. Read
// does not change them.
type Options struct {
	// Layout is the ID's layout; with the zero Layout all presets are tried.
	Layout firn.Layout

	// From is the encoding of the text; auto tries all encodings.
	From Encoding

	// Now is the time by which readings are judged. The zero time means time.Now.
	Now time.Time
}

// A Result is everything that an ID may be.
type Result struct {
	Text     string
	Readings []Reading // the likeliest first; at least one

	// Unknown is how likely it is that no known layout made the ID, 0 to 1, on
	// the scale of Reading.Score. It is 0 if Options name the layout.
	Unknown float64
	Other   string // what the text may be instead of an ID, or ""

	asked bool      // Options name the layout
	none  noneOfAll // no known layout made the ID
}

// Known reports whether some known layout is more likely than none.
func (r *Result) Known() bool { return r.Unknown <= r.Readings[0].Score }

// A Likelihood is how likely a reading is, in three steps. The scores of a
// guess are not percentages to bet on.
type Likelihood uint8

// The likelihoods: Likely is about as likely as the best reading, Possible is
// less likely, and Unlikely needs a reason from elsewhere.
const (
	Unlikely Likelihood = iota
	Possible
	Likely
)

// String returns unlikely, possible or likely.
func (l Likelihood) String() string {
	return [...]string{"unlikely", "possible", "likely"}[min(l, Likely)]
}

// The smallest scores of a likely and of a possible reading. TestRanking shows
// how often the layout that made an ID is likely.
const (
	likelyShare   = 0.2
	possibleShare = 0.01
)

// Likelihood returns how likely the reading is.
func (r *Reading) Likelihood() Likelihood {
	switch {
	case r.Score >= likelyShare && r.Plausible:
		return Likely
	case r.Score >= possibleShare && r.Plausible:
		return Possible
	}
	return Unlikely
}

// DropUnlikely removes the unlikely readings, except the best one.
func (r *Result) DropUnlikely() {
	others := slices.DeleteFunc(r.Readings[1:], func(x Reading) bool { return x.Likelihood() == Unlikely })
	r.Readings = r.Readings[:1+len(others)]
}

// A Reading is one way to read an ID.
type Reading struct {
	// Name is the layout as text, which firn.ParseLayout accepts; or uuidv1,
	// uuidv4 and so on for UUIDs that are not a layout.
	Name   string
	Layout firn.Layout // the zero Layout if Name is not a layout

	Encoding Encoding // of the text
	Bytes    ID       // 8, 12, 16 or 20

	HasParts bool // whether the ID holds a time, a node and a sequence
	Time     time.Time
	Node     uint64
	Seq      uint64

	Score     float64 // the share of this reading among all that were tried, 0 to 1
	Plausible bool    // the time is within the years in which IDs were made

	c      *candidate // how to judge its parts; nil for UUIDs without a time
	n      *number
	now    time.Time
	weight float64 // base-2 logarithm of the probability of such a text
}

// A Piece is a run of bits of an ID and its value there.
type Piece struct {
	Field string // as in firn.Piece
	Pos   int    // of its lowest bit in the ID
	Width int    // in bits
	Value uint64 // the lowest 64 bits, if Width is more
}

// Pieces returns every bit of the ID, the highest first.
func (r *Reading) Pieces() (list []Piece) {
	if r.Layout.IsZero() {
		return uuidPieces(r.Bytes)
	}
	for _, p := range r.Layout.Pieces() {
		list = append(list, Piece{p.Field, p.Pos, p.Width, p.Value(r.Bytes)})
	}
	return list
}

// NodeParts returns the named pieces of Node, if it has any.
func (r *Reading) NodeParts() []firn.NodePart { return r.Layout.NodeParts(r.Node) }

// Bits returns the size of the ID.
func (r *Reading) Bits() int { return 8 * len(r.Bytes) }

// Dec returns the ID as a decimal number.
func (r *Reading) Dec() string {
	if len(r.Bytes) == 8 {
		return strconv.FormatUint(binary.BigEndian.Uint64(r.Bytes), 10)
	}
	return new(big.Int).SetBytes(r.Bytes).String()
}

// Hex returns the ID in hexadecimal, two digits for each byte, without 0x.
func (r *Reading) Hex() string { return hex.EncodeToString(r.Bytes) }

// Read reads an ID in every way that o allows. The error says what is wrong
// with the text, or which bits do not fit the layout. Read is safe for
// concurrent use.
func Read(text string, o Options) (Result, error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	numbers, err := o.numbers(text)
	if err != nil {
		return Result{}, err
	}
	if o.From.IsVeiled() && o.Layout.IsZero() {
		// Another layout has other veiled IDs: these are the ones that Veil reads.
		o.Layout = firn.Default()
		if numbers[0].bits() == 128 {
			o.Layout = firn.MustParseLayout("uuidv7")
		}
	}
	r := Result{Text: text, asked: !o.Layout.IsZero()}
	if !r.asked {
		r.Readings = make([]Reading, 0, 16)
		r.none = judgeNone(numbers, o.Now)
		r.Other = r.none.other
	}
	var refused error
	for _, n := range numbers {
		if r.asked {
			x, err := candidateOf(o.Layout).read(n, o.Now)
			if refused = cmp.Or(refused, err); err == nil {
				r.add(x)
			}
			continue
		}
		if x, ok := readUUID(n, o.Now); ok {
			r.add(x)
		}
		for _, c := range presets()[n.bits()] {
			if c = c.of(n); c == nil {
				continue
			}
			if x, err := c.read(n, o.Now); err == nil && (x.Plausible || !n.loose) {
				r.add(x)
			}
		}
	}
	if len(r.Readings) == 0 {
		return Result{}, cmp.Or(refused, notID(text, "would be an ID from a time before or after all IDs"))
	}
	r.rank()
	return r, nil
}

// numbers reads text in every encoding that o allows.
func (o *Options) numbers(text string) ([]*number, error) {
	bits := o.Layout.Bits()
	if o.From.IsAuto() {
		found := guess(text, bits)
		if len(found) == 0 {
			return nil, notRead(text, bits)
		}
		return found, nil
	}
	b, err := o.From.decode(text, bits)
	if err != nil {
		return nil, err
	}
	if n := 8 * len(b); bits != 0 && n != bits {
		return nil, fmt.Errorf("%s has %d bits, but IDs of layout %s have %d", Quote(text), n, o.Layout, bits)
	}
	n := &number{text: text, encoding: o.From, bytes: b}
	if n.encoding.IsVeiled() {
		n.encoding, n.about = Veiled(form.Veil{}), "it was veiled; with another key, it would be another ID"
	}
	return []*number{n}, nil
}

// add adds a reading at its place, the heaviest first. If the layout is known,
// digits are decimal (or hexadecimal, see isPadded), however likely another
// reading looks: a stream of IDs must not change its encoding midway.
func (r *Result) add(x Reading) {
	first := ofDigits(r.Text)
	i := sort.Search(len(r.Readings), func(i int) bool {
		other := &r.Readings[i]
		if isFirst := x.Encoding == first; r.asked && isFirst != (other.Encoding == first) {
			return isFirst
		}
		return x.weight > other.weight
	})
	r.Readings = slices.Insert(r.Readings, i, x)
}

// rank turns the weights into shares.
func (r *Result) rank() {
	none := math.Inf(-1)
	if !r.asked {
		none = r.none.weight
	}
	top := none
	for i := range r.Readings {
		top = max(top, r.Readings[i].weight)
	}
	r.Unknown = math.Exp2(none - top)
	sum := r.Unknown
	for i := range r.Readings {
		x := &r.Readings[i]
		x.Score = math.Exp2(x.weight - top)
		sum += x.Score
	}
	r.Unknown /= sum
	for i := range r.Readings {
		r.Readings[i].Score /= sum
	}
}

// notRead says why text fits no encoding.
func notRead(text string, bits int) error {
	reason := "is not an ID"
	if bits != 0 {
		reason = fmt.Sprintf("is not an ID of %d bits", bits)
	}
	switch {
	case text == "":
		return errors.New("the text is empty")
	case len(text) > 1 && text[0] == '-' && isDigits(text[1:]):
		reason += ": it has a sign"
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			reason += fmt.Sprintf("; as an unsigned number it is %d", uint64(v))
		}
	case isFloat(text):
		reason += ": it was written as a floating-point number, which loses the last digits of an ID; export it as text"
	case isDigits(text):
		reason += fmt.Sprintf(": as a decimal number it exceeds %d bits", cmp.Or(bits, 128))
	case strings.Trim(text, "0123456789abcdefABCDEF") == "":
		reason += fmt.Sprintf(": hexadecimal without 0x has 16, 24, 32 or 40 digits, not %d", len(text))
	case strings.Contains(text, "_"):
		if _, err := Typed("").decode(text, bits); err != nil {
			return Plain(err)
		}
	default:
		odd := strings.IndexFunc(text, func(r rune) bool { return r != '-' && !strings.ContainsRune(alphanumeric, r) })
		if odd < 0 {
			reason += fmt.Sprintf(": its %d characters fit no known encoding", len(text))
			break
		}
		r, _ := utf8.DecodeRuneInString(text[odd:])
		reason += fmt.Sprintf(": no encoding uses %q, at offset %d", r, odd)
	}
	return notID(text, reason)
}

func notID(text, reason string) error {
	return fmt.Errorf("%s %s (tried %s)", Quote(text), reason, encodingNames)
}

// isFloat reports whether a text is a large number as spreadsheets and data
// frames write it: 1.2E+18 or 1200000000000000000.0.
func isFloat(text string) bool {
	if !strings.ContainsAny(text, ".+") || strings.Trim(text, "0123456789.,eE+") != "" {
		return false
	}
	_, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	return err == nil
}
