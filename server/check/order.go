package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// A key is an ID of up to 128 bits as a number.
type key struct{ hi, lo uint64 }

func (k key) compare(o key) int {
	if k.hi != o.hi {
		return cmp.Compare(k.hi, o.hi)
	}
	return cmp.Compare(k.lo, o.lo)
}

func (k key) less(o key) bool { return k.hi < o.hi || k.hi == o.hi && k.lo < o.lo }

// minus returns k - o; k must not be less than o.
func (k key) minus(o key) key {
	lo, borrow := bits.Sub64(k.lo, o.lo, 0)
	hi, _ := bits.Sub64(k.hi, o.hi, borrow)
	return key{hi, lo}
}

// shr shifts right. Shifts by 64 and more give 0 in Go, as required here.
func (k key) shr(n int) key {
	if n >= 64 {
		return key{0, k.hi >> (n - 64)}
	}
	return key{k.hi >> n, k.lo>>n | k.hi<<(64-n)}
}

func (k key) plus(o key) key {
	lo, carry := bits.Add64(k.lo, o.lo, 0)
	hi, _ := bits.Add64(k.hi, o.hi, carry)
	return key{hi, lo}
}

// An order determines exactly how a stream of keys is ordered: which keys
// repeat, and how far the keys are from their sorted positions.
//
// While the keys strictly increase it keeps none of them, only the steps
// between them (see steps). From the first key that does not increase, it keeps
// all keys in chunks. A full chunk is sorted, together with the places of its
// keys. At the end the steps and the chunks are merged, and the index of a key
// in the merged stream is its sorted position.
type order struct {
	limit uint64 // bytes that chunks may take
	used  uint64

	count    uint64
	last     key // the greatest so far
	disorder bool
	steps    steps
	inOrder  uint64 // how many keys are in steps
	chunks   []*chunkOfKeys
	current  *chunkOfKeys
	sorting  sync.WaitGroup
	toSort   chan *chunkOfKeys
}

// chunkKeys is the number of keys in a chunk: their places fit 16 bits.
const chunkKeys = 1 << 16

// A chunkOfKeys holds consecutive keys of the stream.
type chunkOfKeys struct {
	base  uint64   // the place of its first key in the stream
	lo    []uint64 // low halves
	hi    []uint64 // high halves; nil: all zero
	place []uint16 // of each sorted key, from base; nil: the keys arrived sorted
}

func (c *chunkOfKeys) at(i int) key {
	if c.hi == nil {
		return key{0, c.lo[i]}
	}
	return key{c.hi[i], c.lo[i]}
}

func (c *chunkOfKeys) placeOf(i int) uint64 {
	if c.place == nil {
		return c.base + uint64(i)
	}
	return c.base + uint64(c.place[i])
}

// A MemoryError means that a stream needs more memory than Options.Memory. It
// has the number of IDs so far, and of those after the first that was out of
// order.
type MemoryError struct{ Limit, Count, Unordered uint64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("sorting needs more than %d bytes: %d of the %d IDs so far follow the first one that was out of order", e.Limit, e.Unordered, e.Count)
}

// close frees the resources that add has taken.
func (o *order) close() error {
	o.endSorting()
	return o.steps.close()
}

// endSorting waits until all chunks are sorted.
func (o *order) endSorting() {
	if o.toSort != nil {
		close(o.toSort)
		o.sorting.Wait()
		o.toSort = nil
	}
}

// add takes the next key of the stream.
func (o *order) add(k key) error {
	o.count++
	if !o.disorder {
		if o.count == 1 || o.last.less(k) {
			step := k
			if o.count > 1 {
				step = k.minus(o.last)
			}
			o.last = k
			o.inOrder++
			return o.steps.add(step, o.count == 1)
		}
		o.disorder = true
	}
	if o.last.less(k) {
		o.last = k
	}
	c := o.current
	if c == nil {
		c = &chunkOfKeys{base: o.count - 1, lo: make([]uint64, 0, chunkKeys)}
		o.current = c
		if o.used += 8 * chunkKeys; o.used > o.limit {
			return &MemoryError{o.limit, o.count, o.count - o.inOrder}
		}
	}
	if k.hi != 0 && c.hi == nil {
		c.hi = make([]uint64, len(c.lo), chunkKeys)
		if o.used += 8 * chunkKeys; o.used > o.limit {
			return &MemoryError{o.limit, o.count, o.count - o.inOrder}
		}
	}
	c.lo = append(c.lo, k.lo)
	if c.hi != nil {
		c.hi = append(c.hi, k.hi)
	}
	if len(c.lo) == chunkKeys {
		return o.seal()
	}
	return nil
}

// seal hands the current chunk over to be sorted.
func (o *order) seal() error {
	c := o.current
	if c == nil {
		return nil
	}
	o.current = nil
	o.chunks = append(o.chunks, c)
	// Determine now whether the chunk needs places, so that memory is counted
	// before it is used.
	if !sorted(c) {
		if o.used += 2 * chunkKeys; o.used > o.limit {
			return &MemoryError{o.limit, o.count, o.count - o.inOrder}
		}
		if o.toSort == nil {
			o.toSort = make(chan *chunkOfKeys, 2)
			o.sorting.Go(func() {
				var s sorter
				for c := range o.toSort {
					s.sort(c)
				}
			})
		}
		o.toSort <- c
	}
	return nil
}

// sorted reports whether the keys of a chunk never decrease.
func sorted(c *chunkOfKeys) bool {
	for i := 1; i < len(c.lo); i++ {
		if c.at(i).less(c.at(i - 1)) {
			return false
		}
	}
	return true
}

// A sorter sorts chunks by radix: byte by byte from the lowest, skipping bytes
// that are the same in all keys. Equal keys keep their order.
type sorter struct {
	a, b []item
}

type item struct {
	key
	place uint16
}

func (s *sorter) sort(c *chunkOfKeys) {
	n := len(c.lo)
	if s.a == nil {
		s.a, s.b = make([]item, chunkKeys), make([]item, chunkKeys)
	}
	a, b := s.a[:n], s.b[:n]
	first, differ := c.at(0), key{}
	for i := range a {
		k := c.at(i)
		a[i] = item{k, uint16(i)}
		differ.hi |= k.hi ^ first.hi
		differ.lo |= k.lo ^ first.lo
	}
	for shift := 0; shift < 128; shift += 8 {
		part := func(k key) byte { return byte(k.lo >> shift) }
		if shift >= 64 {
			part = func(k key) byte { return byte(k.hi >> (shift - 64)) }
		}
		if part(differ) == 0 {
			continue
		}
		var at [256]uint32
		if shift < 64 {
			sh := uint(shift)
			for i := range a {
				at[byte(a[i].lo>>sh)]++
			}
			starts(&at)
			for i := range a {
				d := byte(a[i].lo >> sh)
				b[at[d]] = a[i]
				at[d]++
			}
		} else {
			sh := uint(shift - 64)
			for i := range a {
				at[byte(a[i].hi>>sh)]++
			}
			starts(&at)
			for i := range a {
				d := byte(a[i].hi >> sh)
				b[at[d]] = a[i]
				at[d]++
			}
		}
		a, b = b, a
	}
	c.place = make([]uint16, n)
	for i := range a {
		c.lo[i], c.place[i] = a[i].lo, a[i].place
		if c.hi != nil {
			c.hi[i] = a[i].hi
		}
	}
}

// starts replaces each count with the position where its keys begin.
func starts(at *[256]uint32) {
	sum := uint32(0)
	for d, n := range at {
		at[d] = sum
		sum += n
	}
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

// find merges the added keys. It calls tick from time to time with the number
// of keys that are done; an error of tick ends the work.
func (o *order) find(ctx context.Context, tick func(done uint64) error) (finding, error) {
	if !o.disorder {
		return finding{increases: true}, nil
	}
	if err := o.seal(); err != nil {
		return finding{}, err
	}
	o.endSorting()
	cursors := make([]*cursor, 0, len(o.chunks)+1)
	if o.inOrder > 0 {
		r, err := o.steps.replay()
		if err != nil {
			return finding{}, err
		}
		c := &cursor{steps: r}
		if err := c.next(); err != nil {
			return finding{}, err
		}
		cursors = append(cursors, c)
	}
	for _, chunk := range o.chunks {
		cursors = append(cursors, &cursor{chunk: chunk, i: 0, key: chunk.at(0), place: chunk.placeOf(0)})
	}
	slices.SortFunc(cursors, func(a, b *cursor) int { return cmp.Or(a.key.compare(b.key), cmp.Compare(a.place, b.place)) })

	var f finding
	var prev key
	var run repeat // of the current key
	var heap []*cursor
	for position := uint64(0); ; position++ {
		if position&(1<<20-1) == 0 {
			if err := errors.Join(context.Cause(ctx), tick(position)); err != nil {
				return f, err
			}
		}
		// Chunks join the heap when their first key is due, so that only a few chunks
		// of a nearly sorted stream are compared.
		for len(cursors) > 0 && (len(heap) == 0 || !heap[0].before(cursors[0])) {
			heap = push(heap, cursors[0])
			cursors = cursors[1:]
		}
		if len(heap) == 0 {
			break
		}
		c := heap[0]
		distance := position - c.place
		if c.place > position {
			distance = c.place - position
		}
		if distance > f.k {
			f.k, f.kKey, f.kFrom = distance, c.key, c.place
		}
		if position > 0 && c.key == prev {
			f.repeats++
			run.times++
			if len(run.places) < maxPlaces {
				run.places = append(run.places, c.place)
			}
		} else {
			f.note(run)
			prev = c.key
			run = repeat{key: prev, places: append(run.places[:0], c.place), times: 1}
		}
		if err := c.next(); err != nil {
			return f, err
		}
		if c.done {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		down(heap)
	}
	f.note(run)
	return f, nil
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

// A cursor is a position in a sorted part of the stream.
type cursor struct {
	key   key
	place uint64
	done  bool

	chunk *chunkOfKeys // or
	steps *stepReader
	i     int
}

func (c *cursor) before(o *cursor) bool {
	if c.key != o.key {
		return c.key.less(o.key)
	}
	return c.place < o.place
}

// next moves to the next key, or sets done.
func (c *cursor) next() error {
	if c.steps != nil {
		step, ok, err := c.steps.next()
		if err != nil {
			return err
		}
		c.done = !ok
		c.key = c.key.plus(step)
		c.place = c.steps.given - 1
		return nil
	}
	if c.i++; c.i == len(c.chunk.lo) {
		c.done = true
		return nil
	}
	c.key, c.place = c.chunk.at(c.i), c.chunk.placeOf(c.i)
	return nil
}

// push and down keep the least cursor at the top of a heap.
func push(heap []*cursor, c *cursor) []*cursor {
	heap = append(heap, c)
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !heap[i].before(heap[parent]) {
			break
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
	return heap
}

func down(heap []*cursor) {
	for i := 0; ; {
		least, left, right := i, 2*i+1, 2*i+2
		if left < len(heap) && heap[left].before(heap[least]) {
			least = left
		}
		if right < len(heap) && heap[right].before(heap[least]) {
			least = right
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}
