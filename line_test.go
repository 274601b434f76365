package firn

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// oneATick is a generator with an ID a millisecond, which counts the looks at its
// clock, in a bubble.
func oneATick(t *testing.T) (g *Generator, looks *atomic.Int64) {
	t.Helper()
	looks = new(atomic.Int64)
	now := func() time.Time { looks.Add(1); return time.Now() }
	g, err := NewGenerator(MustParseLayout("bits=time:48.node:16"), Grant{Node: 1, From: time.Unix(1, 0)}, &Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	mustNext(t, g) // of this tick
	return g, looks
}

// TestFirstComeFirstServed: those who wait get their IDs in the order in which they
// came, each in a tick of its own, also before those who come when the IDs are free.
// A tick wakes one of them and no more.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, looks := oneATick(t)
		const callers = 200
		start, done := time.Now(), make(chan ID, callers)
		ids := make([]ID, callers)
		call := func(i int) {
			var err error
			switch i % 3 {
			case 0:
				ids[i], err = g.Next(t.Context())
			case 1:
				err = g.Fill(t.Context(), ids[i:i+1])
			case 2:
				ids[i], err = g.Cursor().Next(t.Context())
			}
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			if got, want := time.Since(start), time.Duration(i+1)*time.Millisecond; got != want {
				t.Errorf("call %d returns after %v, want %v", i, got, want)
			}
			done <- ids[i]
		}
		for i := range callers {
			go call(i)
			synctest.Wait()
			if i == callers/2 {
				time.Sleep(10 * time.Millisecond) // ten are served
			}
		}
		for range callers {
			<-done
		}
		if !slices.IsSorted(ids) {
			t.Errorf("the IDs are not in the order of the calls: %v", ids)
		}
		if n := looks.Load(); n > 4*callers {
			t.Errorf("%d looks at the clock for %d calls, want a few for each", n, callers)
		}
		if s := g.Stats(); s.Waits != callers {
			t.Errorf("Stats().Waits = %d, want %d", s.Waits, callers)
		}
	})
}

// TestLeavingTheLine: who goes away takes nothing and holds nobody up, wherever in
// the line it stood.
func TestLeavingTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := oneATick(t)
		before := g.Stats().IDs
		start := time.Now()
		type result struct {
			id  ID
			err error
			at  time.Duration
		}
		results := make([]chan result, 6)
		cancels := make([]context.CancelFunc, len(results))
		for i := range results {
			results[i] = make(chan result, 1)
			ctx, cancel := context.WithCancel(t.Context())
			cancels[i] = cancel
			go func() {
				id, err := g.Next(ctx)
				results[i] <- result{id, err, time.Since(start)}
			}()
			synctest.Wait()
		}
		for _, i := range []int{0, 3, 5} { // the first, one in the middle, the last
			cancels[i]()
			r := <-results[i]
			if !errors.Is(r.err, context.Canceled) || !errors.Is(r.err, ErrExhausted) || r.at != 0 {
				t.Errorf("call %d ends with %v after %v, want at once the context's error and ErrExhausted", i, r.err, r.at)
			}
		}
		for n, i := range []int{1, 2, 4} {
			if r := <-results[i]; r.err != nil || r.at != time.Duration(n+1)*time.Millisecond {
				t.Errorf("call %d: %v after %v, want tick %d", i, r.err, r.at, n+1)
			}
		}
		if got := g.Stats().IDs - before; got != 3 {
			t.Errorf("%d IDs were taken for 3 calls", got)
		}
		if g.line.busy() {
			t.Error("somebody stands in line still")
		}
		for _, cancel := range cancels {
			cancel()
		}
	})
}

// TestLineHearsOfTheEnd: all who wait learn that there is nothing to wait for.
func TestLineHearsOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := oneATick(t)
		errs := make(chan error, 100)
		for range cap(errs) {
			go func() { _, err := g.Next(t.Context()); errs <- err }()
		}
		synctest.Wait()
		start := time.Now()
		g.Seal()
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, ErrSealed) || time.Since(start) != 0 {
				t.Fatalf("a waiting call ends with %v after %v, want ErrSealed at once", err, time.Since(start))
			}
		}
	})
}
