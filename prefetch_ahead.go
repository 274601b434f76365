package firn

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// PrefetchOptions say how much a Prefetcher of StartPrefetcher fetches. A zero
// field, or a nil pointer, means what the field says.
type PrefetchOptions struct {
	// Count is the number of IDs that is asked for at first, and the least; 0
	// means 100.
	//
	// It doubles whenever a caller had to wait because a batch was used up before
	// the next was there: with batches so large that the fetch takes less time
	// than the use of half a batch, nobody waits. It is halved when a batch grows
	// too old before half of it was used.
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

// StartPrefetcher makes a Prefetcher that fetches ahead: when half of a batch is
// used, the next is asked for in the background, so that callers wait only at
// first, after a pause longer than the validity, and where the source is slower
// than they are. One fetch is under way at a time. If one fails while there are
// IDs left, nobody sees it, and it is tried again as they go down.
//
// Nothing is fetched before the first call, and a Prefetcher that is not called
// does nothing. The source's NextBatch gets a context that ends with Close. If it
// panics, the fetch has failed, and the calls that get its error panic instead.
//
// A copy of the process, such as a snapshot of its machine that is restored, holds
// the same batch and hands out the same IDs: close a Prefetcher before.
//
// It panics if source is nil, or the options contradict each other.
func StartPrefetcher(source Source, o *PrefetchOptions) *Prefetcher {
	return startPrefetcher[ID](source, o)
}

// StartPrefetcher128 is StartPrefetcher for 128-bit IDs.
func StartPrefetcher128(source Source128, o *PrefetchOptions) *Prefetcher128 {
	return startPrefetcher[ID128](source, o)
}

func startPrefetcher[I AnyID[I]](source SourceOf[I], o *PrefetchOptions) *PrefetcherOf[I] {
	if source == nil {
		panic("firn: StartPrefetcher needs a source")
	}
	filled := o.fill()
	a := &ahead[I]{least: filled.Count, most: filled.MaxCount, count: filled.Count, ended: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	p := &PrefetcherOf[I]{source: source, validity: filled.Validity, ahead: a}
	p.block.Store(new(block[I]))
	return p
}

// An ahead is what a Prefetcher needs to fetch in the background.
//
// IDs are taken from the block without a lock. Blocks are put in place under mu,
// and only where the one before is sealed or used up: so IDs come in the order of
// their batches, and none comes twice.
type ahead[I AnyID[I]] struct {
	ctx         context.Context // of fetches
	cancel      context.CancelFunc
	least, most int           // of count
	ended       chan struct{} // closed when p is closed and nothing runs

	mu       sync.Mutex // guards what follows, and the replacing of the block
	count    int        // to ask for
	ready    *block[I]  // fetched, and not yet in place
	fetching *fetch[I]  // under way
	failed   error      // of the last fetch
	timer    *time.Timer
	running  int // fetches under way and timers that have not fired
	closed   bool
	waits    uint64
}

// A fetch is a fetch in the background. Its results may be read when done is
// closed.
type fetch[I AnyID[I]] struct {
	done  chan struct{}
	block *block[I]
	err   error
	crash string // the panic of the source, and where it came from
	late  bool   // a call waits for it that should not have to; guarded by mu
}

// errNoReturn is the error of a fetch whose source ended the goroutine, as a
// test's FailNow does.
var errNoReturn = errors.New("firn: the source of a prefetcher did not return")

// takeSome takes the next IDs of a block, at most as many as dst holds, and has
// the next batch fetched if few are left.
func (p *PrefetcherOf[I]) takeSome(b *block[I], dst []I) int {
	n := b.takeSome(dst)
	if n > 0 && b.next.Load() > b.low.Load() {
		p.fetchSoon(b)
	}
	return n
}

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

// fetchSoon fetches the next batch, for the block that has reached its low.
func (p *PrefetcherOf[I]) fetchSoon(b *block[I]) {
	if low := b.low.Load(); low == never || !b.low.CompareAndSwap(low, never) {
		return // another caller does it
	}
	a := p.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed && a.fetching == nil && a.ready == nil && p.block.Load() == b {
		p.start()
	}
}

// await takes the next IDs, at most as many as dst holds and at least one, and
// waits until there are any.
func (p *PrefetcherOf[I]) await(ctx context.Context, dst []I) (int, error) {
	a := p.ahead
	var waited *fetch[I]
	for {
		n, f, began, err := p.takeOrFetch(dst, waited)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		// A failure that is older than the call is no answer to it.
		if f.err != nil && (began || waited != nil) {
			if a.ctx.Err() != nil {
				return 0, ErrClosed
			}
			if f.crash != "" {
				panic(f.crash)
			}
			return 0, f.err
		}
		waited = f
	}
}

// tryAhead is TryNext. It fills dst, which has one place.
func (p *PrefetcherOf[I]) tryAhead(dst []I) error {
	if p.takeSome(p.block.Load(), dst) > 0 {
		return nil
	}
	n, _, _, err := p.takeOrFetch(dst, nil)
	if n > 0 || err != nil {
		return err
	}
	p.ahead.mu.Lock()
	defer p.ahead.mu.Unlock()
	if p.ahead.failed != nil {
		return fmt.Errorf("%w: the last fetch has failed: %w", ErrExhausted, p.ahead.failed)
	}
	return ErrExhausted
}

// takeOrFetch takes the next IDs, of the block or of the one that is ready to
// replace it. Where there are none, it returns the fetch that is under way, or
// that it began. A batch that the caller has waited for is never too old for it.
func (p *PrefetcherOf[I]) takeOrFetch(dst []I, waited *fetch[I]) (n int, f *fetch[I], began bool, err error) {
	a := p.ahead
	a.mu.Lock()
	b := p.block.Load()
	defer func() {
		low := n > 0 && b.next.Load() > b.low.Load()
		a.mu.Unlock()
		if low {
			p.fetchSoon(b)
		}
	}()
	if a.closed {
		return 0, nil, false, ErrClosed
	}
	if n = b.takeSome(dst); n > 0 {
		return n, nil, false, nil
	}
	spent := b.size > 0 // used up, where a block that was too old is gone
	if r := a.ready; r != nil {
		if waited != nil && waited.block == r || !p.tooOld(r) {
			// Taken before anybody else can, and before its timer ends it.
			n = r.copyTo(dst, 0)
			r.next.Store(uint64(n))
			p.put(r)
			b = r
			return n, nil, false, nil
		}
		p.drop(r)
		a.ready, spent = nil, false
	}
	f = a.fetching
	if spent && (f == nil || !f.late) {
		a.count = min(2*a.count, a.most)
	}
	if f == nil {
		f, began = p.start(), true
	}
	f.late = f.late || spent
	a.waits++
	return 0, f, began, nil
}

// start begins a fetch. The caller holds mu.
func (p *PrefetcherOf[I]) start() *fetch[I] {
	a := p.ahead
	f := &fetch[I]{done: make(chan struct{}), err: errNoReturn}
	a.fetching = f
	a.running++
	go p.run(f, a.count)
	return f
}

// run fetches count IDs.
func (p *PrefetcherOf[I]) run(f *fetch[I], count int) {
	a := p.ahead
	defer func() { // also if the source does not return
		a.mu.Lock()
		a.fetching, a.failed = nil, f.err
		switch {
		case a.closed:
		case f.err == nil:
			a.ready = f.block
		default:
			// Again when half of what is left is used, and so on.
			b := p.block.Load()
			if used := b.next.Load(); used < b.size {
				b.low.Store(used + (b.size-used)/2)
			}
		}
		close(f.done)
		a.end()
		a.mu.Unlock()
	}()
	defer func() {
		// Only the goroutine of a call can be recovered by the program.
		if v := recover(); v != nil {
			f.crash = fmt.Sprintf("firn: the source of a prefetcher panicked: %v\n\n%s", v, debug.Stack())
			f.err = fmt.Errorf("firn: the source of a prefetcher panicked: %v", v)
		}
	}()
	batch, err := p.source.NextBatch(a.ctx, count)
	if err != nil {
		f.err = err
		return
	}
	if f.block, f.err = newBlock(batch, count); f.err == nil {
		p.fetches.Add(1)
	}
}

// put puts the block that is ready in place of one that is sealed or used up.
// The caller holds mu.
func (p *PrefetcherOf[I]) put(b *block[I]) {
	a := p.ahead
	a.ready = nil
	b.low.Store(b.size / 2)
	a.stopTimer()
	if p.validity > 0 {
		a.running++
		a.timer = time.AfterFunc(p.validity-time.Since(b.arrived), func() { p.expire(b) })
	}
	p.block.Store(b)
}

// expire ends a block that is too old.
func (p *PrefetcherOf[I]) expire(b *block[I]) {
	a := p.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.end()
	if p.block.Load() != b {
		return // used up just now
	}
	a.timer = nil
	p.drop(b)
	r := a.ready
	if r != nil && !p.tooOld(r) {
		p.put(r)
		return
	}
	if r != nil {
		p.drop(r)
		a.ready = nil
	}
	p.block.Store(new(block[I]))
}

// drop seals a block that is too old, and fetches less from now on if most of it
// was left. The caller holds mu.
func (p *PrefetcherOf[I]) drop(b *block[I]) {
	left := b.seal()
	p.discarded.Add(left)
	if left > b.size/2 {
		p.ahead.count = max(p.ahead.count/2, p.ahead.least)
	}
}

// tooOld reports whether the IDs of a block may not be used any more.
func (p *PrefetcherOf[I]) tooOld(b *block[I]) bool {
	return p.validity > 0 && time.Since(b.arrived) >= p.validity
}

// stopTimer ends the timer of the block in place. If it has fired already, it
// finds another block there. The caller holds mu.
func (a *ahead[I]) stopTimer() {
	if a.timer != nil && a.timer.Stop() {
		a.end()
	}
	a.timer = nil
}

// end counts one less that runs. The caller holds mu.
func (a *ahead[I]) end() {
	a.running--
	if a.closed && a.running == 0 {
		close(a.ended)
	}
}

// closeAhead is Close.
func (p *PrefetcherOf[I]) closeAhead(ctx context.Context) error {
	a := p.ahead
	a.mu.Lock()
	if !a.closed {
		a.running++ // until the end of this
		a.closed = true
		a.cancel()
		a.ready = nil
		a.stopTimer()
		p.forget()
		a.end()
	}
	a.mu.Unlock()
	select {
	case <-a.ended:
		return nil
	default:
	}
	select {
	case <-a.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Waits is how many calls found no ID, and waited or, as TryNext, gave up. It is
// always 0 where NewPrefetcher made p, whose callers fetch themselves.
func (p *PrefetcherOf[I]) Waits() uint64 {
	if p.ahead == nil {
		return 0
	}
	p.ahead.mu.Lock()
	defer p.ahead.mu.Unlock()
	return p.ahead.waits
}
