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
	var wide [16]byte
	copy(wide[16-len(id):], id)
	return key{binary.BigEndian.Uint64(wide[:8]), binary.BigEndian.Uint64(wide[8:])}
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

// An order determines exactly how a stream of keys is ordered: which keys
// repeat, and how far the keys are from their sorted positions. It keeps all
// keys, and sorts their places.
type order struct {
	count    uint64
	last     key
	disorder bool    // some key is not greater than the one before
	chunks   [][]key // of chunkKeys
}

const chunkKeys = 1 << 16

// add takes the next key of the stream.
func (o *order) add(k key) {
	o.disorder = o.disorder || o.count > 0 && !o.last.less(k)
	o.last = k
	if o.count%chunkKeys == 0 {
		o.chunks = append(o.chunks, make([]key, 0, chunkKeys))
	}
	end := &o.chunks[len(o.chunks)-1]
	*end = append(*end, k)
	o.count++
}

// at returns the key at a place.
func (o *order) at(place uint32) key { return o.chunks[place/chunkKeys][place%chunkKeys] }

// A finding is the result of an order.
type finding struct {
	repeats   uint64 // keys that had already occurred
	repeated  []repeat
	k         uint64 // the largest distance of a key from its sorted position
	kFrom     uint64 // the place of the key with this distance
	increases bool   // every key is greater than the one before
}

// A repeat is a key that occurs more than once.
type repeat struct {
	key    key
	places []uint64 // the first few, in order
	times  uint64
}

// How many repeats are reported in full.
const (
	maxRepeats = 10
	maxPlaces  = 4
)

// find sorts the added keys.
func (o *order) find() finding {
	if !o.disorder {
		return finding{increases: true}
	}
	places := make([]uint32, o.count)
	for i := range places {
		places[i] = uint32(i)
	}
	slices.SortFunc(places, func(a, b uint32) int {
		if k, other := o.at(a), o.at(b); k != other {
			return k.compare(other)
		}
		return cmp.Compare(a, b)
	})

	var f finding
	var run repeat // of the current key
	for position, place := range places {
		k := o.at(place)
		if distance := uint64(max(position-int(place), int(place)-position)); distance > f.k {
			f.k, f.kFrom = distance, uint64(place)
		}
		if position > 0 && k == run.key {
			f.repeats++
			run.times++
			if len(run.places) < maxPlaces {
				run.places = append(run.places, uint64(place))
			}
		} else {
			f.note(run)
			run = repeat{key: k, places: append(run.places[:0], uint64(place)), times: 1}
		}
	}
	f.note(run)
	return f
}

// note keeps the repeats that occur first in the stream.
func (f *finding) note(r repeat) {
	if r.times < 2 {
		return
	}
	i, _ := slices.BinarySearchFunc(f.repeated, r, func(a, b repeat) int { return cmp.Compare(a.places[1], b.places[1]) })
	if i >= maxRepeats {
		return
	}
	r.places = slices.Clone(r.places)
	f.repeated = slices.Insert(f.repeated, i, r)
	f.repeated = f.repeated[:min(len(f.repeated), maxRepeats)]
}
