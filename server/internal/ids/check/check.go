// Package check determines exactly whether a stream of IDs has duplicates, and
// how it is ordered. It keeps the IDs in memory and sorts them.
//
// It compares numbers, and needs no layout. Package inspect interprets a single
// ID.
package check

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// MaxBits is the largest size of an ID in bits.
const MaxBits = 128

// Options say how to read IDs. The zero value of a field has the meaning given
// at the field.
type Options struct {
	// Layout is the layout of the IDs, for their times; the zero Layout means
	// unknown.
	Layout firn.Layout

	// From is the encoding of the IDs. If it is automatic, the first readable ID
	// determines it.
	From inspect.Encoding

	// Bits is the size of the IDs: 64, 96 or 128; 0 means as in their text.
	Bits int

	// Memory is how many bytes the IDs may take: 12 each, or 20 with more than 64
	// bits.
	Memory uint64
}

// A Report is the result of a check. IDs are written as in the stream. The
// place of an ID is the number of IDs before it.
type Report struct {
	Count      uint64
	Duplicates uint64      // IDs that had already occurred
	Duplicated []Duplicate // the first few of them
	Inversions uint64      // IDs that follow a greater one
	Increasing bool        // every ID is greater than the one before
	Min, Max   string      // "" if the stream is empty

	// K is the largest distance of an ID from its sorted position, Furthest the
	// ID, and Place its place.
	K        uint64
	Furthest string
	Place    uint64

	// Lateness is the longest time by which an ID follows one with a greater time,
	// according to the times in the IDs, and Latest is that ID. First and Last are
	// times; Times says whether they are set. All of these need a layout.
	Lateness    time.Duration
	Latest      string
	Times       bool
	First, Last time.Time

	Foreign      uint64           // IDs that do not fit the layout
	FirstForeign *ForeignID       // the first of them, or nil
	From         inspect.Encoding // the encoding of the IDs
}

// A Duplicate is an ID that occurs more than once.
type Duplicate struct {
	ID     string
	Times  uint64
	Places []uint64 // the first few

	Parts firn.Parts // of the ID, if Known is set
	Known bool
}

// A ForeignID is an ID that does not fit the layout, with the reason if known.
type ForeignID struct {
	ID    string
	Place uint64
	Err   error
}

// An IDError says why a text is not an ID. The check can continue after it.
type IDError struct{ Err error }

func (e *IDError) Error() string { return e.Err.Error() }

func (e *IDError) Unwrap() error { return e.Err }

// A WideError means that an ID has more than MaxBits bits.
type WideError struct {
	Text string
	Bits int
}

func (e *WideError) Error() string {
	return fmt.Sprintf("%s has %d bits: IDs of up to %d bits can be checked", inspect.Quote(e.Text), e.Bits, MaxBits)
}

// A Checker reads a stream of IDs. It must be made by New, and is not safe for
// concurrent use.
type Checker struct {
	layout firn.Layout
	from   inspect.Encoding
	bits   int  // 0: as in the text
	wide   bool // an ID needed more than 64 bits

	order     order
	min, max  key
	late      uint64 // IDs that follow a greater one
	latest    key    // the ID with the greatest lateness
	lateTicks uint64 // its lateness
	maxTick   uint64 // the time of max, if maxTickOf is max
	maxTickOf key

	foreign   uint64 // IDs that do not fit the layout
	first     *ForeignID
	hasLayout bool
	fixed     key // bits that are the same in all IDs of the layout …
	fixedTo   key // … and their values
	ordered   bool
	times     []firn.Piece // of the layout
	firstTime time.Time    // if they do not follow from the order of the IDs
	lastTime  time.Time
}

// New makes a Checker.
func New(o Options) *Checker {
	c := &Checker{layout: o.Layout, from: o.From, bits: o.Bits, order: order{limit: o.Memory}}
	c.readLayout()
	return c
}

// Count returns how many IDs were added.
func (c *Checker) Count() uint64 { return c.order.count }

// AddText adds the next ID as text. After an *IDError the check can continue;
// any other error ends it, such as a *MemoryError or an
// *inspect.AmbiguousError.
func (c *Checker) AddText(text string) error {
	if c.from.IsAuto() {
		b, e, err := inspect.Decode(text, c.from, c.bits)
		var doubt *inspect.AmbiguousError
		switch {
		case errors.As(err, &doubt):
			return err
		case err != nil:
			return &IDError{err}
		case 8*len(b) > MaxBits:
			return &WideError{text, 8 * len(b)}
		}
		c.from = e
	}
	k, err := c.parse(text)
	if err != nil {
		return &IDError{err}
	}
	return c.add(k)
}

// AddBytes adds the next ID as Options.Bits / 8 bytes, big-endian.
func (c *Checker) AddBytes(b []byte) error { return c.add(keyOf(b)) }

// keyOf returns up to 16 bytes as a number.
func keyOf(b []byte) key {
	var wide [16]byte
	copy(wide[16-len(b):], b)
	return key{binary.BigEndian.Uint64(wide[:8]), binary.BigEndian.Uint64(wide[8:])}
}

// Report ends the stream and returns the result.
func (c *Checker) Report() Report {
	f := c.order.find()
	r := Report{
		Count: c.order.count, Duplicates: f.repeats, Inversions: c.late, Increasing: f.increases,
		K: f.k, Place: f.kFrom, Lateness: c.lateness(), Foreign: c.foreign, FirstForeign: c.first, From: c.from,
	}
	if r.Count > 0 {
		r.Min, r.Max = c.text(c.min), c.text(c.max)
		r.Furthest, r.Latest = c.text(f.kKey), c.text(c.latest)
	}
	for _, x := range f.repeated {
		d := Duplicate{ID: c.text(x.key), Times: x.times, Places: x.places}
		if c.hasLayout {
			p, err := c.partsOf(x.key)
			d.Parts, d.Known = p, err == nil
		}
		r.Duplicated = append(r.Duplicated, d)
	}
	r.First, r.Last, r.Times = c.span()
	return r
}

// readLayout determines the bits that are the same in all IDs.
func (c *Checker) readLayout() {
	c.hasLayout = c.layout != firn.Layout{}
	if !c.hasLayout {
		return
	}
	c.ordered = c.layout.Ordered()
	for _, p := range c.layout.Pieces() {
		if p.Field == "time" {
			c.times = append(c.times, p)
		}
		if p.Field != "zero" && p.Field != "const" {
			continue
		}
		for i := range p.Width {
			at := p.Pos + i
			bit := key{0, 1 << at}
			if at >= 64 {
				bit = key{1 << (at - 64), 0}
			}
			c.fixed = c.fixed.plus(bit)
			if i < 64 && p.Const>>i&1 == 1 {
				c.fixedTo = c.fixedTo.plus(bit)
			}
		}
	}
}

// parse reads one text.
func (c *Checker) parse(text string) (key, error) {
	f, ok := c.from.Format()
	if !ok {
		b, _, err := inspect.Decode(text, c.from, c.bits)
		if err == nil && 8*len(b) > MaxBits {
			err = &WideError{text, 8 * len(b)}
		}
		if err != nil {
			return key{}, err
		}
		return keyOf(b), nil
	}
	if c.bits != 128 && !c.wide && f != firn.UUID {
		id, err := f.Parse(text)
		if err == nil {
			return key{0, uint64(id)}, nil
		}
		if c.bits == 64 {
			return key{}, err
		}
	}
	id, err := f.Parse128(text)
	if err != nil {
		return key{}, err
	}
	hi, lo := id.Uint64s()
	c.wide = c.wide || hi != 0
	return key{hi, lo}, nil
}

// add adds the next ID.
func (c *Checker) add(k key) error {
	n := c.order.count
	switch {
	case n == 0:
		c.min, c.max = k, k
	case c.max.less(k):
		c.max = k
	case k.less(c.max):
		c.late++
		if k.less(c.min) {
			c.min = k
		}
		if c.ordered {
			c.measure(k)
		}
	}
	if c.hasLayout {
		c.look(k)
	}
	return c.order.add(k)
}

// measure compares the time of an ID with that of the greatest ID before it.
func (c *Checker) measure(k key) {
	if c.maxTickOf != c.max {
		c.maxTick, c.maxTickOf = c.tick(c.max), c.max
	}
	// Ticks, not times: in an unordered stream this runs for every ID.
	if late := c.maxTick - c.tick(k); late > c.lateTicks && late <= c.maxTick {
		c.lateTicks, c.latest = late, k
	}
}

// tick returns the time field of an ID.
func (c *Checker) tick(k key) uint64 {
	var tick uint64
	for _, p := range c.times {
		v := k.shr(p.Pos).lo
		if p.Width < 64 {
			v &= 1<<p.Width - 1
		}
		tick |= v << p.Low
	}
	return tick
}

// lateness returns the greatest lateness.
func (c *Checker) lateness() time.Duration {
	hi, lo := bits.Mul64(c.lateTicks, uint64(c.layout.Unit()))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(lo)
}

// look checks that an ID fits the layout.
func (c *Checker) look(k key) {
	if k.hi&c.fixed.hi == c.fixedTo.hi && k.lo&c.fixed.lo == c.fixedTo.lo {
		if !c.ordered {
			c.extend(k)
		}
		return
	}
	if c.foreign++; c.foreign == 1 {
		_, err := c.timeOf(k)
		c.first = &ForeignID{c.text(k), c.order.count, err}
	}
}

// extend updates the first and last time, for layouts whose IDs do not sort by
// time.
func (c *Checker) extend(k key) {
	t, err := c.timeOf(k)
	if err != nil {
		return
	}
	if c.firstTime.IsZero() || t.Before(c.firstTime) {
		c.firstTime = t
	}
	if t.After(c.lastTime) {
		c.lastTime = t
	}
}

func (c *Checker) partsOf(k key) (firn.Parts, error) {
	switch c.layout.Bits() {
	case 64:
		return c.layout.Decompose(firn.ID(k.lo))
	case 96:
		id := firn.ID128FromUint64s(k.hi, k.lo)
		return c.layout.DecomposeBytes(id[4:])
	}
	return c.layout.Decompose128(firn.ID128FromUint64s(k.hi, k.lo))
}

func (c *Checker) timeOf(k key) (time.Time, error) {
	p, err := c.partsOf(k)
	return p.Time, err
}

// text formats an ID as the input does.
func (c *Checker) text(k key) string {
	f, ok := c.from.Format()
	switch {
	case c.bits == 96 || !ok:
		return fmt.Sprintf("%08x%016x", k.hi, k.lo)
	case f == firn.Raw:
		f = firn.Hex
	}
	if c.bits == 64 || c.bits == 0 && !c.wide && f != firn.UUID {
		return string(f.Append(nil, firn.ID(k.lo)))
	}
	return string(f.Append128(nil, firn.ID128FromUint64s(k.hi, k.lo)))
}

// span returns the times of the first and the last ID.
func (c *Checker) span() (first, last time.Time, ok bool) {
	if !c.hasLayout || c.order.count == 0 {
		return first, last, false
	}
	if !c.ordered {
		return c.firstTime, c.lastTime, !c.firstTime.IsZero()
	}
	first, err := c.timeOf(c.min)
	last, err2 := c.timeOf(c.max)
	return first, last, err == nil && err2 == nil
}
