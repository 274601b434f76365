package firn

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A line is where calls wait that found no free ID: first come, first served.
// Only the first one, the leader, reads the clock. It sleeps until its slots
// should be free, takes as many free slots as the whole line wants, and
// distributes them from the front. So a tick costs one reading and one swap,
// however long the line is, and wakes only callers that get IDs. Later calls
// cannot overtake a waiting call forever, because a call that finds the line
// occupied joins it. (TryNext and Reserve never wait and take what is free,
// except while a batch leads.)
//
// No slot is held across a wait: the leader takes slots when they may be used,
// and a call that was given slots returns them even if its context has just
// ended. A call that left earlier was given none.
//
// A batch takes all its slots at once, so it must not be overtaken at all while
// it leads. Each slot that another call took would make it wait longer, and
// with a batch larger than MaxAhead, each reading of the clock would move the
// word to where the batch would have to begin again. While a batch leads,
// batchEnd is the slot at which it will end, and all other calls are refused,
// once the allowance of an earlier call has ended (see package freshness).
//
// The clock and contexts are the caller's code. They may panic, end the
// goroutine, call the generator or block. So they run without the line's lock,
// and a call that does not return leaves the line by a deferred call. No
// goroutine runs on behalf of the line, and none sleeps under its lock.
type line struct {
	waiting     atomic.Int64  // number of waiting calls, readable without the lock
	batchEnd    atomic.Uint64 // exclusive end of the slots for which a leading batch waits, or 0
	want        atomic.Uint64 // slots that the line waits for; changes under mu
	mu          sync.Mutex    // guards the fields below
	queue       list.List     // of *request
	wantedSoFar uint64        // slots that all calls so far wanted
}

// A requestKind says how many of the wanted slots a request takes at once.
type requestKind uint8

const (
	wantsSome        requestKind = iota // at least one
	wantsBatch                          // all
	wantsReservation                    // all, regardless of MaxAhead; it never waits
)

// A request is a call that wants slots.
type request struct {
	kind requestKind
	want uint64
	hold time.Duration // how long to hold a reservation
	from uint64        // lower bound of a batch's slots

	elem         *list.Element // nil if it is not in line
	wantedBefore uint64        // line.wantedSoFar when it joined
	woken        chan struct{} // receives an element when it becomes leader or gets slots

	// Result, guarded by the line's lock:
	term    *term // nil: nothing
	slot, n uint64
}

// minSlots returns the least number of slots that r can use.
func (r *request) minSlots() uint64 {
	if r.kind == wantsSome {
		return 1
	}
	return r.want
}

// busy reports whether any call is waiting.
func (l *line) busy() bool { return l.waiting.Load() > 0 }

// join adds r to the line and reports whether it is the first.
func (l *line) join(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.wantedBefore = l.wantedSoFar
	l.wantedSoFar += r.want
	r.elem = l.queue.PushBack(r)
	l.want.Add(r.want)
	l.waiting.Add(1)
	return l.queue.Len() == 1
}

// remove removes r from the line. The caller holds the lock.
func (l *line) remove(r *request) {
	if l.queue.Front() == r.elem {
		l.batchEnd.Store(0)
	}
	l.queue.Remove(r.elem)
	r.elem = nil
	l.want.Add(-r.want)
	l.waiting.Add(-1)
}

// notYourTurnError returns the error of a call for n IDs that comes after calls
// for before IDs. It does not read the clock: the leader has read it.
func (c *core) notYourTurnError(before, n uint64) error {
	all := before + min(n, math.MaxUint64-before)
	return &WaitError{Wait: c.spanOf(all), n: n, before: before}
}

// leave removes r from the line. It reports whether r was still in it, which
// means that it got nothing, and how many slots the calls before it want: an
// upper bound, as some of those calls may have left. If r was the leader, the
// next one becomes leader.
func (l *line) leave(r *request) (before uint64, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.elem == nil {
		return 0, false
	}
	first := l.queue.Front().Value.(*request)
	l.remove(r)
	if r == first {
		l.wakeFirst()
	}
	return r.wantedBefore - first.wantedBefore, true
}

// wakeFirst makes the first call the leader. The caller holds the lock.
func (l *line) wakeFirst() {
	if first := l.queue.Front(); first != nil {
		first.Value.(*request).woken <- struct{}{}
	}
}

// takeForLine takes free slots for the line and distributes them. The leader
// calls it and is the first to get slots.
func (c *core) takeForLine() error {
	for {
		var v view
		if err := c.loadView(&v); err != nil {
			return err
		}
		if given, err := c.line.distribute(c, &v); given || err != nil {
			return err
		}
	}
}

// distribute takes the slots that the line wants and the view allows, and gives
// them out from the front. If the view is out of date, it does nothing and
// returns no error.
func (l *line) distribute(c *core, v *view) (given bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.queue.Front().Value.(*request)
	slot, err := c.slotFor(v, first)
	if err != nil {
		if c.term.Load() != v.term {
			return false, nil // refused by a term that has ended
		}
		if _, wait := c.waitAfter(err); wait && first.kind == wantsBatch {
			l.batchEnd.Store(slot + first.want)
		}
		return false, err
	}
	slot = c.evenStart(v, slot, first.want)
	next, end := slot, min(v.limit, v.ahead)
	for e := l.queue.Front(); e != nil && next < end; e = e.Next() {
		r := e.Value.(*request)
		if r != first && !r.canTake(next, end, c.clockSlot(v)) {
			break
		}
		next += min(r.want, end-next)
	}
	if !v.term.swap(v.word, slot, next-slot) {
		return false, nil
	}
	for slot < next {
		r := l.queue.Front().Value.(*request)
		l.remove(r)
		r.term, r.slot, r.n = v.term, slot, min(r.want, next-slot)
		slot += r.n
		if r != first {
			r.woken <- struct{}{}
		}
	}
	l.wakeFirst()
	return true, nil
}

// canTake reports whether r, which is not the first, may get slots from next
// on: after a batch, these can be slots that the clock has already passed.
func (r *request) canTake(next, end, clock uint64) bool {
	if r.kind == wantsBatch {
		return next >= min(r.from, clock) && r.want <= end-next
	}
	return next >= clock
}

// takeInLine takes the slots of r for a call that may wait. err is the error of
// a first try, or nil if there was no try because other calls wait.
func (c *core) takeInLine(ctx context.Context, r request, err error) (t *term, slot, n uint64, _ error) {
	if err != nil {
		if _, ok := c.waitAfter(err); !ok {
			return nil, 0, 0, err
		}
	}
	done := ctx.Done()
	r.woken = make(chan struct{}, 1)
	began := time.Now()
	first := c.line.join(&r)
	defer func() {
		if r.term == nil {
			c.line.leave(&r) // even if the clock panics
		}
		c.waits.add(time.Since(began))
	}()
	if !first {
		select {
		case <-r.woken:
		case <-done:
			if before, left := c.line.leave(&r); left {
				if err == nil || errors.Is(err, ErrExhausted) {
					err = c.notYourTurnError(before, r.want)
				}
				return nil, 0, 0, fmt.Errorf("%w: %w", err, ctx.Err())
			}
		}
	}
	for r.term == nil {
		changed := c.changes()
		if err = c.takeForLine(); err == nil {
			break
		}
		wait, ok := c.waitAfter(err)
		if !ok {
			return nil, 0, 0, err
		}
		if sleep(done, wait, changed) {
			c.line.leave(&r)
			return nil, 0, 0, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
	return r.term, r.slot, r.n, nil
}

// waitAfter returns how long to wait after an error, if waiting can help.
func (c *core) waitAfter(err error) (time.Duration, bool) {
	if w, ok := errors.AsType[*WaitError](err); ok {
		return w.Wait, true
	}
	if e, ok := errors.AsType[*ClockError](err); ok && !e.BeforeEpoch && e.back <= c.maxLag {
		return e.Wait, true
	}
	return 0, false
}

// A sleep lasts at most maxSleep, because the clock may be corrected meanwhile,
// and at least minSleep, so that a call does not spin if the clock stands
// still.
const (
	minSleep = 10 * time.Microsecond
	maxSleep = time.Second
)

// sleep waits for d, or until changed is closed. It reports whether done was
// closed first.
func sleep(done <-chan struct{}, d time.Duration, changed <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	select {
	case <-done:
		return true
	case <-changed:
	case <-time.After(min(max(d, minSleep), maxSleep)):
	}
	return false
}
