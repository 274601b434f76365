package check

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/firnid/firn/server/internal/ids/form"
)

// A key is an ID of up to 128 bits as a number.
type key struct{ hi, lo uint64 }

func keyOf(id form.ID) key {
	hi, lo := id.Uint64s()
	return key{hi, lo}
}

func (k key) compare(o key) int {
	if k.hi != o.hi {
		return cmp.Compare(k.hi, o.hi)
	}
	return cmp.Compare(k.lo, o.lo)
}

func (k key) less(o key) bool { return k.hi < o.hi || k.hi == o.hi && k.lo < o.lo }

// id returns the key as an ID of size bytes, or of 16 if it needs more.
func (k key) id(size int) form.ID {
	id := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(make(form.ID, 0, 16), k.hi), k.lo)
	if keyOf(id[16-size:]) != k {
		return id
	}
	return id[16-size:]
}

// order adds how the IDs are ordered.
func (c *Checker) order(r *Report) {
	low, high := c.at(0), c.at(0)
	for place := range uint32(c.count) {
		switch k := c.at(place); {
		case high.less(k):
			high = k
		case place > 0:
			r.Increasing = false
			if k.less(high) {
				r.Inversions++
			}
			if k.less(low) {
				low = k
			}
		}
	}
	r.Min, r.Max = low.id(c.size), high.id(c.size)
	if !r.Increasing {
		c.sort(r)
	}
	r.Furthest = c.at(uint32(r.Place)).id(c.size)
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
		if k, other := c.at(a), c.at(b); k != other {
			return k.compare(other)
		}
		return cmp.Compare(a, b)
	})
	var last key
	var run Duplicate // of the last key
	for position, place := range places {
		k := c.at(place)
		if distance := uint64(max(position-int(place), int(place)-position)); distance > r.K {
			r.K, r.Place = distance, uint64(place)
		}
		if position > 0 && k == last {
			r.Duplicates++
			run.Times++
			if len(run.Places) < maxPlaces {
				run.Places = append(run.Places, uint64(place))
			}
			continue
		}
		r.keep(run, last.id(c.size))
		last, run = k, Duplicate{Times: 1, Places: append(run.Places[:0], uint64(place))}
	}
	r.keep(run, last.id(c.size))
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
