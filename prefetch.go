package firn

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A Prefetcher hands out IDs one by one from batches of a Source. It is safe
// for concurrent use by multiple goroutines and must be made by NewPrefetcher.
// See PrefetcherOf for its methods.
type Prefetcher = PrefetcherOf[ID]

// A PrefetcherOf is a Prefetcher of 64-bit or 128-bit IDs.
type PrefetcherOf[I AnyID] struct {
	source             SourceOf[I]
	validity           time.Duration // 0 or less: IDs may have any age
	minCount, maxCount int           // bounds of count
	onDemand           bool          // fetches do not begin before IDs run out

	// IDs are taken from block without a lock. A block is replaced under mu,
	// and only if it is sealed or used up, so IDs come in the order of their
	// batches and none comes twice.
	block              atomic.Pointer[block[I]]
	fetches, discarded atomic.Uint64

	work   chan *fetch[I]  // for the goroutine that waits; holds one
	ctx    context.Context // of all fetches; done when p is closed
	cancel context.CancelFunc
	ended  chan struct{} // closed when p is closed and nothing runs

	mu         sync.Mutex // guards the fields below, and replacing the block
	count      int        // number of IDs to ask for
	growth     growth     // of count
	fetchAhead bool       // whether fetching ahead is worthwhile
	abandoned  bool       // a call gave up its fetch, and no fetch has succeeded since
	ready      *block[I]  // fetched in the background and not yet in use
	fetching   *fetch[I]  // in progress
	lastErr    error      // error of the last fetch that succeeded or gave a reason
	timer      *time.Timer
	idle       bool // a goroutine waits for work
	running    int  // fetches in progress, their goroutine, and timers that have not fired
	closed     bool
	waits      uint64
}

// PrefetchOptions configure a Prefetcher. A nil pointer and zero fields mean
// the defaults given for each field. Hazelcast's prefetch-count of 100 is
// {Count: 100, MaxCount: 100, OnDemand: true}, with its
// prefetch-validity-millis as Validity.
type PrefetchOptions struct {
	// Count is the number of IDs to ask for at first, and the minimum; 0 means
	// 100, or MaxCount if that is set and less.
	//
	// The number doubles whenever a caller had to wait because a batch was used
	// up before the next one arrived. Once fetching a batch takes less time
	// than using half of one, callers no longer wait. The number stays the same
	// if fetching twice as many IDs took nearly twice as long: the source then
	// has a limited rate, and callers would only wait longer each time. It goes
	// back to the last number that worked if a fetch of more IDs fails: the
	// source may have a limit. It is halved when a batch grows too old before
	// half of it was used.
	Count int

	// MaxCount is the maximum number of IDs to ask for; 0 means 10,000, or
	// Count if that is more.
	MaxCount int

	// Validity is the maximum age of an ID when it is handed out, counted from
	// the beginning of its fetch; 0 means 10 minutes, and a negative value
	// means no limit. A timer ends the batch: an ID is handed out later only by
	// as much as the timer is late, which is the time that the runtime needs to
	// start a goroutine. A program that was suspended for longer may hand out a
	// few more IDs of the batch right after it resumes.
	Validity time.Duration

	// OnDemand switches fetching ahead off: a batch is fetched only when a call
	// needs an ID and none is left.
	OnDemand bool
}

// Check returns an error if Count or MaxCount is negative, or MaxCount is less
// than Count.
func (o *PrefetchOptions) Check() error {
	if o != nil && (o.Count < 0 || o.MaxCount < 0 || o.MaxCount > 0 && o.Count > o.MaxCount) {
		return fmt.Errorf("firn: PrefetchOptions have a Count of %d and a MaxCount of %d: they cannot be negative, and "+
			"Count cannot exceed MaxCount", o.Count, o.MaxCount)
	}
	return nil
}

// withDefaults returns the options with defaults filled in.
func (o *PrefetchOptions) withDefaults() PrefetchOptions {
	set := *cmp.Or(o, new(PrefetchOptions))
	set.Count = cmp.Or(set.Count, min(100, cmp.Or(set.MaxCount, 100)))
	set.MaxCount = cmp.Or(set.MaxCount, max(set.Count, 10_000))
	set.Validity = cmp.Or(set.Validity, 10*time.Minute)
	return set
}

// NewPrefetcher returns a Prefetcher that fetches ahead: when half of a batch
// is used, it requests the next one in the background. Callers wait only for
// the first batch, after a pause longer than the validity, and if the source is
// slower than they are. There is one fetch at a time. If one fails while IDs
// are left, callers do not notice, and it is retried as more IDs are used.
//
// A call that finds no ID, and no fetch in progress, fetches itself. If batches
// are used up within 50 µs, calls make all fetches: waking a goroutine would
// take longer than it saves.
//
// Nothing is fetched before the first call, and a Prefetcher that is not called
// does nothing. The context passed to the source's NextBatch is canceled by
// Close. If a call fetches, it is derived from the context of that call. If
// NextBatch panics, the fetch has failed, and the calls that would return its
// error panic instead.
//
// A copy of the process, such as a restored snapshot of its virtual machine,
// holds the same batch and hands out the same IDs. Close a Prefetcher before
// taking a snapshot.
//
// NewPrefetcher panics if source is nil, or if Check returns an error. Other
// constructors return an error, because a layout or a grant may come from a
// user or a store. These numbers are the program's own, so a bad one is a
// mistake in the program.
func NewPrefetcher[I AnyID](source SourceOf[I], o *PrefetchOptions) *PrefetcherOf[I] {
	if source == nil {
		panic("firn: NewPrefetcher needs a source")
	}
	if err := o.Check(); err != nil {
		panic(err.Error())
	}
	set := o.withDefaults()
	p := &PrefetcherOf[I]{
		source: source, validity: set.Validity, minCount: set.Count, maxCount: set.MaxCount, onDemand: set.OnDemand,
		count: set.Count, fetchAhead: !set.OnDemand, ended: make(chan struct{}), work: make(chan *fetch[I], 1),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.block.Store(new(block[I]))
	return p
}

// Next returns the next ID, and fetches a batch first if necessary. One caller
// fetches, under its own context, and the others wait for it, each under
// theirs.
//
// If a fetch fails, the calls for which it began fail, unless the error matches
// ErrBatchTooLarge and fewer IDs worked before: they are then fetched. A call
// that arrived while it was in progress waits for another one. If a fetch ends
// because the call that made it gave up, only that call fails, and the next
// fetch is made in the background, where no caller's context ends it.
//
// If the context ends during a wait, the error matches the context's error and
// also the reason for the wait: the error of the source, if this call fetched
// and the source gave one, or else that of the last fetch, if that failed.
//
// A context that is done is not an error if no wait is needed.
func (p *PrefetcherOf[I]) Next(ctx context.Context) (id I, err error) {
	needContext(ctx)
	b := p.block.Load()
	if i := b.next.Add(1) - 1; i < b.size {
		if i >= b.refetchAt.Load() {
			p.fetchSoon(b)
		}
		// block.at inlined by hand: a call would be a store that the next Add
		// must wait for.
		if s := b.lastStretch.Load(); s != nil && i-s.start < s.size {
			if first, ok := any(&s.first).(*ID); ok {
				*any(&id).(*ID) = *first + ID((i-s.start)*s.step)
				return id, nil
			}
		}
		return b.at(i), nil
	}
	var one [1]I
	_, err = p.takeOrAwait(ctx, one[:])
	return one[0], err
}

// TryNext returns the next ID if it has already been fetched. It never waits:
// if there is no ID, it begins a fetch in the background, unless there is one in
// progress. The error is then ErrExhausted or, if the last fetch failed, wraps
// that of the source, and matches ErrExhausted only if that does. A fetch whose
// call gave up counts only if its source returned more than the bare error of
// the context.
func (p *PrefetcherOf[I]) TryNext() (id I, err error) {
	var one [1]I
	if p.takeSome(p.block.Load(), one[:]) > 0 {
		return one[0], nil
	}
	n, _, _, err := p.takeOrFetch(one[:], nil, false)
	if n > 0 || err != nil {
		return one[0], err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastErr != nil {
		return id, fmt.Errorf("firn: the last fetch failed: %w", p.lastErr)
	}
	return id, ErrExhausted
}

// Fill fills dst with the next IDs, from as many batches as necessary. It waits
// and fails like Next. Other callers may get IDs in between. After an error,
// the contents of dst are undefined, and the IDs taken so far are lost.
func (p *PrefetcherOf[I]) Fill(ctx context.Context, dst []I) error {
	needContext(ctx)
	for len(dst) > 0 {
		n, err := p.takeOrAwait(ctx, dst)
		if err != nil {
			return err
		}
		dst = dst[n:]
	}
	return nil
}

// takeOrAwait takes at least one ID and up to the length of dst. It fetches or
// waits if no ID is left.
func (p *PrefetcherOf[I]) takeOrAwait(ctx context.Context, dst []I) (int, error) {
	if n := p.takeSome(p.block.Load(), dst); n > 0 {
		return n, nil
	}
	return p.awaitSome(ctx, dst)
}

// Close closes p. Fetched IDs are discarded, and calls return ErrClosed from
// now on, including those that wait for a fetch. Close cancels a fetch in
// progress, and waits until that ends, or until ctx is done; a call that
// fetches may still get its IDs. After Close has returned nil, nothing runs any
// more. Close may be called more than once.
func (p *PrefetcherOf[I]) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.running++ // until Close returns
		p.closed = true
		p.cancel()
		p.ready = nil
		p.stopTimer()
		p.block.Swap(new(block[I])).seal()
		p.decRunning()
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

// PrefetchStats are statistics of a Prefetcher since it was made.
type PrefetchStats struct {
	Fetches   uint64 // batches fetched
	Discarded uint64 // IDs that grew too old before they were used
	Waits     uint64 // calls that found no ID and fetched, waited or, in TryNext, gave up
}

// Stats returns statistics of the Prefetcher.
func (p *PrefetcherOf[I]) Stats() PrefetchStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PrefetchStats{Fetches: p.fetches.Load(), Discarded: p.discarded.Load(), Waits: p.waits}
}
