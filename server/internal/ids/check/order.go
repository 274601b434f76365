package check

import (
	"cmp"
	"slices"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// idOf returns a number as an ID of size bytes, or of 16 if it needs more.
func idOf(n firn.ID128, size int) form.ID {
	if id := form.ID(n[16-size:]); id.Number() == n {
		return id
	}
	return n[:]
}

// order adds how the IDs are ordered.
func (c *Checker) order(r *Report) {
	low, high := c.at(0), c.at(0)
	for place := range uint32(c.count) {
		switch n := c.at(place); {
		case n.Compare(high) > 0:
			high = n
		case place > 0:
			r.Increasing = false
			if n != high {
				r.Inversions++
			}
			if n.Compare(low) < 0 {
				low = n
			}
		}
	}
	r.Min, r.Max = idOf(low, c.size), idOf(high, c.size)
	if !r.Increasing {
		c.sort(r)
	}
	r.Furthest = idOf(c.at(uint32(r.Place)), c.size)
}

// How many duplicates are reported in full.
const (
	maxDuplicated = 10
	maxPlaces     = 4
)

// sort sorts the places of the IDs, and adds which IDs are duplicates, and how
// far IDs are from their sorted positions.
func (c *Checker) sort(r *Report) {
	places := make([]uint32, c.count)
	for i := range places {
		places[i] = uint32(i)
	}
	slices.SortFunc(places, func(a, b uint32) int {
		if n, other := c.at(a), c.at(b); n != other {
			return n.Compare(other)
		}
		return cmp.Compare(a, b)
	})
	var last firn.ID128
	var run Duplicate // of the last ID
	for position, place := range places {
		n := c.at(place)
		if distance := uint64(max(position-int(place), int(place)-position)); distance > r.K {
			r.K, r.Place = distance, uint64(place)
		}
		if position > 0 && n == last {
			r.Duplicates++
			run.Times++
			if len(run.Places) < maxPlaces {
				run.Places = append(run.Places, uint64(place))
			}
			continue
		}
		r.keep(run, idOf(last, c.size))
		last, run = n, Duplicate{Times: 1, Places: append(run.Places[:0], uint64(place))}
	}
	r.keep(run, idOf(last, c.size))
}

// keep keeps the duplicates that occur first in the stream.
func (r *Report) keep(d Duplicate, id form.ID) {
	if d.Times < 2 {
		return
	}
	byPlace := func(a, b Duplicate) int { return cmp.Compare(a.Places[1], b.Places[1]) }
	i, _ := slices.BinarySearchFunc(r.Duplicated, d, byPlace)
	if i >= maxDuplicated {
		return
	}
	d.ID, d.Places = id, slices.Clone(d.Places)
	r.Duplicated = slices.Insert(r.Duplicated, i, d)
	r.Duplicated = r.Duplicated[:min(len(r.Duplicated), maxDuplicated)]
}
