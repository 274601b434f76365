package grant

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/firnid/firn"
)

// A simCall is a kind of call that a program or an operator makes.
type simCall int

// The kinds of calls.
const (
	callTryNext   simCall = iota
	callNext              // waits for a window
	callReserve           // up to a whole window at once, and again while it is held
	callNextBatch         // also more than MaxAhead allows
	callFill
	callBurst    // of single IDs, also of a generator that is sealed
	callPrefetch // an ID that was fetched some time ago
	callCreate
	callDetach
	callAttach
	callDestroy
	callPurge
	callFence
	callRepair
	simCalls
)

var callNames = [simCalls]string{
	"TryNext", "Next", "Reserve", "NextBatch", "Fill", "Burst", "Prefetcher", "Create", "Detach", "Attach",
	"Destroy", "Purge", "Fence", "Repair",
}

// String returns the call in words.
func (c simCall) String() string { return callNames[c] }

// tools are what a process makes IDs with, besides its generator.
type tools struct {
	ahead      time.Duration // MaxAhead of g
	prefetcher *firn.Prefetcher
	fetchedOf  *format
	sealed     []*firn.Generator // the most recent ones
}

// retire keeps a sealed generator, as a program may: it makes no more IDs.
func (p *member) retire() {
	const most = 2
	p.sealed = append(p.sealed, p.g)
	p.sealed = p.sealed[max(0, len(p.sealed)-most):]
}

// done is a context that has ended: a call with it never waits. What a real
// call waits for is an event here, after which it is repeated.
var done = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// use makes some IDs.
func (w *world) use(p *member) {
	if p.stopped > w.Now {
		return
	}
	c := callTryNext
	if of := w.focus.Calls; len(of) > 0 && w.Chance(0.5) {
		c = of[w.Rand.IntN(len(of))]
	} else if w.Chance(0.15) {
		c = simCall(w.Rand.IntN(int(callPrefetch) + 1))
	}
	switch c {
	case callReserve:
		w.reserve(p)
	case callNextBatch:
		w.nextBatch(p)
	case callFill:
		w.fillSome(p)
	case callBurst:
		w.burst(p)
	case callPrefetch:
		w.usePrefetcher(p)
	default:
		w.single(p)
	}
}

// single makes IDs one by one.
func (w *world) single(p *member) {
	n := int(w.upTo(6))
	if w.Chance(0.001) || w.focus.Busy < second && w.Chance(0.05) {
		n = 3000 // a burst
	}
	fine := w.fine(p)
	for i := range n {
		if p.g == nil {
			if fine && w.free(p) {
				w.tried(false)
			}
			w.step(p, event{Kind: eventDemand})
			return
		}
		var id firn.ID
		var err error
		if i%2 == 0 {
			id, err = p.g.TryNext()
		} else {
			id, err = p.g.Next(done)
		}
		if err == nil {
			w.called(callTryNext)
			w.take(p, id)
			if fine {
				w.tried(true)
			}
			continue
		}
		if errors.Is(err, firn.ErrGrantOver) {
			// A call waits for the answer, so it fails only if none arrives
			// soon.
			w.step(p, event{Kind: eventDemand})
			w.alive(p, 3*second, func() { w.again(p, fine) })
		}
		return
	}
}

// again makes an ID that had to wait for a window.
func (w *world) again(p *member, fine bool) {
	fine = fine && w.fine(p)
	if p.g == nil {
		return
	}
	id, err := p.g.TryNext()
	switch {
	case err == nil:
		w.called(callNext)
		w.take(p, id)
		if fine {
			w.tried(true)
		}
	case errors.Is(err, firn.ErrGrantOver) && fine && w.free(p):
		w.tried(false)
	}
}

// tried counts an ID that was wanted while all was well.
func (w *world) tried(ok bool) {
	tries, failed := &w.res.Tries, &w.res.Failed
	if w.besieged {
		tries, failed = &w.res.BesiegedTries, &w.res.BesiegedFailed
	}
	*tries++
	if !ok {
		*failed++
	}
}

// waiting makes a call that may have to wait, for the clock or for a window. It
// gives up after some attempts.
func (w *world) waiting(p *member, c simCall, tries int, try func(g *firn.Generator) error) {
	err := error(firn.ErrGrantOver)
	if p.g != nil {
		err = try(p.g)
	}
	wait := w.upTo(500 * simMS)
	var full *firn.WaitError
	switch {
	case err == nil:
		w.called(c)
		return
	case errors.Is(err, firn.ErrGrantOver):
		w.step(p, event{Kind: eventDemand})
	case errors.As(err, &full):
		wait = min(full.Wait.Microseconds()+1, minute)
	}
	if tries > 0 {
		w.alive(p, wait, func() { w.waiting(p, c, tries-1, try) })
	}
}

// reserve reserves IDs: a few, or as many as possible, and then repeatedly.
func (w *world) reserve(p *member) {
	f := p.formatOr(w)
	all := w.window() / f.unit << f.seq
	if w.Chance(0.5) {
		all = w.longest / f.unit << f.seq
	}
	n, times := w.upTo(64), 1
	switch {
	case w.Chance(0.1), len(w.focus.Calls) > 0 && w.Chance(0.5):
		n, times = w.upTo(all), 12
	case w.Chance(0.2):
		n = w.upTo(all / 4)
	}
	w.hoard(p, int(n), times)
}

func (w *world) hoard(p *member, n, times int) {
	if times == 0 {
		return
	}
	if p.g == nil {
		w.step(p, event{Kind: eventDemand})
		return
	}
	b, hold, err := p.g.Reserve(n)
	if err == nil {
		w.called(callReserve)
		x := w.takeBatch(p, b, n)
		w.alive(p, hold.Microseconds(), func() { w.give(p, x) })
	} else if errors.Is(err, firn.ErrGrantOver) {
		w.step(p, event{Kind: eventDemand})
	}
	w.alive(p, second, func() { w.hoard(p, n, times-1) })
}

// nextBatch makes IDs at consecutive slots.
func (w *world) nextBatch(p *member) {
	n := int(w.upTo(200))
	if w.Chance(0.1) {
		f := p.formatOr(w)
		n = int(w.upTo(min(2*f.ahead.Microseconds()/f.unit<<f.seq, 100_000)))
	}
	w.waiting(p, callNextBatch, 5, func(g *firn.Generator) error {
		b, err := g.NextBatch(done, n)
		if err == nil {
			w.hand(p, w.takeBatch(p, b, n))
		}
		return err
	})
}

// fillSome fills a slice of IDs.
func (w *world) fillSome(p *member) {
	dst := make([]firn.ID, w.upTo(500))
	w.waiting(p, callFill, 5, func(g *firn.Generator) error {
		err := g.Fill(done, dst)
		if err == nil {
			w.hand(p, w.took(p, dst[0], dst[len(dst)-1], len(dst)))
		}
		return err
	})
}

// burst makes IDs one by one, and tries generators that are sealed.
func (w *world) burst(p *member) {
	for i, g := range p.sealed {
		if id, err := g.TryNext(); err == nil {
			w.Fail("sealed: member %d makes %v by generator %d, which is sealed", p.id, id, i)
		}
	}
	if p.g == nil {
		w.step(p, event{Kind: eventDemand})
		return
	}
	for range w.upTo(30) {
		id, err := p.g.TryNext()
		if err != nil {
			if errors.Is(err, firn.ErrGrantOver) {
				w.step(p, event{Kind: eventDemand})
			}
			return
		}
		w.called(callBurst)
		w.take(p, id)
	}
}

// source is a member for its prefetcher.
type source struct {
	w *world
	p *member
}

func (s source) NextBatch(_ context.Context, n int) (firn.Batch, error) {
	g := s.p.g
	if g == nil || s.p.f != s.p.fetchedOf {
		return firn.Batch{}, firn.ErrGrantOver
	}
	b, err := g.NextBatch(done, n)
	if err == nil {
		s.w.takeBatch(s.p, b, n)
	}
	return b, err
}

// usePrefetcher hands out IDs that were fetched just now or long ago, under
// this grant or an earlier one.
func (w *world) usePrefetcher(p *member) {
	if p.prefetcher == nil || p.f != nil && p.fetchedOf != p.f {
		n := int(w.upTo(50)) // fixed: a count that grows depends on real time
		o := firn.PrefetchOptions{Count: n, MaxCount: n, Validity: -1, OnDemand: true}
		p.prefetcher, p.fetchedOf = firn.NewPrefetcher(source{w: w, p: p}, &o), p.f
	}
	for range w.upTo(20) {
		id, err := p.prefetcher.Next(context.Background()) // its source never waits
		if err != nil {
			w.step(p, event{Kind: eventDemand})
			return
		}
		w.called(callPrefetch)
		w.giveTaken(p, w.pieceOf(p.fetchedOf, id))
	}
}

func (w *world) pieceOf(f *format, id firn.ID) piece {
	node, slot := f.split(id)
	return piece{w.nodeHistory(f.key(node)), f, slot, slot + 1}
}

// take checks an ID that was taken. It is returned at once or after a pause.
func (w *world) take(p *member, id firn.ID) { w.hand(p, w.took(p, id, id, 1)) }

// takeBatch checks a batch that was taken.
func (w *world) takeBatch(p *member, b firn.Batch, n int) piece {
	raw := b.AppendRaw(b.AppendRaw(nil, 0, 1), n-1, n)
	x := w.took(p, firn.ID(binary.BigEndian.Uint64(raw)), firn.ID(binary.BigEndian.Uint64(raw[8:])), n)
	if n <= 64 {
		at := x.lo
		for id := range b.All() {
			if y := w.pieceOf(x.f, id); y.lo != at || y.n != x.n {
				w.Fail("batch: member %d has a batch from slot %d on with slot %d of %s at %d", p.id, x.lo, y.lo, y.n.key, at)
			}
			at++
		}
	}
	return x
}

// hand returns IDs to the caller, at once or after a pause.
func (w *world) hand(p *member, x piece) {
	if !w.Chance(w.focus.Paused) {
		w.give(p, x)
		return
	}
	w.fault(pausedCall)
	w.alive(p, w.upTo(200*second), func() {
		w.giveTaken(p, x)
	})
}

// giveTaken returns IDs that were taken some time ago.
func (w *world) giveTaken(p *member, x piece) {
	if !w.tookIt(x) {
		w.Fail("windows: member %d gives what is from %d to %d µs of %s, and nobody has taken that", p.id, x.begins(), x.ends(), x.n.key)
	}
	w.give(p, x)
}
