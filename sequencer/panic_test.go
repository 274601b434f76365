package sequencer_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// panics runs f and expects a panic, which it recovers like net/http.
func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

// lateContext is a context whose Done panics from some call on.
type lateContext struct {
	context.Context
	left *atomic.Int32
}

func (c lateContext) Done() <-chan struct{} {
	if c.left.Add(-1) < 0 {
		panic("context")
	}
	return c.Context.Done()
}

// TestPanicsOfCallers: after a context has panicked and was recovered, the
// sequencer can be used and closed, and leaves no goroutine behind, which the
// bubble would detect.
func TestPanicsOfCallers(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		q := open(t, s, nil)
		for _, call := range []func(context.Context){
			func(ctx context.Context) { _ = q.Leave(ctx) },
			func(ctx context.Context) { _ = q.Join(ctx) },
			func(ctx context.Context) { _, _ = q.Next(ctx) },
			func(ctx context.Context) { _, _ = q.NextBatch(ctx, 100) },
		} {
			// At its first use, the second and so on, until it is no longer
			// used.
			for n := int32(0); n < 10; n++ {
				time.Sleep(2 * time.Minute) // the window has lapsed
				ctx := lateContext{t.Context(), new(atomic.Int32)}
				ctx.left.Store(n)
				func() {
					defer func() { _ = recover() }()
					call(ctx)
				}()
				must.Do(t, q.Join(t.Context()))
				one(t, q)
			}
		}
		var none context.Context
		for _, call := range []func(){
			func() { _ = q.Close(none) }, func() { _, _ = q.Next(none) }, func() { _ = q.Fill(none, make([]firn.ID, 3)) }, func() { _, _ = q.NextBatch(none, 3) },
		} {
			panics(t, call)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Errorf("Close after one that panicked: %v", err)
		}
		if _, err := q.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("Next after it: %v, want ErrClosed", err)
		}
	})
	bubble(t, func(t *testing.T, s grant.Store) {
		for n := int32(0); n < 6; n++ {
			ctx := lateContext{t.Context(), new(atomic.Int32)}
			ctx.left.Store(n)
			func() {
				defer func() { _ = recover() }()
				if q, err := sequencer.Open(ctx, s, "orders", &sequencer.Options{Layout: layout}); err == nil {
					_ = q.Close(t.Context())
				}
			}()
		}
		q := open(t, s, nil) // a node ID is free for it
		one(t, q)
		closeIt(t, q)
	})
}

// A bomb panics at the n-th call of the caller's code.
type bomb struct {
	left    atomic.Int64
	explode func()
}

func (b *bomb) touch() {
	if b.left.Add(-1) == 0 {
		b.explode()
	}
}

// strike calls f, which may panic or end its goroutine.
func strike(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	<-done
}

// TestClockThatPanics: a clock that panics during a caller's call ends that
// call, and no other call waits for a lock that it held. (The Keeper's own
// readings of the clock do not happen during a caller's call.)
func TestClockThatPanics(t *testing.T) {
	for name, explode := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		b := &bomb{explode: explode}
		q := open(t, new(memstore.Store), &sequencer.Options{Layout: layout, Window: 30 * time.Second, Now: func() time.Time {
			if !inKeeper() {
				b.touch()
			}
			return time.Now()
		}})
		calls := callsOf(q)
		calls["Stats"] = func(context.Context) error { q.Stats(); return nil }
		for what, call := range calls {
			for n := int64(1); n < 4; n++ {
				b.left.Store(n)
				strike(func() { _ = call(t.Context()) })
				b.left.Store(0)
				done := make(chan struct{})
				go func() {
					defer close(done)
					if _, err := q.Next(t.Context()); err != nil {
						t.Errorf("Next after a %s in %s: %v", name, what, err)
					}
					q.Stats()
				}()
				select {
				case <-done:
				case <-time.After(10 * time.Minute):
					t.Fatalf("Next and Stats do not return after a %s in %s", name, what)
				}
			}
		}
		closeIt(t, q)
	}
}

// inKeeper reports whether the Keeper's goroutine is the caller.
func inKeeper() bool {
	calls := make([]uintptr, 32)
	frames := runtime.CallersFrames(calls[:runtime.Callers(2, calls)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "(*Keeper).run") {
			return true
		}
		if !more {
			return false
		}
	}
}
