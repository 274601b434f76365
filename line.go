package firn

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A line is where calls wait that found no ID free: first come, first served. Only
// the first of it, who leads, looks at the clock. It sleeps until an ID should be
// free, takes as many as the whole line wants and are there, and gives them out
// from the front. So a tick costs one look and one swap, however many wait, and
// wakes only callers it has IDs for; and nobody can be overtaken for good by others
// who come later, since whoever finds somebody waiting stands in line. (TryNext,
// which never waits, does not, nor do Reserve and NextBatch.)
//
// No slot is held across a wait: the one who leads takes them when they are free,
// and whoever has been given one returns it, even if its context has ended in that
// moment. Who leaves before was given none.
//
// No goroutine runs on the line's behalf, and nobody sleeps under its lock.
type line struct {
	n    atomic.Int64 // how many wait, to be read without the lock
	mu   sync.Mutex
	q    list.List // of *waiter
	want uint64    // of all of them
}

// A waiter is a call that waits for up to want slots, and at least one.
type waiter struct {
	want  uint64
	place *list.Element
	woken chan struct{} // has one element when it leads, or was given slots

	// Given, under the line's lock:
	t       *term // nil: nothing
	slot, n uint64
}

// busy reports whether anybody waits.
func (l *line) busy() bool { return l.n.Load() > 0 }

// join stands in line, and reports whether w is the first.
func (l *line) join(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.place = l.q.PushBack(w)
	l.want += w.want
	l.n.Add(1)
	return l.q.Len() == 1
}

// remove takes w out of the line. The lock must be held.
func (l *line) remove(w *waiter) {
	l.q.Remove(w.place)
	l.want -= w.want
	l.n.Add(-1)
}

// leave takes w out of the line, unless it was given slots. If it led, the next
// one does.
func (l *line) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.t != nil {
		return
	}
	led := l.q.Front() == w.place
	l.remove(w)
	if led {
		l.lead()
	}
}

// lead makes the first of the line lead it. The lock must be held.
func (l *line) lead() {
	if first := l.q.Front(); first != nil {
		first.Value.(*waiter).woken <- struct{}{}
	}
}

// serve takes what the line wants and is free, and gives it out. The first of the
// line calls it, and is the first to be given some.
func (l *line) serve(c *core) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, slot, n, err := c.take(l.want)
	if err != nil {
		return err
	}
	for first := true; n > 0; first = false {
		w := l.q.Front().Value.(*waiter)
		l.remove(w)
		w.t, w.slot, w.n = t, slot, min(n, w.want)
		slot += w.n
		n -= w.n
		if !first {
			w.woken <- struct{}{}
		}
	}
	l.lead()
	return nil
}

// takeInLine is take for a call that may wait. The error is that of a first try, or
// nil if there was none because others wait.
func (c *core) takeInLine(ctx context.Context, want uint64, err error) (t *term, slot, n uint64, _ error) {
	if err != nil {
		if _, ok := c.waitFor(err); !ok {
			return nil, 0, 0, err
		}
	}
	w := &waiter{want: want, woken: make(chan struct{}, 1)}
	began := time.Now()
	defer func() { c.waits.add(time.Since(began)) }()
	if !c.line.join(w) {
		select {
		case <-w.woken:
		case <-ctx.Done():
			c.line.leave(w)
			if w.t == nil {
				if err == nil {
					err = &WaitError{Wait: c.layout.unit} // others were here before
				}
				return nil, 0, 0, fmt.Errorf("%w: %w", err, ctx.Err())
			}
		}
	}
	for w.t == nil {
		changed := c.changes()
		if err = c.line.serve(c); err == nil {
			break
		}
		if err = c.pause(ctx, err, changed); err != nil {
			c.line.leave(w)
			return nil, 0, 0, err
		}
	}
	return w.t, w.slot, w.n, nil
}
