package inspect

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// Options say what is known about an ID. The zero Options know nothing. Read
// does not change them.
type Options struct {
	// Layout is the ID's layout; with the zero Layout all presets are tried.
	Layout firn.Layout

	// From is the form of the text; auto tries all forms.
	From form.Form

	// Now is the time by which readings are judged. The zero time means
	// time.Now.
	Now time.Time
}

// A Result is everything that an ID may be.
type Result struct {
	Text     string
	Readings []Reading // the likeliest first; at least one

	// Unknown is how likely it is that no known layout made the ID, 0 to 1, on
	// the scale of Reading.Score. It is 0 if Options name the layout.
	Unknown float64
	Other   string // what the text may be instead of an ID, or that it looks rounded, or ""

	layoutGiven bool     // Options name the layout
	none        noLayout // no known layout made the ID
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

// The smallest scores of a likely and of a possible reading. TestCorpus shows
// how often the layout that made an ID is likely.
const (
	likelyShare   = 0.2
	possibleShare = 0.01
)

// Likelihood returns how likely the reading is.
func (r *Reading) Likelihood() Likelihood {
	switch {
	case r.Score >= likelyShare && r.Plausible && !r.isWord():
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

	Form  form.Form // of the text
	Bytes form.ID   // 8, 12, 16 or 20

	HasParts bool // whether the ID holds a time, a node and a sequence
	Time     time.Time
	Node     uint64
	Seq      uint64

	Score     float64 // the share of this reading among all that were tried, 0 to 1
	Plausible bool    // the time is within the years in which IDs were made

	candidate *candidate // how to judge its parts; nil for UUIDs without a time
	decoding  *form.Decoding
	now       time.Time
	weight    float64 // base-2 logarithm of the probability of such a text
}

// Pieces returns every bit of the ID, the highest first.
func (r *Reading) Pieces() []firn.Piece {
	if r.Layout.IsZero() {
		return uuidPieces(r.Bytes)
	}
	return r.Layout.Pieces()
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

// A Text is an ID in one encoding.
type Text struct{ Name, Text string }

// Texts returns the ID in all encodings: first as its layout writes it, if that
// is a number or a UUID.
func (r *Reading) Texts() (texts []Text) {
	for _, f := range []firn.Format{
		firn.UUID, firn.Decimal, firn.Hex, firn.Binary, firn.Base32, firn.Base36, firn.Base58, firn.Base62,
	} {
		if f.CheckBits(r.Bits()) == nil {
			texts = append(texts, Text{f.String(), string(r.Bytes.Append(nil, form.Of(f)))})
		}
	}
	if texts == nil {
		texts = []Text{{"hex", r.Hex()}, {"dec", r.Dec()}}
	}
	return texts
}

// Read reads an ID in every way that o allows. The error says what is wrong
// with the text, or which bits do not fit the layout. Read is safe for
// concurrent use.
func Read(text string, o Options) (Result, error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	decodings, err := o.From.Decodings(text, o.Layout.Bits())
	if err != nil {
		return Result{}, err
	}
	if o.From.IsVeiled() {
		decodings[0].Form = form.VeiledBy(form.Veil{})
		decodings[0].About = "it was veiled; with another key, it would be another ID"
		if o.Layout.IsZero() {
			// Another layout has other veiled IDs: these are the ones that Veil
			// reads.
			o.Layout = firn.Default()
			if decodings[0].Bits() == 128 {
				o.Layout = firn.MustParseLayout("uuidv7")
			}
		}
	}
	text = decodings[0].Text
	r := Result{Text: text, layoutGiven: !o.Layout.IsZero()}
	if r.layoutGiven {
		r.none = noLayout{weight: math.Inf(-1)}
		err = r.readBy(candidateOf(o.Layout), decodings, o.Now)
	} else {
		r.none = judgeNoLayout(decodings, o.Now)
		r.Other = cmp.Or(form.Suffixed(text), r.none.other)
		if how := rounded(decodings[0], o.Now); how != "" {
			r.Other = strings.TrimPrefix(r.Other+"; "+how, "; ")
		}
		r.readAll(decodings, o.Now)
	}
	if len(r.Readings) == 0 {
		return Result{}, cmp.Or(err, errors.New("no known layout has such an ID"))
	}
	r.rank()
	return r, nil
}

// readBy reads the decodings of a text by a layout. The error is that of the
// first one.
func (r *Result) readBy(c *candidate, decodings []*form.Decoding, now time.Time) (refused error) {
	for _, n := range decodings {
		x, err := c.read(n, now)
		refused = cmp.Or(refused, err)
		if err != nil {
			continue
		}
		if len(decodings) > 1 {
			x.weigh()
		}
		r.Readings = append(r.Readings, x)
	}
	return refused
}

// readAll reads the decodings of a text by all known layouts. If no time makes
// sense, a word was perhaps made by none of them.
func (r *Result) readAll(decodings []*form.Decoding, now time.Time) {
	var words []Reading
	for _, n := range decodings {
		if x, ok := readUUID(n, now); ok {
			r.Readings = append(r.Readings, x)
		}
		for _, c := range presets()[n.Bits()] {
			if c = c.forText(n); c == nil {
				continue
			}
			x, err := c.read(n, now)
			if err != nil {
				continue
			}
			if x.weigh(); x.Plausible || !n.Ambiguous {
				r.Readings = append(r.Readings, x)
			} else {
				x.weight -= 20
				words = append(words, x)
			}
		}
	}
	if len(r.Readings) == 0 {
		r.Readings = words
	}
}

// rank sorts the readings, the heaviest first, and turns the weights into
// shares. If the layout is known, digits are decimal (or hexadecimal, see
// form.OfDigits), however likely another reading looks: a stream of IDs must
// not change its form midway.
func (r *Result) rank() {
	digits := form.OfDigits(r.Text)
	slices.SortStableFunc(r.Readings, func(a, b Reading) int {
		if isFirst := a.Form == digits; r.layoutGiven && isFirst != (b.Form == digits) {
			return map[bool]int{true: -1, false: 1}[isFirst]
		}
		return cmp.Compare(b.weight, a.weight)
	})
	top := r.none.weight
	for _, x := range r.Readings {
		top = max(top, x.weight)
	}
	r.Unknown = math.Exp2(r.none.weight - top)
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
