package firn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// A Source makes batches of IDs: a Generator, or something that asks one over
// a network. NextBatch gives n IDs, or fewer, but at least one; it must be safe
// for use by many goroutines at once.
type Source = SourceOf[ID]

// A Source128 is a Source of 128-bit IDs.
type Source128 = SourceOf[ID128]

// A SourceOf is a Source or a Source128.
type SourceOf[I AnyID[I]] interface {
	NextBatch(ctx context.Context, n int) (BatchOf[I], error)
}

// A Prefetcher hands out IDs one by one from batches of a Source.
// It is safe for use by many goroutines at once, and must be made by
// NewPrefetcher or StartPrefetcher.
type Prefetcher = PrefetcherOf[ID]

// A Prefetcher128 is a Prefetcher of 128-bit IDs.
type Prefetcher128 = PrefetcherOf[ID128]

// A PrefetcherOf is a Prefetcher or a Prefetcher128.
type PrefetcherOf[I AnyID[I]] struct {
	source   SourceOf[I]
	count    int
	validity time.Duration // 0 or less: IDs may be of any age
	timed    bool          // take looks at the clock, as no timer ends a block

	block  atomic.Pointer[block[I]]
	fetch  chan struct{} // holds one item: who has it may fetch
	closed atomic.Bool
	ahead  *ahead[I] // nil if callers fetch themselves; then it has fetch and closed

	fetches, discarded atomic.Uint64
}

// A block is a batch ready for use. It is immutable but for next, low and near. It
// fills a cache line, which whoever takes an ID must own anyway.
type block[I AnyID[I]] struct {
	size    uint64                     // number of IDs
	next    atomic.Uint64              // index of the next ID; size or more when used up
	low     atomic.Uint64              // index from which on the next batch is fetched
	near    atomic.Pointer[stretch[I]] // where an ID was taken last: where to look first
	content *content[I]
	arrived time.Time
}

// The content of a block is its IDs as stretches, or one by one where these would
// be short. Stretches are small, where IDs that another processor has laid out
// would have to come from its cache, which takes longer than all the rest.
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

// seal ends a block, and returns how many of its IDs nobody has taken.
func (b *block[I]) seal() (left uint64) { return b.size - min(b.size, b.next.Swap(b.size)) }

// ErrClosed means that Close was called: the Prefetcher hands out no more IDs.
var ErrClosed = errors.New("firn: prefetcher is closed")

// NewPrefetcher makes a Prefetcher that fetches count IDs at a time from the
// source, when the last batch is used up or older than validity. What is left
// of an old batch is discarded: IDs are never older than validity when they
// are handed out. A validity of 0 or less means that they may be of any age.
//
// These are the rules of Hazelcast's prefetch-count and prefetch-validity-millis
// (there 100 and 10 minutes): a batch becomes invalid validity after it arrived,
// that instant included. It panics if source is nil or count is less than 1.
//
// It starts no goroutine: it fetches when a caller needs an ID that is not there.
// StartPrefetcher makes one that fetches before that.
func NewPrefetcher(source Source, count int, validity time.Duration) *Prefetcher {
	return newPrefetcher[ID](source, count, validity)
}

// NewPrefetcher128 is NewPrefetcher for 128-bit IDs.
func NewPrefetcher128(source Source128, count int, validity time.Duration) *Prefetcher128 {
	return newPrefetcher[ID128](source, count, validity)
}

func newPrefetcher[I AnyID[I]](source SourceOf[I], count int, validity time.Duration) *PrefetcherOf[I] {
	if source == nil || count < 1 {
		panic(fmt.Sprintf("firn: NewPrefetcher needs a source and a count of at least 1, not %d", count))
	}
	p := &PrefetcherOf[I]{source: source, count: count, validity: validity, timed: validity > 0, fetch: make(chan struct{}, 1)}
	p.block.Store(new(block[I]))
	p.fetch <- struct{}{}
	return p
}

// Next hands out the next ID, and fetches a batch first where that is needed.
// One caller fetches, under its own context; the others wait for it, each under
// theirs. If it fails, only its own call fails, and the next one tries.
//
// Where StartPrefetcher made p, callers do not fetch but wait, each under its own
// context, and none ends the fetch. If it fails, the calls fail that it began
// for; one that came later, when it was under way, waits for another.
//
// A context that is done is no error where no wait is needed.
func (p *PrefetcherOf[I]) Next(ctx context.Context) (id I, err error) {
	needContext(ctx)
	if !p.timed {
		b := p.block.Load()
		if i := b.next.Add(1) - 1; i < b.size {
			if i >= b.low.Load() {
				p.fetchSoon(b)
			}
			// What at does, as calls are stores that the next Add must wait for.
			if s := b.near.Load(); s != nil && i-s.start < s.size {
				if first, ok := any(&s.first).(*ID); ok {
					*any(&id).(*ID) = *first + ID((i-s.start)*s.step)
					return id, nil
				}
			}
			return b.at(i), nil
		}
	}
	return p.nextSlow(ctx)
}

// nextSlow is Next where there may be no ID.
func (p *PrefetcherOf[I]) nextSlow(ctx context.Context) (id I, err error) {
	if p.ahead != nil {
		var one [1]I
		_, err := p.await(ctx, one[:])
		return one[0], err
	}
	for {
		b := p.block.Load()
		if id, ok := p.take(b); ok {
			return id, nil
		}
		select {
		case <-p.fetch:
		case <-ctx.Done():
			return id, ctx.Err()
		}
		if id, ok, err := p.refill(ctx, b); ok || err != nil {
			return id, err
		}
	}
}

// TryNext hands out the next ID if it has been fetched. It never waits, and never
// fetches; where StartPrefetcher made p, it has the next batch fetched. Where
// there is no ID, the error matches ErrExhausted, and the error of the last fetch
// if that failed.
func (p *PrefetcherOf[I]) TryNext() (id I, err error) {
	if p.ahead != nil {
		var one [1]I
		err := p.tryAhead(one[:])
		return one[0], err
	}
	if id, ok := p.take(p.block.Load()); ok {
		return id, nil
	}
	if p.closed.Load() {
		return id, ErrClosed
	}
	return id, ErrExhausted
}

// Fill fills dst with the next IDs, of as many batches as that takes. Other
// callers may get IDs in between. After an error dst is undefined, and the IDs
// that it has are lost.
func (p *PrefetcherOf[I]) Fill(ctx context.Context, dst []I) error {
	needContext(ctx)
	if p.ahead != nil {
		for len(dst) > 0 {
			n := p.takeSome(p.block.Load(), dst)
			if n == 0 {
				var err error
				if n, err = p.await(ctx, dst); err != nil {
					return err
				}
			}
			dst = dst[n:]
		}
		return nil
	}
	for i := range dst {
		id, err := p.Next(ctx)
		if err != nil {
			return err
		}
		dst[i] = id
	}
	return nil
}

// take takes the next ID of a block that is neither used up nor too old.
func (p *PrefetcherOf[I]) take(b *block[I]) (id I, ok bool) {
	if b.next.Load() >= b.size {
		return id, false
	}
	if p.timed && time.Since(b.arrived) >= p.validity {
		return id, false
	}
	i := b.next.Add(1) - 1
	if i >= b.size {
		return id, false
	}
	return b.at(i), true
}

// refill puts a new block in place of old, and takes its first ID: however
// short the validity, a call that has fetched gets one. It is not ok if another
// call has fetched meanwhile. The caller holds what was in fetch; refill puts it
// back, even if the source panics.
func (p *PrefetcherOf[I]) refill(ctx context.Context, old *block[I]) (id I, ok bool, err error) {
	defer func() { p.fetch <- struct{}{} }()
	if p.closed.Load() {
		return id, false, ErrClosed
	}
	if p.block.Load() != old {
		return id, false, nil
	}
	batch, err := p.source.NextBatch(ctx, p.count)
	if err != nil {
		return id, false, err
	}
	b, err := newBlock(batch, p.count)
	if err != nil {
		return id, false, err
	}
	p.fetches.Add(1)
	p.discarded.Add(old.seal())
	b.next.Store(1)
	// It fails where Close did not wait for this fetch; then this call alone gets an ID.
	p.block.CompareAndSwap(old, b)
	return b.at(0), true, nil
}

// Close ends p: what has been fetched is forgotten, and calls from now on return
// ErrClosed, as do those that wait for a fetch that StartPrefetcher's p had begun.
// It ends that fetch, and waits for it, or until ctx is done; nothing runs any
// more when it has returned nil. It may be called more than once.
func (p *PrefetcherOf[I]) Close(ctx context.Context) error {
	if p.ahead != nil {
		return p.closeAhead(ctx)
	}
	p.closed.Store(true)
	p.forget()
	select {
	case <-p.fetch: // no caller fetches any more
	default:
		select {
		case <-p.fetch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.fetch <- struct{}{}
	return nil
}

// forget drops what has been fetched.
func (p *PrefetcherOf[I]) forget() { p.block.Swap(new(block[I])).seal() }

// PrefetchStats is what a prefetcher has done since it was made.
type PrefetchStats struct {
	Fetches   uint64 // batches fetched
	Discarded uint64 // IDs that grew too old before anybody asked for them
}

// Stats reports what the prefetcher has done.
func (p *PrefetcherOf[I]) Stats() PrefetchStats {
	return PrefetchStats{Fetches: p.fetches.Load(), Discarded: p.discarded.Load()}
}
