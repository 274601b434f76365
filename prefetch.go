package firn

import (
	"context"
	"fmt"
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
// NewPrefetcher.
type Prefetcher = PrefetcherOf[ID]

// A Prefetcher128 is a Prefetcher of 128-bit IDs.
type Prefetcher128 = PrefetcherOf[ID128]

// A PrefetcherOf is a Prefetcher or a Prefetcher128.
type PrefetcherOf[I AnyID[I]] struct {
	source   SourceOf[I]
	count    int
	validity time.Duration

	block atomic.Pointer[block[I]]
	fetch chan struct{} // holds one item: who has it may fetch

	fetches, discarded atomic.Uint64
}

// A block is a batch laid out for use. It is immutable but for next.
type block[I any] struct {
	ids     []I
	arrived time.Time
	next    atomic.Uint64 // index of the next ID; past the end when used up
}

// NewPrefetcher makes a Prefetcher that fetches count IDs at a time from the
// source, when the last batch is used up or older than validity. What is left
// of an old batch is discarded: IDs are never older than validity when they
// are handed out. A validity of 0 or less means that they may be of any age.
//
// These are the rules of Hazelcast's prefetch-count and prefetch-validity-millis
// (there 100 and 10 minutes): a batch becomes invalid validity after it arrived,
// that instant included. It panics if source is nil or count is less than 1.
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
	p := &PrefetcherOf[I]{source: source, count: count, validity: validity, fetch: make(chan struct{}, 1)}
	p.block.Store(new(block[I]))
	p.fetch <- struct{}{}
	return p
}

// Next hands out the next ID, and fetches a batch first where that is needed.
// One caller fetches, under its own context; the others wait for it, each under
// theirs. If it fails, only its own call fails, and the next one tries.
func (p *PrefetcherOf[I]) Next(ctx context.Context) (id I, err error) {
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

// take takes the next ID of a block that is neither used up nor too old.
func (p *PrefetcherOf[I]) take(b *block[I]) (id I, ok bool) {
	if b.next.Load() >= uint64(len(b.ids)) {
		return id, false // without adding, so that next cannot come round
	}
	if p.validity > 0 && time.Since(b.arrived) >= p.validity {
		return id, false
	}
	i := b.next.Add(1) - 1
	if i >= uint64(len(b.ids)) {
		return id, false
	}
	return b.ids[i], true
}

// refill puts a new block in place of old, and takes its first ID: however
// short the validity, a call that has fetched gets one. It is not ok if another
// call has fetched meanwhile. The caller holds what was in fetch; refill puts it
// back, even if the source panics.
func (p *PrefetcherOf[I]) refill(ctx context.Context, old *block[I]) (id I, ok bool, err error) {
	defer func() { p.fetch <- struct{}{} }()
	if p.block.Load() != old {
		return id, false, nil
	}
	batch, err := p.source.NextBatch(ctx, p.count)
	if err != nil {
		return id, false, err
	}
	if n := batch.Len(); n < 1 || n > p.count {
		return id, false, fmt.Errorf("firn: the source of a prefetcher was asked for %d IDs and gave %d", p.count, n)
	}
	b := &block[I]{ids: batch.appendTo(nil), arrived: time.Now()}
	p.fetches.Add(1)
	if used := old.next.Swap(uint64(len(old.ids))); used < uint64(len(old.ids)) {
		p.discarded.Add(uint64(len(old.ids)) - used)
	}
	b.next.Store(1)
	p.block.Store(b)
	return b.ids[0], true, nil
}

// PrefetchStats is what a prefetcher has done since it was made.
type PrefetchStats struct {
	Fetches   uint64 // batches fetched
	Discarded uint64 // IDs that grew too old before anybody asked for them
}

// Stats reports what the prefetcher has done.
func (p *PrefetcherOf[I]) Stats() PrefetchStats {
	return PrefetchStats{Fetches: p.fetches.Load(), Discarded: p.discarded.Load()}
}
