package firn

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// A fetch is a call to the source that is in progress: in the background, or by
// the caller that began it. Its results may be read once done is closed.
type fetch[I AnyID] struct {
	count     int  // of IDs
	byCaller  bool // made by the call that began it
	began     time.Time
	done      chan struct{} // made for the first call that waits; guarded by mu
	block     *block[I]
	err       error
	crash     string // the panic of the source, with its stack
	abandoned bool   // the call that made it gave up
	late      bool   // a call waits for it that should not have to; guarded by mu
	tooLarge  bool   // the source said so, and the next fetch is smaller
}

// errNoReturn is the error of a fetch whose source ended the goroutine, as
// FailNow does in a test.
var errNoReturn = errors.New("firn: the source of a prefetcher did not return")

// takeSome takes the next IDs of a block, up to the length of dst, and triggers
// the next fetch if few are left.
func (p *PrefetcherOf[I]) takeSome(b *block[I], dst []I) int {
	n := b.takeSome(dst)
	if n > 0 {
		p.fetchSoon(b)
	}
	return n
}

// fetchSoon fetches the next batch if block b has reached its refetchAt.
func (p *PrefetcherOf[I]) fetchSoon(b *block[I]) {
	if at := b.refetchAt.Load(); b.next.Load() <= at || !b.refetchAt.CompareAndSwap(at, never) {
		return // enough is left, or another caller does it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.fetching == nil && p.ready == nil && p.block.Load() == b {
		p.startFetch(false)
	}
}

// awaitSome takes at least one ID and up to the length of dst, and waits until
// there is one.
func (p *PrefetcherOf[I]) awaitSome(ctx context.Context, dst []I) (int, error) {
	ctx.Done() // may block or panic, and no fetch must wait for that
	var waited *fetch[I]
	for {
		n, f, began, err := p.takeOrFetch(dst, waited, true)
		if n > 0 || err != nil {
			return n, err
		}
		if began && f.byCaller {
			switch n = p.runFetch(ctx, f, dst); {
			case n > 0:
				p.fetchSoon(f.block)
				return n, nil
			case f.abandoned && f.crash != "":
				panic(f.crash)
			case f.abandoned:
				return 0, p.gaveUpError(f, f.err, ctx.Err())
			}
		} else {
			select {
			case <-f.done:
			case <-ctx.Done():
				return 0, p.gaveUpError(f, nil, ctx.Err())
			}
		}
		// The failure of a fetch that began before this call, for another one,
		// does not answer it.
		if f.err != nil && !f.abandoned && !f.tooLarge && (began || waited != nil) {
			if p.ctx.Err() != nil {
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

// gaveUpError returns the error of a call whose context ended, with the error
// ended, during fetch f. It names why the call waited: the error of the source,
// or else that of the last fetch.
func (p *PrefetcherOf[I]) gaveUpError(f *fetch[I], reason, ended error) error {
	if !isReason(reason) {
		p.mu.Lock()
		reason = p.lastErr
		p.mu.Unlock()
		if reason == nil {
			return fmt.Errorf("firn: a fetch has taken %v so far: %w", time.Since(f.began), ended)
		}
		reason = fmt.Errorf("firn: the last fetch failed: %w", reason)
	}
	if errors.Is(reason, ended) {
		return reason
	}
	return fmt.Errorf("%w: %w", reason, ended)
}

// isReason reports whether the error of a fetch whose call gave up is more than
// that the call gave up.
func isReason(err error) bool {
	return err != nil && err != context.Canceled && err != context.DeadlineExceeded && err != errNoReturn
}

// takeOrFetch takes the next IDs from the current block, or from the one that
// is ready to replace it. Without IDs, it returns the fetch in progress, or
// begins one. If it has begun one that is byCaller, the caller, which waits,
// must run it. A caller that waited for a background batch gets IDs from it
// however old it is.
func (p *PrefetcherOf[I]) takeOrFetch(dst []I, waited *fetch[I],
	waits bool) (n int, f *fetch[I], began bool, err error) {
	p.mu.Lock()
	b := p.block.Load()
	defer func() {
		p.mu.Unlock()
		if n > 0 {
			p.fetchSoon(b)
		}
	}()
	if p.closed {
		return 0, nil, false, ErrClosed
	}
	if n = b.takeSome(dst); n > 0 {
		return n, nil, false, nil
	}
	spent := b.size > 0 // used up, as opposed to discarded for its age
	if r := p.ready; r != nil {
		if waited != nil && waited.block == r || !p.tooOld(r) {
			// Take them before any other call can, and before the block's timer
			// ends it.
			n = r.copyTo(dst, 0)
			r.next.Store(uint64(n))
			p.install(r)
			b = r
			return n, nil, false, nil
		}
		p.discard(r)
		p.ready, spent = nil, false
	}
	if waited == nil {
		p.waits++
	}
	f = p.fetching
	if spent && (f == nil || !f.late) {
		p.count = p.growth.next(p.count, p.minCount, p.maxCount)
		p.fetchAhead = !p.onDemand && time.Since(b.arrived) > minBatchLife
	}
	if f == nil {
		f, began = p.startFetch(waits && !p.abandoned), true
	}
	f.late = spent
	if f.done == nil && !(began && f.byCaller) {
		f.done = make(chan struct{})
	}
	return 0, f, began, nil
}

// minBatchLife is how long a batch must last for fetching ahead, which saves
// half of that time: waking a goroutine that fetches takes about as long.
const minBatchLife = 50 * time.Microsecond

// startFetch begins a fetch. If byCaller is set, the caller must run it. The
// caller holds mu.
func (p *PrefetcherOf[I]) startFetch(byCaller bool) *fetch[I] {
	f := &fetch[I]{count: p.count, byCaller: byCaller, err: errNoReturn, began: time.Now()}
	p.fetching = f
	p.running++
	if !byCaller {
		if p.idle {
			p.idle = false
			p.work <- f
		} else {
			p.running++
			go p.fetchLoop(f)
		}
	}
	return f
}

// lingerTime is how long the goroutine of a background fetch waits for another
// one. A goroutine that waits is woken in a quarter of the time that a new one
// takes to start, and its stack has grown already.
const lingerTime = 100 * time.Millisecond

// fetchLoop runs a background fetch, and those that follow soon.
func (p *PrefetcherOf[I]) fetchLoop(f *fetch[I]) {
	defer func() { // even if the source does not return
		p.mu.Lock()
		defer p.mu.Unlock()
		p.decRunning()
	}()
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	for {
		p.runFetch(p.ctx, f, nil)
		timer.Reset(lingerTime)
		select {
		case f = <-p.work:
			continue
		case <-timer.C:
		case <-p.ctx.Done():
		}
		p.mu.Lock()
		leave := p.idle
		p.idle = false
		p.mu.Unlock()
		if leave {
			return
		}
		f = <-p.work // it came at the last moment
	}
}

// runFetch fetches. If a call fetches, runFetch takes the first IDs for it, up
// to the length of dst, so it gets some however short the validity is.
func (p *PrefetcherOf[I]) runFetch(ctx context.Context, f *fetch[I], dst []I) (n int) {
	defer func() { // even if the source does not return
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fetching, p.abandoned = nil, f.abandoned || p.abandoned && f.err != nil
		if f.err != nil && !f.abandoned {
			var smaller bool
			p.count, smaller = p.growth.fail(f.count, p.count, p.minCount)
			f.tooLarge = smaller && errors.Is(f.err, ErrBatchTooLarge)
		}
		if (!f.abandoned || isReason(f.err)) && !f.tooLarge {
			p.lastErr = f.err
		}
		if !f.byCaller {
			p.idle = f.err != errNoReturn // if so, fetchLoop waits from now on
		}
		if f.err == nil {
			p.growth.record(f.count, time.Since(f.began))
		}
		switch b := p.block.Load(); {
		case f.err == nil && !f.byCaller:
			if !p.closed {
				p.ready = f.block
			}
		case f.err == nil:
			n = f.block.copyTo(dst, 0)
			f.block.next.Store(uint64(n))
			if !p.closed { // after Close gave up waiting, no other call gets an ID
				p.install(f.block)
			}
		default:
			// Fetch again when half of the rest is used, and so on.
			if used := b.next.Load(); used < b.size {
				b.refetchAt.Store(used + (b.size-used)/2)
			}
		}
		if f.done != nil {
			close(f.done)
		}
		p.decRunning()
	}()
	if !f.byCaller {
		p.callSource(ctx, f)
		return 0
	}
	f.abandoned = true // if the source, or this, does not return
	joined, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	p.callSource(joined, f)
	f.abandoned = f.err != nil && joined.Err() != nil && p.ctx.Err() == nil
	return 0
}

// callSource calls the source.
func (p *PrefetcherOf[I]) callSource(ctx context.Context, f *fetch[I]) {
	defer func() {
		if v := recover(); v != nil {
			f.crash = fmt.Sprintf("firn: the source of a prefetcher panicked: %v\n\n%s", v, debug.Stack())
			f.err = fmt.Errorf("firn: the source of a prefetcher panicked: %v", v)
		}
	}()
	batch, err := p.source.NextBatch(ctx, f.count)
	if err != nil {
		f.err = err
		return
	}
	if f.block, f.err = newBlock(batch, f.count); f.err == nil {
		p.fetches.Add(1)
		f.block.arrived = time.Now()
		f.block.content.took = f.block.arrived.Sub(f.began)
	}
}

// install replaces the current block, which is sealed or used up, by the one
// that is ready. The caller holds mu.
func (p *PrefetcherOf[I]) install(b *block[I]) {
	p.ready = nil
	if p.fetchAhead {
		b.refetchAt.Store(b.size / 2)
	}
	p.stopTimer()
	if p.validity > 0 {
		p.running++
		p.timer = time.AfterFunc(p.validity-b.age(), func() { p.expire(b) })
	}
	p.block.Store(b)
}

// expire ends a block that is too old.
func (p *PrefetcherOf[I]) expire(b *block[I]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.decRunning()
	if p.block.Load() != b {
		return // just used up
	}
	p.timer = nil
	p.discard(b)
	if p.ready != nil {
		p.install(p.ready) // with a timer of its own
		return
	}
	p.block.Store(new(block[I]))
}

// discard seals a block that is too old, and makes later fetches smaller if
// most of it was left. The caller holds mu.
func (p *PrefetcherOf[I]) discard(b *block[I]) {
	left := b.seal()
	p.discarded.Add(left)
	if left > b.size/2 {
		p.count = max(p.count/2, p.minCount)
	}
}

// tooOld reports whether a block is too old to be used.
func (p *PrefetcherOf[I]) tooOld(b *block[I]) bool {
	return p.validity > 0 && b.age() >= p.validity
}

// stopTimer stops the timer of the current block. If it has already fired, it
// will find a different block. The caller holds mu.
func (p *PrefetcherOf[I]) stopTimer() {
	if p.timer != nil && p.timer.Stop() {
		p.decRunning()
	}
	p.timer = nil
}

// decRunning decrements the number of running fetches and timers. The caller
// holds mu.
func (p *PrefetcherOf[I]) decRunning() {
	p.running--
	if p.closed && p.running == 0 {
		close(p.ended)
	}
}
