package firn

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// A block is a batch ready for use. It is immutable except for next, refetchAt
// and lastStretch. It fits a cache line, which a goroutine that takes an ID
// must own anyway.
type block[I AnyID] struct {
	size        uint64                     // number of IDs
	next        atomic.Uint64              // index of the next ID; size or more when used up
	refetchAt   atomic.Uint64              // the index at which the next batch is fetched
	lastStretch atomic.Pointer[stretch[I]] // the stretch from which an ID was last taken, searched first
	content     *content[I]
	arrived     time.Time
}

// The content of a block is its IDs as stretches, or one by one if these would
// be short. Stretches are compact. A list of IDs that another processor wrote
// would have to come from that processor's cache, which takes longer than
// everything else.
type content[I AnyID] struct {
	stretches []stretch[I]  // in order
	ids       []I           // used instead of stretches if these are short
	few       [1]stretch[I] // room for stretches, as most batches have one
	took      time.Duration // from the beginning of the fetch to the arrival
}

// A stretch is a run with the index of its first ID.
type stretch[I AnyID] struct {
	start, size uint64
	first       I
	step        uint64
}

// A wholeBlock is a block and its content in one object.
type wholeBlock[I AnyID] struct {
	block[I]
	content content[I]
	_       [96]byte // to the allocator's size of 256, whose objects begin with a cache line
}

// never is the refetchAt of a block that triggers no fetch.
const never = math.MaxUint64

// newBlock returns the block of a batch. It rejects a batch without IDs or with
// more than count.
func newBlock[I AnyID](batch BatchOf[I], count int) (*block[I], error) {
	n := batch.Len()
	if n < 1 || n > count {
		return nil, fmt.Errorf("firn: the source of a prefetcher was asked for %d IDs and gave %d", count, n)
	}
	whole := new(wholeBlock[I])
	b := &whole.block
	b.size, b.content = uint64(n), &whole.content
	b.refetchAt.Store(never)
	if b.content.stretches = stretchesOf(batch, b.content.few[:0]); b.content.stretches != nil {
		b.lastStretch.Store(&b.content.stretches[0])
	} else {
		b.content.ids = make([]I, n)
		batch.write(b.content.ids)
	}
	return b, nil
}

// age returns how old the IDs may be: the source may have made them when the
// fetch began, however late they arrived.
func (b *block[I]) age() time.Duration { return b.content.took + time.Since(b.arrived) }

// stretchesOf appends a batch to all as stretches, or returns nil if these are
// short on average.
func stretchesOf[I AnyID](batch BatchOf[I], all []stretch[I]) []stretch[I] {
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

// at returns the ID with an index below size.
func (b *block[I]) at(i uint64) I {
	s := b.lastStretch.Load()
	if s == nil {
		return b.content.ids[i]
	}
	if i-s.start >= s.size {
		s = b.find(i)
	}
	return s.at(i)
}

// find returns the stretch of an index below size, and remembers it, because
// the next IDs are there too.
func (b *block[I]) find(i uint64) *stretch[I] {
	all := b.content.stretches
	n, _ := slices.BinarySearchFunc(all, i, func(s stretch[I], i uint64) int {
		if s.start+s.size <= i {
			return -1
		}
		return 1
	})
	b.lastStretch.Store(&all[n])
	return &all[n]
}

// at returns the ID with an index within the stretch.
func (s *stretch[I]) at(i uint64) (id I) {
	by := (i - s.start) * s.step
	// Generic code calls plus through a table; this is an addition.
	if id64, ok := any(&id).(*ID); ok {
		*id64 = *any(&s.first).(*ID) + ID(by)
		return id
	}
	return fromWide[I](wideOf(&s.first).plus(by))
}

// copyTo copies the IDs from an index on, until the block ends or dst is full.
func (b *block[I]) copyTo(dst []I, from uint64) int {
	n := int(min(uint64(len(dst)), b.size-from))
	for i := range n {
		dst[i] = b.at(from + uint64(i))
	}
	return n
}

// takeSome takes the next IDs of a block, up to the length of dst.
func (b *block[I]) takeSome(dst []I) int {
	// Never add more than the size, so that next cannot wrap around.
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

// seal ends a block and returns the number of IDs that were left.
func (b *block[I]) seal() (left uint64) { return b.size - min(b.size, b.next.Swap(b.size)) }
