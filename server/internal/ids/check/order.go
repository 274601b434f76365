package check

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// A key is an ID of up to 128 bits as a number.
type key struct{ hi, lo uint64 }

func (k key) compare(o key) int { return cmp.Or(cmp.Compare(k.hi, o.hi), cmp.Compare(k.lo, o.lo)) }

func (k key) less(o key) bool { return k.hi < o.hi || k.hi == o.hi && k.lo < o.lo }

// bytes returns the key as 16 bytes, big-endian.
func (k key) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, k.hi), k.lo)
}

// An order determines exactly how a stream of keys is ordered: which keys
// repeat, and how far the keys are from their sorted positions. It keeps all
// keys, and sorts their places.
type order struct {
	limit uint64 // bytes that it may take
	used  uint64

	count    uint64
	last     key
	disorder bool       // some key is not greater than the one before
	lo, hi   [][]uint64 // halves of the keys in chunks; hi is nil while all are zero
}

const (
	chunkKeys = 1 << 16 // keys in a chunk
	half      = 8       // bytes of half a key
	placeSize = 4       // bytes of a place
)

// A MemoryError means that a stream of more than Count IDs needs more memory
// than Options.Memory: Each bytes for an ID.
type MemoryError struct{ Limit, Count, Each uint64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("more than %d IDs need more than %d bytes: %d each", e.Count, e.Limit, e.Each)
}

// add takes the next key of the stream.
func (o *order) add(k key) error {
	if o.count > 0 && !o.last.less(k) {
		o.disorder = true
	}
	o.last = k
	if o.count%chunkKeys == 0 {
		if err := o.take(half + placeSize); err != nil {
			return err
		}
		o.lo = append(o.lo, make([]uint64, 0, chunkKeys))
		if o.hi != nil {
			if err := o.take(half); err != nil {
				return err
			}
			o.hi = append(o.hi, make([]uint64, 0, chunkKeys))
		}
	}
	if k.hi != 0 && o.hi == nil {
		for _, c := range o.lo {
			if err := o.take(half); err != nil {
				return err
			}
			o.hi = append(o.hi, make([]uint64, len(c), chunkKeys))
		}
	}
	end := len(o.lo) - 1
	o.lo[end] = append(o.lo[end], k.lo)
	if o.hi != nil {
		o.hi[end] = append(o.hi[end], k.hi)
	}
	o.count++
	return nil
}

// take counts the memory for a chunk with so many bytes per key.
func (o *order) take(each uint64) error {
	if o.used += each * chunkKeys; o.used <= o.limit {
		return nil
	}
	e := &MemoryError{o.limit, o.count, half + placeSize}
	if o.hi != nil {
		e.Each += half
	}
	return e
}

// at returns the key at a place.
func (o *order) at(place uint32) key {
	k := key{lo: o.lo[place/chunkKeys][place%chunkKeys]}
	if o.hi != nil {
		k.hi = o.hi[place/chunkKeys][place%chunkKeys]
	}
	return k
}

// A finding is the result of an order.
type finding struct {
	repeats   uint64 // keys that had already occurred
	repeated  []repeat
	k         uint64 // the largest distance of a key from its sorted position
	kKey      key    // the key with this distance
	kFrom     uint64 // its place
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
	slices.SortFunc(places, func(a, b uint32) int { return cmp.Or(o.at(a).compare(o.at(b)), cmp.Compare(a, b)) })

	var f finding
	var run repeat // of the current key
	for position, place := range places {
		k := o.at(place)
		if distance := uint64(max(position-int(place), int(place)-position)); distance > f.k {
			f.k, f.kKey, f.kFrom = distance, k, uint64(place)
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
