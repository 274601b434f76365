package firn

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
//
// IDs are taken from the block without a lock. Blocks are put in place under
// mu, and only where the one before is sealed or used up: so IDs come in the
// order of their batches, and none comes twice.
type PrefetcherOf[I AnyID[I]] struct {
	source      SourceOf[I]
	validity    time.Duration // 0 or less: IDs may be of any age
	least, most int           // of count
	background  bool          // fetches are not made by callers, and begin before they are needed
	timed       bool          // a look at the clock ends a block, and not a timer

	block              atomic.Pointer[block[I]]
	fetches, discarded atomic.Uint64

	ctx    context.Context // of fetches in the background
	cancel context.CancelFunc
	ended  chan struct{} // closed when p is closed and nothing runs

	mu       sync.Mutex // guards what follows, and the replacing of the block
	count    int        // to ask for
	pace     pace       // whether it is worth while to ask for more
	ready    *block[I]  // fetched in the background, and not yet in place
	fetching *fetch[I]  // under way
	failed   error      // of the last fetch
	timer    *time.Timer
	running  int // fetches under way and timers that have not fired
	closed   bool
	waits    uint64
}

// ErrClosed means that Close was called: the Prefetcher hands out no more IDs.
var ErrClosed = errors.New("firn: prefetcher is closed")

// NewPrefetcher makes a Prefetcher that fetches count IDs at a time from the
// source, when the last batch is used up or older than validity. What is left
// of an old batch is discarded: IDs are never older than validity when they
// are handed out. A validity of 0 or less means that they may be of any age.
//
// These are the rules of Hazelcast's prefetch-count and
// prefetch-validity-millis (there 100 and 10 minutes): a batch becomes invalid
// validity after it arrived, that instant included. It panics if source is nil
// or count is less than 1.
//
// It starts no goroutine: it fetches when a caller needs an ID that is not
// there. StartPrefetcher makes one that fetches before that.
func NewPrefetcher[I AnyID[I]](source SourceOf[I], count int, validity time.Duration) *PrefetcherOf[I] {
	if source == nil || count < 1 {
		panic(fmt.Sprintf("firn: NewPrefetcher needs a source and a count of at least 1, not %d", count))
	}
	return (&PrefetcherOf[I]{source: source, validity: validity, least: count, most: count, timed: validity > 0}).init()
}

// PrefetchOptions say how much a Prefetcher of StartPrefetcher fetches. A zero
// field, or a nil pointer, means what the field says.
type PrefetchOptions struct {
	// Count is the number of IDs that is asked for at first, and the least; 0
	// means 100.
	//
	// It doubles whenever a caller had to wait because a batch was used up before
	// the next was there: with batches so large that the fetch takes less time
	// than the use of half a batch, nobody waits. It stays where it is if the
	// fetch of a batch twice as large took nearly twice as long: the source then
	// has a rate, and callers would only wait longer at a time. It is halved when
	// a batch grows too old before half of it was used.
	Count int

	// MaxCount is the most that Count grows to; 0 means 10,000, or Count where
	// that is more.
	MaxCount int

	// Validity is how old an ID may be when it is handed out, counted from the
	// arrival of its batch; 0 means 10 minutes, and less than 0 any age. A timer
	// ends the batch, so that a program that was stopped for longer may hand out
	// a few more of them in the moment after.
	Validity time.Duration
}

// fill returns the options with the defaults in place. It panics if they
// contradict each other.
func (o *PrefetchOptions) fill() PrefetchOptions {
	var filled PrefetchOptions
	if o != nil {
		filled = *o
	}
	if filled.Count == 0 {
		filled.Count = 100
		if filled.MaxCount > 0 {
			filled.Count = min(filled.Count, filled.MaxCount)
		}
	}
	if filled.MaxCount == 0 {
		filled.MaxCount = max(filled.Count, 10_000)
	}
	if filled.Validity == 0 {
		filled.Validity = 10 * time.Minute
	}
	if filled.Count < 1 || filled.MaxCount < filled.Count {
		panic(fmt.Sprintf("firn: StartPrefetcher needs a Count of at least 1, and a MaxCount that is not less, not %d and %d", filled.Count, filled.MaxCount))
	}
	return filled
}

// StartPrefetcher makes a Prefetcher that fetches ahead: when half of a batch
// is used, the next is asked for in the background, so that callers wait only
// at first, after a pause longer than the validity, and where the source is
// slower than they are. One fetch is under way at a time. If one fails while
// there are IDs left, nobody sees it, and it is tried again as they go down.
//
// Nothing is fetched before the first call, and a Prefetcher that is not called
// does nothing. The source's NextBatch gets a context that ends with Close. If
// it panics, the fetch has failed, and the calls that get its error panic
// instead.
//
// A copy of the process, such as a snapshot of its machine that is restored,
// holds the same batch and hands out the same IDs: close a Prefetcher before.
//
// It panics if source is nil, or the options contradict each other.
func StartPrefetcher[I AnyID[I]](source SourceOf[I], o *PrefetchOptions) *PrefetcherOf[I] {
	if source == nil {
		panic("firn: StartPrefetcher needs a source")
	}
	set := o.fill()
	return (&PrefetcherOf[I]{source: source, validity: set.Validity, least: set.Count, most: set.MaxCount, background: true}).init()
}

// init makes p ready.
func (p *PrefetcherOf[I]) init() *PrefetcherOf[I] {
	p.count, p.ended = p.least, make(chan struct{})
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.block.Store(new(block[I]))
	return p
}

// Next hands out the next ID, and fetches a batch first where that is needed.
// One caller fetches, under its own context; the others wait for it, each under
// theirs. If it fails, only its own call fails, and the next one tries.
//
// Where StartPrefetcher made p, callers do not fetch but wait, each under its
// own context, and none ends the fetch. If it fails, the calls fail that it
// began for; one that came later, when it was under way, waits for another.
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
	var one [1]I
	_, err = p.some(ctx, one[:])
	return one[0], err
}

// TryNext hands out the next ID if it has been fetched. It never waits, and
// never fetches; where StartPrefetcher made p, it has the next batch fetched.
// Where there is no ID, the error matches ErrExhausted, and the error of the
// last fetch if that failed.
func (p *PrefetcherOf[I]) TryNext() (id I, err error) {
	var one [1]I
	if p.takeSome(p.block.Load(), one[:]) > 0 {
		return one[0], nil
	}
	n, _, _, err := p.takeOrFetch(one[:], nil, p.background)
	if n > 0 || err != nil {
		return one[0], err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return id, fmt.Errorf("%w: the last fetch has failed: %w", ErrExhausted, p.failed)
	}
	return id, ErrExhausted
}

// Fill fills dst with the next IDs, of as many batches as that takes. Other
// callers may get IDs in between. After an error dst is undefined, and the IDs
// that it has are lost.
func (p *PrefetcherOf[I]) Fill(ctx context.Context, dst []I) error {
	needContext(ctx)
	for len(dst) > 0 {
		n, err := p.some(ctx, dst)
		if err != nil {
			return err
		}
		dst = dst[n:]
	}
	return nil
}

// some takes the next IDs, at most as many as dst holds and at least one, and
// fetches or waits where there are none.
func (p *PrefetcherOf[I]) some(ctx context.Context, dst []I) (int, error) {
	if n := p.takeSome(p.block.Load(), dst); n > 0 {
		return n, nil
	}
	return p.await(ctx, dst)
}

// Close ends p: what has been fetched is forgotten, and calls from now on
// return ErrClosed, as do those that wait for a fetch. It ends a fetch in the
// background, and waits for that of a caller, which may still get its IDs; both
// until ctx is done. Nothing runs any more when it has returned nil. It may be
// called more than once.
func (p *PrefetcherOf[I]) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.running++ // until the end of this
		p.closed = true
		p.cancel()
		p.ready = nil
		p.stopTimer()
		p.block.Swap(new(block[I])).seal()
		p.end()
	}
	p.mu.Unlock()
	select {
	case <-p.ended:
		return nil
	default:
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PrefetchStats is what a prefetcher has done since it was made.
type PrefetchStats struct {
	Fetches   uint64 // batches fetched
	Discarded uint64 // IDs that grew too old before anybody asked for them
	Waits     uint64 // calls that found no ID, and fetched, waited or, as TryNext, gave up
}

// Stats reports what the prefetcher has done.
func (p *PrefetcherOf[I]) Stats() PrefetchStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PrefetchStats{Fetches: p.fetches.Load(), Discarded: p.discarded.Load(), Waits: p.waits}
}
