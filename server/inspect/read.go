package inspect

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
)

// Options say what is known of an ID. The zero Options know nothing. They are
// plain values; Read does not change them.
type Options struct {
	// Layout is the ID's layout; with the zero Layout all presets are tried.
	Layout firn.Layout

	// From is how the text is written; auto tries all encodings.
	From Encoding

	// Now is the time by which readings are judged. The zero time means
	// time.Now.
	Now time.Time
}

// A Result is all that an ID may be.
type Result struct {
	Text     string
	Readings []Reading // the likeliest first; at least one

	// Unknown is how likely it is that no known layout made the ID, 0 to 1, by
	// the measure of Reading.Score. It is 0 if Options named the layout.
	Unknown float64
	Other   string // what the text may be instead of an ID, in plain words, or ""

	asked bool // Options named the layout
}

// Known reports whether a known layout is likelier than none.
func (r *Result) Known() bool { return r.Unknown <= r.Readings[0].Score }

// A Likelihood is how likely a reading is, in three steps. Shares of a guess
// are no percentages that one could bet on.
type Likelihood uint8

// The likelihoods: a reading that is about as likely as the best one, one that
// is less likely, and one that needs a reason from elsewhere.
const (
	Unlikely Likelihood = iota
	Possible
	Likely
)

// String returns unlikely, possible or likely.
func (l Likelihood) String() string {
	return [...]string{"unlikely", "possible", "likely"}[min(l, Likely)]
}

// The shares from which on a reading is likely, and possible. TestRanking shows
// how often the layout that made an ID is likely.
const (
	likelyShare   = 0.2
	possibleShare = 0.01
)

// Likelihood is how likely the reading is.
func (r *Reading) Likelihood() Likelihood {
	switch {
	case r.Score >= likelyShare && r.Plausible:
		return Likely
	case r.Score >= possibleShare && r.Plausible:
		return Possible
	}
	return Unlikely
}

// A Reading is one way to read an ID.
type Reading struct {
	// Name is the layout's text, from which firn.ParseLayout makes the layout
	// again; or uuidv1, uuidv4 and so on for UUIDs that are no layout.
	Name   string
	Layout firn.Layout // the zero Layout where Name is not the text of one

	Encoding Encoding // in which the text was read
	Bytes    []byte   // the ID, big-endian: 8, 12, 16 or 20

	HasParts  bool // whether the ID holds a time, a node and a sequence
	Time      time.Time
	Node      uint64
	NodeParts []firn.NodePart // the pieces of Node that the format has names for
	Seq       uint64
	Pieces    []Piece // every bit of the ID, from the top down

	Score     float64  // the share of this reading among all that were tried, 0 to 1
	Plausible bool     // the time lies in the years that IDs are from
	For       []string // what speaks for this reading, in plain words
	Against   []string // what speaks against it

	c      *candidate // of Layout, if the reading is by one
	n      *number
	weight float64 // logarithm, base 2, of how probable such a text is
}

// A Piece is a run of bits of an ID and its value there.
type Piece struct {
	Field string // as firn.Piece has it
	Pos   int    // where its lowest bit lies in the ID
	Width int    // in bits
	Value uint64 // the lowest 64 bits, where Width is more
}

// Bits is the size of the ID.
func (r *Reading) Bits() int { return 8 * len(r.Bytes) }

// ID returns an ID of 64 bits, and false for one of another size.
func (r *Reading) ID() (firn.ID, bool) {
	if len(r.Bytes) != 8 {
		return 0, false
	}
	id, err := firn.Raw.Parse(string(r.Bytes))
	return id, err == nil
}

// ID128 returns an ID of 128 bits, and false for one of another size.
func (r *Reading) ID128() (firn.ID128, bool) {
	if len(r.Bytes) != 16 {
		return firn.ID128{}, false
	}
	return firn.ID128(r.Bytes), true
}

// Dec is the ID as a decimal number.
func (r *Reading) Dec() string { return string(r.appendDec(nil)) }

// Hex is the ID as hexadecimal digits, two for each byte, without 0x.
func (r *Reading) Hex() string { return hex.EncodeToString(r.Bytes) }

// An Error says that a text cannot be read as an ID.
type Error struct {
	Text   string
	Reason string
	Tried  []string // the encodings
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s (tried %s)", Quote(e.Text), e.Reason, strings.Join(e.Tried, ", "))
}

// Read reads an ID in all ways that o leaves open. The error says why there is
// none: what is wrong with the text in the encoding that o names, an *Error
// with the encodings that were tried where it names none, or which bits do not
// fit the layout. It may be called by many goroutines at once.
func Read(text string, o Options) (Result, error) { return NewScanner(o).read(text, o.Now, false) }

// A Scanner is Read for many IDs. It must be made by NewScanner, and used by
// one goroutine at a time.
type Scanner struct {
	o     Options
	asked []*candidate // the one of Options.Layout, if there is one

	// Of the ID that is read, and then used again.
	found    []weighed
	order    []*weighed
	readings []Reading
	number   number
	numbers  []*number
	none     unknownWeight
}

// NewScanner makes a Scanner. Options.Now is not used.
func NewScanner(o Options) *Scanner {
	s := &Scanner{o: o}
	if !o.Layout.IsZero() {
		s.asked = []*candidate{newCandidate(o.Layout)}
	}
	return s
}

// Scan is Read, judged by now. It leaves out readings that are unlikely, but
// for the best, and what Explain adds. The Result is good until the next call.
func (s *Scanner) Scan(text string, now time.Time) (Result, error) { return s.read(text, now, true) }

// Explain adds the bits, and what speaks for and against the readings of Scan.
func (r *Result) Explain(now time.Time) {
	for i := range r.Readings {
		x := &r.Readings[i]
		again, ok := Reading{}, false
		if x.c == nil {
			again, ok = readUUID(x.n, now, false)
		} else {
			again, ok = readLayout(x.c, x, now), true
		}
		if ok {
			again.Score, again.c, again.n = x.Score, x.c, x.n
			*x = again
		}
	}
}

// A weighed is a reading before it is made.
type weighed struct {
	n    *number
	c    *candidate // nil for a UUID
	r    Reading    // without what comes from the candidate
	rank int        // the first are first, whatever their weight
}

func (s *Scanner) read(text string, now time.Time, quiet bool) (Result, error) {
	if now.IsZero() {
		now = time.Now()
	}
	o := &s.o
	size := 0
	if s.asked != nil {
		size = o.Layout.Bits()
	}

	var numbers []*number
	var tried []string
	if o.From.IsAuto() && isPlainDecimal(text, size) && s.number.parseDecimal(text) {
		numbers = append(s.numbers[:0], &s.number)
		s.numbers = numbers
	} else if o.From.IsAuto() {
		if numbers, tried = guess(text, size); len(numbers) == 0 {
			return Result{}, notRead(text, size, tried)
		}
	} else {
		n, err := readAs(o.From, text, size)
		if err != nil {
			return Result{}, err
		}
		if size != 0 && n.size != size {
			return Result{}, fmt.Errorf("%s is an ID of %d bits: those of layout %s have %d", Quote(text), n.size, o.Layout, size)
		}
		numbers = []*number{n}
	}

	s.found = s.found[:0]
	var refused error
	for _, n := range numbers {
		layouts := s.asked
		if size == 0 {
			layouts = presets()[n.size]
			if r, ok := readUUID(n, now, true); ok {
				s.found = append(s.found, weighed{n: n, r: r})
			}
		}
		for _, c := range layouts {
			if size == 0 {
				if c = c.of(n); c == nil || !c.fits(n) {
					continue
				}
			}
			s.found = append(s.found, weighed{n: n, c: c})
			w := &s.found[len(s.found)-1]
			err := c.weigh(n, now, &w.r)
			if err != nil || size == 0 && n.loose && !w.r.Plausible {
				refused = cmp.Or(refused, err)
				s.found = s.found[:len(s.found)-1]
			}
		}
	}
	if len(s.found) == 0 {
		if size != 0 {
			return Result{}, refused
		}
		if tried == nil {
			tried = []string{"dec"}
		}
		return Result{}, &Error{text, "could be an ID only of a time that no ID is from", tried}
	}
	result := Result{Text: text, Unknown: math.Inf(-1), asked: size != 0}
	if size == 0 {
		s.none = unknown(numbers, now, quiet)
		result.Unknown, result.Other = s.none.weight, s.none.other
	}
	s.rank(&result, quiet)
	if !quiet {
		result.Explain(now)
	}
	return result, nil
}

// notRead says why text fits no encoding.
func notRead(text string, size int, tried []string) error {
	reason := "is no ID"
	if size != 0 {
		reason = fmt.Sprintf("is no ID of %d bits", size)
	}
	switch {
	case text == "":
		return errors.New("the text is empty")
	case len(text) > 1 && text[0] == '-' && isDigits(text[1:]):
		reason += ": it has a sign"
		var v big.Int
		if v.SetString(text, 10); v.IsInt64() {
			reason += fmt.Sprintf(", and as an unsigned number it is %d", uint64(v.Int64()))
		}
	case isFloat(text):
		reason += ": it was written as a floating-point number, which loses the last digits of an ID; export it as text"
	case isDigits(text):
		reason += fmt.Sprintf(": as a decimal number it needs more than %d bits", cmp.Or(size, 128))
	case strings.Trim(text, "0123456789abcdefABCDEF") == "":
		reason += fmt.Sprintf(": hexadecimal without 0x has 16, 24, 32 or 40 digits, and this has %d", len(text))
	default:
		for i, r := range text {
			if r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-') {
				continue
			}
			reason += fmt.Sprintf(": %q at offset %d is in no encoding", r, i)
			return &Error{text, reason, tried}
		}
		reason += fmt.Sprintf(": its %d characters fit no encoding of one", len(text))
	}
	return &Error{text, reason, tried}
}

// isFloat reports whether a text is a number as spreadsheets and data frames
// write large ones: 1.2E+18 or 1200000000000000000.0.
func isFloat(text string) bool {
	if !strings.ContainsAny(text, ".") && !strings.ContainsAny(text, "+") || strings.Trim(text, "0123456789.,eE+") != "" {
		return false
	}
	_, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	return err == nil
}

// A candidate is a layout with what judging needs of it, which takes longer to
// ask for than an ID to judge.
type candidate struct {
	layout   firn.Layout
	name     string
	preset   string
	habit    habit
	format   firn.Format
	unit     time.Duration
	seconds  float64 // the unit
	epoch    time.Time
	chosen   bool // the epoch is not that of Unix, or older
	early    bool // habit.born is not the zero time
	nodeBits int
	seqBits  int
	random   float64 // bits
	nodes    []field // the node's pieces if they have names, or the node
	seqs     field
	pieces   []firn.Piece

	fixed, fixedTo uint64 // bits that all IDs of 64 bits share, and their values
}

func newCandidate(l firn.Layout) *candidate {
	c := &candidate{
		layout: l, name: l.String(), preset: l.Preset(), format: l.Format(), unit: l.Unit(),
		epoch: l.Epoch(), nodeBits: l.NodeBits(), seqBits: l.SeqBits(), random: float64(l.RandomBits()), pieces: l.Pieces(),
	}
	c.seconds, c.chosen = c.unit.Seconds(), c.epoch.Year() > 1970
	c.setHabit(habitOf(c.preset))
	for _, p := range c.pieces {
		if (p.Field == "zero" || p.Field == "const") && l.Bits() == 64 {
			c.fixed |= (1<<p.Width - 1) << p.Pos
			c.fixedTo |= p.Const << p.Pos
		}
	}
	return c
}

// setHabit sets what is known of the layout's IDs beside their bits.
func (c *candidate) setHabit(h habit) {
	c.habit, c.early = h, !h.born.IsZero()
	c.seqs = newField(c.seqBits, h.anySeq, false)
	c.nodes = nil
	for _, p := range c.layout.NodeParts(c.layout.MaxNode()) {
		c.nodes = append(c.nodes, newField(bits.Len64(p.Value), h.anyNode, h.fewParts))
	}
	if len(c.nodes) < 2 {
		c.nodes = []field{newField(c.nodeBits, h.anyNode, false)}
	}
}

// presets are the named layouts, and others that libraries have by default, by
// size.
var presets = sync.OnceValue(func() map[int][]*candidate {
	bySize := make(map[int][]*candidate)
	for p := range firn.Presets() {
		bySize[p.Layout.Bits()] = append(bySize[p.Layout.Bits()], newCandidate(p.Layout))
	}
	for _, x := range others {
		c := newCandidate(firn.MustParseLayout(x.layout))
		c.setHabit(x.habit)
		c.format = x.format
		bySize[64] = append(bySize[64], c)
	}
	return bySize
})

// of is the candidate for a number: Lable's IDs say themselves which layout of
// Lable's they have. It is nil if the number has the text of another format.
func (c *candidate) of(n *number) *candidate {
	switch {
	case c.preset == "lable":
		return lables()[n.bytes[6]>>4&1][n.bytes[7]&15]
	case c.preset == "xid" && n.encoding.kind != xid, c.preset == "objectid" && n.encoding.kind != longHex:
		// The two have the same bits, and their texts tell them apart.
		return nil
	}
	return c
}

// lables are Lable's layouts by mode and cluster.
var lables = sync.OnceValue(func() (layouts [2][16]*candidate) {
	for mode, name := range []string{"spread", "time-sequential"} {
		for cluster := range 16 {
			layouts[mode][cluster] = newCandidate(firn.MustParseLayout(fmt.Sprintf("lable,mode=%s,cluster=%d", name, cluster)))
		}
	}
	return layouts
})

// fits reports, for 64 bits, whether a number has the bits that all IDs of the
// layout share. The error of decompose says the same, and takes longer.
func (c *candidate) fits(n *number) bool {
	return n.size != 64 || uint64(n.id64())&c.fixed == c.fixedTo
}

func (c *candidate) decompose(n *number) (firn.Parts, error) {
	switch n.size {
	case 64:
		return c.layout.Decompose(n.id64())
	case 128:
		return c.layout.Decompose128(n.id128())
	}
	return c.layout.DecomposeBytes(n.raw())
}

// weigh reads a number by the layout into the zero Reading r, without words and
// what is the candidate's.
func (c *candidate) weigh(n *number, now time.Time, r *Reading) error {
	parts, err := c.decompose(n)
	if err != nil {
		return err
	}
	r.HasParts, r.Time, r.Node, r.Seq = true, parts.Time, parts.Node, parts.Seq
	r.Encoding, r.Bytes = n.encoding, n.raw()
	j := judge{now: now, n: n, r: r, quiet: true}
	j.layout(c)
	return nil
}

// readLayout is the reading x by a layout, with its bits and in words.
func readLayout(c *candidate, x *Reading, now time.Time) Reading {
	n := x.n
	r := Reading{
		Name: c.name, Layout: c.layout, Encoding: n.encoding, Bytes: n.raw(), HasParts: true, Time: x.Time, Node: x.Node, Seq: x.Seq,
		NodeParts: c.layout.NodeParts(x.Node), Pieces: make([]Piece, 0, len(c.pieces)), For: make([]string, 0, 4),
	}
	for _, p := range c.pieces {
		r.Pieces = append(r.Pieces, Piece{p.Field, p.Pos, p.Width, p.Value(r.Bytes)})
	}
	j := judge{now: now, n: n, r: &r}
	j.layout(c)
	return r
}

// rank sorts what was found by weight, and turns the weights into shares.
// If the layout is known, digits are decimal (or hexadecimal, see isPadded),
// however likely another reading looks: a stream of IDs must not change its
// encoding midway. With short, unlikely readings are left out.
func (s *Scanner) rank(result *Result, short bool) {
	first := firn.Decimal
	if isPadded(result.Text) {
		first = firn.Hex
	}
	order := s.order[:0]
	top := result.Unknown
	for i := range s.found {
		w := &s.found[i]
		if result.asked && w.n.encoding != As(first) {
			w.rank = 1
		}
		top = max(top, w.r.weight)
		order = append(order, w)
	}
	s.order = order
	for i := range order {
		for ; i > 0 && order[i].before(order[i-1]); i-- {
			order[i], order[i-1] = order[i-1], order[i]
		}
	}
	result.Unknown = exp2(result.Unknown - top)
	sum := result.Unknown
	for _, w := range order {
		w.r.Score = exp2(w.r.weight - top)
		sum += w.r.Score
	}
	result.Unknown /= sum
	s.readings = s.readings[:0]
	for i, w := range order {
		w.r.Score /= sum
		if i > 0 && short && w.r.Likelihood() == Unlikely {
			continue
		}
		s.readings = append(s.readings, w.r)
		x := &s.readings[len(s.readings)-1]
		x.n, x.c = w.n, w.c
		if w.c != nil {
			x.Name, x.Layout = w.c.name, w.c.layout
		}
	}
	result.Readings = s.readings
}

// before reports whether a reading comes before another one.
func (w *weighed) before(other *weighed) bool {
	return w.rank < other.rank || w.rank == other.rank && w.r.weight > other.r.weight
}

// exp2 is math.Exp2 of a weight relative to the highest.
func exp2(w float64) float64 {
	if w < -64 {
		return 0 // beside the highest, which is 1
	}
	return math.Exp2(w)
}
