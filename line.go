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

// A line is where calls wait that found no ID free: first come, first served.
// Only the first of the line, the leader, looks at the clock. It sleeps until
// what it wants should be free, takes as many slots as the whole line wants and
// are there, and gives them out from the front. So a tick costs one look and
// one swap, however long the line is, and wakes only callers that get IDs. No
// caller is overtaken for good by others that come later: a call that finds the
// line occupied joins it. (TryNext and Reserve, which never wait, take what is
// free, except while a batch leads.)
//
// No slot is held across a wait: the leader takes slots when they may be used,
// and a call that was given some returns them, even if its context has ended in
// that moment. A call that leaves before was given none.
//
// A batch takes all its slots at once, so it must not be overtaken at all while
// it leads: each slot that another call took would make it wait for longer, and
// with a batch larger than MaxAhead each look at the clock would move the word
// to where the batch must begin anew. While it leads, held is the slot at which
// it will end, and all other calls are refused.
//
// The clock and contexts are the caller's code. They may panic, end the
// goroutine, call the generator or block, so they run without the line's lock,
// and a call that does not return leaves the line by a deferred call. No
// goroutine runs on the line's behalf, and none sleeps under its lock.
type line struct {
	n    atomic.Int64  // how many wait, to be read without the lock
	held atomic.Uint64 // exclusive end of the slots that a leading batch waits for, or 0
	want atomic.Uint64 // slots that the line waits for; changes under mu
	mu   sync.Mutex    // guards what follows
	q    list.List     // of *waiter
	gone uint64        // slots that the line has been given so far
}

// A waiter is a call that waits for up to want slots, and at least one. A batch
// waits for all of them.
type waiter struct {
	want  uint64
	batch bool
	from  uint64        // of a batch: no slot of it lies below
	place *list.Element // nil when it is not in line
	woken chan struct{} // has one element when it leads, or was given slots

	// When it joined: the slots that those before it wanted, and line.gone.
	before, gone uint64

	// Given, under the line's lock:
	t       *term // nil: nothing
	slot, n uint64
}

// busy reports whether any call waits.
func (l *line) busy() bool { return l.n.Load() > 0 }

// join puts w in line, and reports whether it is the first.
func (l *line) join(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.before, w.gone = l.want.Load(), l.gone
	w.place = l.q.PushBack(w)
	l.want.Add(w.want)
	l.n.Add(1)
	return l.q.Len() == 1
}

// remove takes w out of the line. The lock must be held.
func (l *line) remove(w *waiter) {
	if l.q.Front() == w.place {
		l.held.Store(0)
	}
	l.q.Remove(w.place)
	w.place = nil
	l.want.Add(-w.want)
	l.n.Add(-1)
}

// ahead is how many slots those want that are before w, which has left the line
// without a turn: at most, as some of them may have left it too.
func (l *line) ahead(w *waiter) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(w.before-min(w.before, l.gone-w.gone), l.want.Load())
}

// notYourTurn is the error of a call for n IDs that others are before, which
// wait for so many. It does not ask the clock: the leader has.
func (c *core) notYourTurn(before, n uint64) error {
	all := before + min(n, math.MaxUint64-before)
	return &WaitError{Wait: c.spanOf(all), n: n, before: before}
}

// leave takes w out of the line, and reports whether it was there: w was given
// nothing then. If it led, the next one does.
func (l *line) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.place == nil {
		return false
	}
	led := l.q.Front() == w.place
	l.remove(w)
	if led {
		l.lead()
	}
	return true
}

// lead makes the first of the line lead it. The lock must be held.
func (l *line) lead() {
	if first := l.q.Front(); first != nil {
		first.Value.(*waiter).woken <- struct{}{}
	}
}

// serve takes what the line wants and is free, and gives it out. The leader
// calls it, and is the first to be given slots.
func (c *core) serve() error {
	for {
		v, err := c.look()
		if err != nil {
			return err
		}
		if given, err := c.line.give(c, v); given || err != nil {
			return err
		}
	}
}

// give takes what the line wants and the view allows, and gives it out. It
// gives nothing, without an error, where the view is out of date.
func (l *line) give(c *core, v view) (given bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.q.Front().Value.(*waiter)
	slot, err := c.place(v, first)
	if err != nil {
		if c.term.Load() != v.term {
			return false, nil // refused by a term that has ended
		}
		if _, wait := c.waitFor(err); wait && first.batch {
			l.held.Store(slot + first.want)
		}
		return false, err
	}
	next, end := slot, min(v.limit, v.ahead)
	for e := l.q.Front(); e != nil && next < end; e = e.Next() {
		w := e.Value.(*waiter)
		if w != first && !w.takes(next, end, c.clockSlot(v)) {
			break
		}
		next += min(w.want, end-next)
	}
	if !v.term.swap(v.word, slot, next-slot) {
		return false, nil
	}
	l.gone += next - slot
	for slot < next {
		w := l.q.Front().Value.(*waiter)
		l.remove(w)
		w.t, w.slot, w.n = v.term, slot, min(w.want, next-slot)
		slot += w.n
		if w != first {
			w.woken <- struct{}{}
		}
	}
	l.lead()
	return true, nil
}

// takes reports whether w, which is not the first, may be given slots from next
// on: behind a batch these can be slots that the clock has passed.
func (w *waiter) takes(next, end, clock uint64) bool {
	if w.batch {
		return next >= min(w.from, clock) && w.want <= end-next
	}
	return next >= clock
}

// takeInLine takes what w wants for a call that may wait. The error is that of
// a first try, or nil if there was none because others wait.
func (c *core) takeInLine(ctx context.Context, w waiter, err error) (t *term, slot, n uint64, _ error) {
	if err != nil {
		if _, ok := c.waitFor(err); !ok {
			return nil, 0, 0, err
		}
	}
	done := ctx.Done()
	w.woken = make(chan struct{}, 1)
	began := time.Now()
	first := c.line.join(&w)
	defer func() {
		if w.t == nil {
			c.line.leave(&w) // also if the clock panics
		}
		c.waits.add(time.Since(began))
	}()
	if !first {
		select {
		case <-w.woken:
		case <-done:
			if c.line.leave(&w) {
				if err == nil || errors.Is(err, ErrExhausted) {
					err = c.notYourTurn(c.line.ahead(&w), w.want)
				}
				return nil, 0, 0, fmt.Errorf("%w: %w", err, ctx.Err())
			}
		}
	}
	for w.t == nil {
		changed := c.changes()
		if err = c.serve(); err == nil {
			break
		}
		wait, ok := c.waitFor(err)
		if !ok {
			return nil, 0, 0, err
		}
		slept := time.Now()
		if sleep(done, wait, changed) {
			c.line.leave(&w)
			if w := (*WaitError)(nil); errors.As(err, &w) {
				w.Wait = max(1, w.Wait-time.Since(slept)) // from now on
			}
			return nil, 0, 0, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
	return w.t, w.slot, w.n, nil
}
