// Package check determines exactly whether a stream of IDs has duplicates, how
// it is ordered, and what a move from another generator needs to know. It keeps
// the IDs in memory and sorts them.
//
// It compares numbers. Without a layout, a Report has no times, node IDs and
// foreign IDs. Package inspect interprets single IDs and judges their digits.
package check

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// BytesPerID is how many bytes of memory an ID takes.
const BytesPerID = 20

// ErrMemory means that a Checker has Max IDs.
var ErrMemory = errors.New("too many IDs for the memory")

// ErrWide means that an ID has more than 128 bits.
var ErrWide = errors.New("IDs of up to 128 bits can be checked")

// A Checker reads a stream of IDs. It is not safe for concurrent use.
type Checker struct {
	Max uint64 // how many IDs it takes

	size   int // bytes of the longest ID
	count  uint64
	chunks [][]firn.ID128 // of chunkLen
}

const chunkLen = 1 << 16

// A Report is the result of a check. The place of an ID is the number of IDs
// before it.
type Report struct {
	Count      uint64
	Duplicates uint64      // IDs that had already occurred
	Duplicated []Duplicate // the first few of them
	Inversions uint64      // IDs that follow a greater one
	Increasing bool        // every ID is greater than the one before
	Min, Max   form.ID     // nil if the stream is empty

	// K is the largest distance of an ID from its sorted position, Furthest the
	// ID, and Place its place.
	K        uint64
	Furthest form.ID
	Place    uint64

	// The times in the IDs, if Times is set: Lateness is the longest time by
	// which an ID follows one with a greater time, and Latest is that ID.
	Times       bool
	First, Last time.Time
	Lateness    time.Duration
	Latest      form.ID

	Nodes []uint64 // the node IDs in use, in ascending order

	Small    uint64 // IDs set aside: small numbers from before the layout, see inspect.IsAside
	AllSmall bool   // no ID is set aside: all are such numbers
	Rounding inspect.Rounding

	Foreign      uint64  // IDs that do not fit the layout
	FirstForeign form.ID // the first of them
	ForeignPlace uint64
	ForeignError error // why it does not fit
}

// A Duplicate is an ID that occurs more than once.
type Duplicate struct {
	ID     form.ID
	Times  uint64
	Places []uint64 // the first few
}

// Count returns how many IDs were added.
func (c *Checker) Count() uint64 { return c.count }

// Add adds the next ID. The check can continue after ErrWide, but not after
// ErrMemory.
func (c *Checker) Add(id form.ID) error {
	switch {
	case len(id) > 16:
		return ErrWide
	case c.count == min(c.Max, math.MaxUint32):
		return ErrMemory
	}
	c.size = max(c.size, len(id))
	if c.count%chunkLen == 0 {
		c.chunks = append(c.chunks, make([]firn.ID128, 0, chunkLen))
	}
	end := &c.chunks[len(c.chunks)-1]
	*end = append(*end, id.Number())
	c.count++
	return nil
}

// at returns the ID at a place.
func (c *Checker) at(place uint32) firn.ID128 { return c.chunks[place/chunkLen][place%chunkLen] }

// Report ends the stream and returns the result: with times, nodes and foreign
// IDs by a layout, unless that is zero. Digits are judged by the time now.
func (c *Checker) Report(l firn.Layout, now time.Time) Report {
	r := Report{Count: c.count, Increasing: true}
	if c.count > 0 {
		c.order(&r)
	}
	if !l.IsZero() {
		c.read(&r, l)
	}
	digits := inspect.NewDigits(now)
	for place := range uint32(c.count) {
		digits.Add(idOf(c.at(place), 8))
	}
	r.Rounding = digits.Rounding(l, r.Nodes)
	return r
}

// read adds what the IDs say by a layout.
func (c *Checker) read(r *Report, l firn.Layout) {
	nodes := make(map[uint64]struct{})
	r.AllSmall = c.count > 0 && inspect.IsAside(r.Max, l)
	greater := c.count > 0 && !r.AllSmall
	for place := range c.count {
		id := idOf(c.at(uint32(place)), l.Bits()/8)
		if greater && inspect.IsAside(id, l) {
			r.Small++
			continue
		}
		p, err := l.DecomposeBytes(id)
		if err != nil {
			if r.Foreign++; r.Foreign == 1 {
				r.FirstForeign, r.ForeignPlace, r.ForeignError = id, place, err
			}
			continue
		}
		nodes[p.Node] = struct{}{}
		if !r.Times || p.Time.Before(r.First) {
			r.First = p.Time
		}
		if !r.Times || p.Time.After(r.Last) {
			r.Last = p.Time
		}
		r.Times = true
		if late := r.Last.Sub(p.Time); late > r.Lateness {
			r.Lateness, r.Latest = late, id
		}
	}
	r.Nodes = slices.Sorted(maps.Keys(nodes))
}
