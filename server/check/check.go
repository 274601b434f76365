// Package check finds out exactly whether a stream of IDs has duplicates, and
// how it is ordered. It sorts the stream outside of what is in order already,
// which costs no memory.
//
// It compares numbers, and needs no layout. Package inspect says what a single
// ID is.
package check

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/inspect"
)

// MaxBits is how many bits an ID can have.
const MaxBits = 128

// Options say how IDs are read. The zero value of a field means what the field
// says.
type Options struct {
	// Layout is that of the IDs, for their times; the zero Layout means that it is
	// unknown.
	Layout firn.Layout

	// From is how the IDs are written. If it is automatic, the first ID that can
	// be read says how.
	From inspect.Encoding

	// Bits is how many bits the IDs have: 64, 96 or 128; 0 means what their text
	// says.
	Bits int

	// Memory is how many bytes sorting may take. IDs that strictly increase take
	// none.
	Memory uint64
}

// A Report is what a Checker has found out. The text of an ID is as in the
// stream. A place is how many IDs came before.
type Report struct {
	Count      uint64
	Duplicates uint64      // IDs that came before already
	Duplicated []Duplicate // the first few of these
	Inversions uint64      // IDs that came after a greater one
	Increasing bool        // strictly, from the first ID to the last
	Min, Max   string      // "" if there is no ID

	// K is the largest distance of an ID from its sorted position, Furthest that
	// ID, and Place its place.
	K        uint64
	Furthest string
	Place    uint64

	// Lateness is the most that an ID came after one with a greater time, in its
	// own time, and Latest that ID. First and Last are times, if Times is set.
	// They need a layout.
	Lateness    time.Duration
	Latest      string
	Times       bool
	First, Last time.Time

	Foreign      uint64           // IDs that are not of the layout
	FirstForeign *ForeignID       // the first of these, if there are any
	From         inspect.Encoding // how the IDs are written
}

// A Duplicate is an ID that came more than once.
type Duplicate struct {
	ID     string
	Times  uint64
	Places []uint64 // the first few

	Parts firn.Parts // of the ID, if Known is set
	Known bool
}

// A ForeignID is an ID that is not of the layout, with the reason if there is
// one.
type ForeignID struct {
	ID    string
	Place uint64
	Err   error
}

// An IDError says why a text is not an ID. The stream can continue after it.
type IDError struct{ Err error }

func (e *IDError) Error() string { return e.Err.Error() }

func (e *IDError) Unwrap() error { return e.Err }

// A WideError says that an ID has more bits than MaxBits.
type WideError struct {
	Text string
	Bits int
}

func (e *WideError) Error() string {
	return fmt.Sprintf("%s is an ID of %d bits: check reads those of up to %d", inspect.Quote(e.Text), e.Bits, MaxBits)
}

// A Checker reads a stream of IDs. It is for one goroutine, must be made by
// New, and ends with Close.
type Checker struct {
	layout firn.Layout
	from   inspect.Encoding
	bits   int  // 0: what the text says
	wide   bool // an ID needed more than 64 bits

	order     order
	min, max  key
	late      uint64 // IDs that came after a greater one
	latest    key    // the one that was furthest behind in its own time
	lateTicks uint64 // by how much
	maxTick   uint64 // the time of max, where maxTickOf is max
	maxTickOf key

	foreign   uint64 // IDs that are not of the layout
	first     *ForeignID
	hasLayout bool
	fixed     key // bits that all IDs of the layout share …
	fixedTo   key // … and their values
	ordered   bool
	times     []firn.Piece // of the layout
	firstTime time.Time    // where the order of the IDs does not tell
	lastTime  time.Time
}

// New makes a Checker.
func New(o Options) *Checker {
	c := &Checker{layout: o.Layout, from: o.From, bits: o.Bits, order: order{limit: o.Memory}}
	c.readLayout()
	return c
}

// Count is how many IDs were added.
func (c *Checker) Count() uint64 { return c.order.count }

// Inversions is how many of them came after a greater one.
func (c *Checker) Inversions() uint64 { return c.late }

// Memory is how many bytes are taken for sorting.
func (c *Checker) Memory() uint64 { return c.order.used }

// Close frees what the Checker has taken.
func (c *Checker) Close() error { return c.order.close() }

// AddText adds the next ID as a text. After an *IDError the next one can be
// added; any other error ends the check, such as a *MemoryError or an
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

// keyOf is the number that up to 16 bytes are.
func keyOf(b []byte) key {
	var wide [16]byte
	copy(wide[16-len(b):], b)
	return key{binary.BigEndian.Uint64(wide[:8]), binary.BigEndian.Uint64(wide[8:])}
}

// Report is what was found out about the whole stream. Nothing is added after
// it. tick is called now and then with how many IDs are sorted.
func (c *Checker) Report(ctx context.Context, tick func(done uint64)) (Report, error) {
	f, err := c.order.find(ctx, func(done uint64) error { tick(done); return nil })
	if err != nil {
		return Report{}, err
	}
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
	return r, nil
}

// readLayout finds the bits that are the same in all IDs.
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

// add takes the next ID.
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

// measure compares the time of an ID with that of the greatest before it.
func (c *Checker) measure(k key) {
	if c.maxTickOf != c.max {
		c.maxTick, c.maxTickOf = c.tick(c.max), c.max
	}
	// Ticks and not times: this is for every ID where a stream has no order.
	if late := c.maxTick - c.tick(k); late > c.lateTicks && late <= c.maxTick {
		c.lateTicks, c.latest = late, k
	}
}

// tick is the time field of an ID.
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

// lateness is the most that an ID was behind, in its own time.
func (c *Checker) lateness() time.Duration {
	hi, lo := bits.Mul64(c.lateTicks, uint64(c.layout.Unit()))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(lo)
}

// look checks that an ID is of the layout.
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

// extend notes the first and the last time, where IDs do not sort by it.
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

// text writes an ID as the input has it.
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

// span is the time of the first and the last ID.
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
