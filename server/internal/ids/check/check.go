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
	o    Options
	wide bool   // an ID needed more than 64 bits
	r    Report // Min, Max, K and so on are set at the end

	order    order
	min, max key
	latest   key // the ID with the greatest lateness
}

// New makes a Checker.
func New(o Options) *Checker {
	return &Checker{o: o, order: order{limit: o.Memory}}
}

// Count returns how many IDs were added.
func (c *Checker) Count() uint64 { return c.order.count }

// AddText adds the next ID as text. After an *IDError the check can continue;
// any other error ends it, such as a *MemoryError or an
// *inspect.AmbiguousError.
func (c *Checker) AddText(text string) error {
	b, from, err := inspect.Decode(text, c.o.From, c.o.Bits)
	switch {
	case errors.As(err, new(*inspect.AmbiguousError)):
		return err
	case err != nil:
		return &IDError{err}
	case 8*len(b) > MaxBits && c.o.From.IsAuto():
		return &WideError{text, 8 * len(b)}
	case 8*len(b) > MaxBits:
		return &IDError{&WideError{text, 8 * len(b)}}
	}
	c.o.From = from
	return c.AddBytes(b)
}

// AddBytes adds the next ID as bytes, big-endian.
func (c *Checker) AddBytes(b []byte) error {
	var wide [16]byte
	copy(wide[16-len(b):], b)
	k := key{binary.BigEndian.Uint64(wide[:8]), binary.BigEndian.Uint64(wide[8:])}
	c.wide = c.wide || k.hi != 0
	if c.order.count == 0 {
		c.min, c.max = k, k
	}
	if k.less(c.max) {
		c.r.Inversions++
	} else {
		c.max = k
	}
	if k.less(c.min) {
		c.min = k
	}
	if !c.o.Layout.IsZero() {
		c.look(b, k)
	}
	return c.order.add(k)
}

// look checks that an ID fits the layout, and compares its time with those
// before.
func (c *Checker) look(b []byte, k key) {
	p, err := c.o.Layout.DecomposeBytes(b)
	if err != nil {
		if c.r.Foreign++; c.r.Foreign == 1 {
			c.r.FirstForeign = &ForeignID{c.text(k), c.order.count, err}
		}
		return
	}
	if !c.r.Times || p.Time.Before(c.r.First) {
		c.r.First = p.Time
	}
	if !c.r.Times || p.Time.After(c.r.Last) {
		c.r.Last = p.Time
	}
	c.r.Times = true
	if late := c.r.Last.Sub(p.Time); late > c.r.Lateness {
		c.r.Lateness, c.latest = late, k
	}
}

// Report ends the stream and returns the result.
func (c *Checker) Report() Report {
	f, r := c.order.find(), c.r
	r.Count, r.Duplicates, r.Increasing, r.From = c.order.count, f.repeats, f.increases, c.o.From
	r.K, r.Place = f.k, f.kFrom
	if r.Count > 0 {
		r.Min, r.Max = c.text(c.min), c.text(c.max)
		r.Furthest, r.Latest = c.text(f.kKey), c.text(c.latest)
	}
	for _, x := range f.repeated {
		d := Duplicate{ID: c.text(x.key), Times: x.times, Places: x.places}
		if !c.o.Layout.IsZero() {
			b := x.key.bytes()
			p, err := c.o.Layout.DecomposeBytes(b[16-c.o.Layout.Bits()/8:])
			d.Parts, d.Known = p, err == nil
		}
		r.Duplicated = append(r.Duplicated, d)
	}
	return r
}

// text formats an ID as the input does.
func (c *Checker) text(k key) string {
	f, ok := c.o.From.Format()
	switch {
	case c.o.Bits == 96 || !ok:
		return fmt.Sprintf("%08x%016x", k.hi, k.lo)
	case f == firn.Raw:
		f = firn.Hex
	}
	if c.o.Bits == 64 || c.o.Bits == 0 && !c.wide && f != firn.UUID {
		return string(f.Append(nil, firn.ID(k.lo)))
	}
	return string(f.Append128(nil, firn.ID128FromUint64s(k.hi, k.lo)))
}
