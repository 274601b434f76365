package firn

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// A block is a batch ready for use. It is immutable but for next, low and near.
// It fills a cache line, which whoever takes an ID must own anyway.
type block[I AnyID[I]] struct {
	size    uint64                     // number of IDs
	next    atomic.Uint64              // index of the next ID; size or more when used up
	low     atomic.Uint64              // index from which on the next batch is fetched
	near    atomic.Pointer[stretch[I]] // where an ID was taken last: where to look first
	content *content[I]
	arrived time.Time
}

// The content of a block is its IDs as stretches, or one by one where these
// would be short. Stretches are small, where IDs that another processor has
// laid out would have to come from its cache, which takes longer than all the
// rest.
type content[I AnyID[I]] struct {
	stretches []stretch[I] // in order
	ids       []I          // or these
}

// A stretch is a run with the index of its first ID.
type stretch[I AnyID[I]] struct {
	start, size uint64
	first       I
	step        uint64
}

// never is a block's low if nothing is to be fetched ahead.
const never = math.MaxUint64

// newBlock makes a block of a batch. It refuses one that was not asked for.
func newBlock[I AnyID[I]](batch BatchOf[I], count int) (*block[I], error) {
	n := batch.Len()
	if n < 1 || n > count {
		return nil, fmt.Errorf("firn: the source of a prefetcher was asked for %d IDs and gave %d", count, n)
	}
	b := &block[I]{size: uint64(n), content: new(content[I]), arrived: time.Now()}
	b.low.Store(never)
	if b.content.stretches = stretchesOf(batch); b.content.stretches != nil {
		b.near.Store(&b.content.stretches[0])
	} else {
		b.content.ids = batch.appendTo(nil)
	}
	return b, nil
}

// stretchesOf is a batch as stretches, or nil where they are short on average.
func stretchesOf[I AnyID[I]](batch BatchOf[I]) (all []stretch[I]) {
	if batch.composer != nil && !batch.composer.random.isZero() {
		return nil
	}
	const short = 16
	start := uint64(0)
	for r := range batch.eachRun {
		size := uint64(r.Count)
		if over, _ := bits.Mul64(size-1, r.Step); over > 0 || len(all) > batch.n/short {
			return nil
		}
		all = append(all, stretch[I]{start, size, r.First, r.Step})
		start += size
	}
	return all
}

// at is the ID of an index below size.
func (b *block[I]) at(i uint64) I {
	s := b.near.Load()
	if s == nil {
		return b.content.ids[i]
	}
	if i-s.start >= s.size {
		s = b.find(i)
	}
	return s.at(i)
}

// find is the stretch of an index below size. The next IDs will be there too.
func (b *block[I]) find(i uint64) *stretch[I] {
	all := b.content.stretches
	n, _ := slices.BinarySearchFunc(all, i, func(s stretch[I], i uint64) int {
		if s.start+s.size <= i {
			return -1
		}
		return 1
	})
	b.near.Store(&all[n])
	return &all[n]
}

// at is the ID of an index that lies in the stretch.
func (s *stretch[I]) at(i uint64) (id I) {
	by := (i - s.start) * s.step
	// Generic code calls plus by a table; this is an addition.
	if id64, ok := any(&id).(*ID); ok {
		*id64 = *any(&s.first).(*ID) + ID(by)
		return id
	}
	return s.first.plus(by)
}

// copyTo copies the IDs from an index on, as many as there are and dst holds.
func (b *block[I]) copyTo(dst []I, from uint64) int {
	n := int(min(uint64(len(dst)), b.size-from))
	for i := range n {
		dst[i] = b.at(from + uint64(i))
	}
	return n
}

// takeSome takes the next IDs of a block, at most as many as dst holds.
func (b *block[I]) takeSome(dst []I) int {
	// Not more than there are, so that next cannot come round.
	want := min(uint64(len(dst)), b.size)
	if want == 0 || b.next.Load() >= b.size {
		return 0
	}
	start := b.next.Add(want) - want
	if start >= b.size {
		return 0
	}
	return b.copyTo(dst[:want], start)
}

// seal ends a block, and returns how many of its IDs nobody has taken.
func (b *block[I]) seal() (left uint64) { return b.size - min(b.size, b.next.Swap(b.size)) }
