package firn

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// A bomb panics at the n-th call of the caller's code: of a clock or of a
// context's method.
type bomb struct {
	left    atomic.Int64
	explode func()
}

func (b *bomb) touch() {
	if b.left.Add(-1) == 0 {
		b.explode()
	}
}

func (b *bomb) now() time.Time { b.touch(); return time.Now() }

// A mined context calls the bomb in all its methods.
type mined struct {
	context.Context
	*bomb
}

func (m mined) Deadline() (time.Time, bool) { m.touch(); return m.Context.Deadline() }
func (m mined) Done() <-chan struct{}       { m.touch(); return m.Context.Done() }
func (m mined) Err() error                  { m.touch(); return m.Context.Err() }

// TestCallersCodeThatDoesNotReturn makes each call of the clock and of a
// context panic in turn, or end the goroutine, in a crowd of calls of all
// kinds, some of which are canceled. That ends one call, which takes nothing:
// all others get their IDs, none twice, and nothing is left in the line.
func TestCallersCodeThatDoesNotReturn(t *testing.T) {
	for name, explode := range map[string]func(){
		"panic": func() { panic("boom") }, "Goexit": runtime.Goexit,
	} {
		struck := 0
		for n := int64(1); ; n++ {
			went := false
			synctest.Test(t, func(t *testing.T) {
				b := &bomb{explode: func() { went = true; explode() }}
				crowd(t, fmt.Sprintf("%s at %d", name, n), b, n)
			})
			if !went {
				break
			}
			struck++
		}
		if struck < 40 {
			t.Errorf("%s: only %d places to go off, so this test says little", name, struck)
		}
	}
}

// crowd is one run of it.
func crowd(t *testing.T, what string, b *bomb, n int64) {
	g := newGenerator(t, MustParseLayout("bits=time:48.node:14.seq:2"), Grant{Node: 1, From: time.Unix(1, 0)},
		&Options{Now: b.now, MaxAhead: time.Millisecond})
	if err := g.Fill(t.Context(), make([]ID, 8)); err != nil { // all that are free now
		t.Fatal(err)
	}
	before := g.Stats().IDs

	type result struct {
		ids      []ID
		err      error
		returned bool
	}
	var results [16]result
	var all sync.WaitGroup
	b.left.Store(n)
	for i := range results {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		m := mined{ctx, b}
		if i%5 == 3 {
			time.AfterFunc(time.Duration(i)*100*time.Microsecond, cancel)
		}
		all.Go(func() {
			r := &results[i]
			defer func() { _ = recover() }()
			switch i % 4 {
			case 0, 3:
				r.ids = make([]ID, 1)
				r.ids[0], r.err = g.Next(m)
			case 1:
				var batch Batch
				batch, r.err = g.NextBatch(m, []int{1, 3, 10, 40}[i/4])
				r.ids = slices.Collect(batch.All())
			case 2:
				r.ids = make([]ID, 5) // in pieces: less than all can be lost
				r.err = g.Fill(m, r.ids)
			}
			r.returned = true
		})
		synctest.Wait()
		if i%6 == 5 {
			time.Sleep(300 * time.Microsecond)
		}
	}
	all.Wait()
	b.left.Store(0)

	var made []ID
	lost, unknown := 0, uint64(0)
	for i, r := range results {
		switch {
		case !r.returned:
			lost++
		case r.err == nil:
			made = append(made, r.ids...)
		case !errors.Is(r.err, context.Canceled):
			t.Errorf("%s: call %d: %v", what, i, r.err)
		}
		if i%4 == 2 && (!r.returned || r.err != nil) {
			unknown += uint64(len(r.ids))
		}
	}
	if lost > 1 {
		t.Errorf("%s: %d calls did not return", what, lost)
	}
	wantDistinct(t, what, made)
	if got, want := g.Stats().IDs-before, uint64(len(made)); got < want || got > want+unknown {
		t.Errorf("%s: %d IDs were taken, want the %d that calls returned, and at most %d of a Fill", what, got, want, unknown)
	}
	if l := &g.line; l.busy() || l.queue.Len() > 0 || l.batchEnd.Load() > 0 {
		t.Errorf("%s: %d are left in line, held %d", what, l.queue.Len(), l.batchEnd.Load())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if id, err := g.Next(ctx); err != nil || len(made) > 0 && id <= made[len(made)-1] {
		t.Errorf("%s: the next call: %v, %v", what, id, err)
	}
}

// TestClockThatBlocks: the clock runs without a lock. While the leader waits
// for it, others leave the line when their contexts end, and the grant can
// change; and a clock may call the generator.
func TestClockThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hook atomic.Pointer[func()]
		g := newGenerator(t, MustParseLayout("bits=time:48.node:16"), Grant{Node: 1, From: time.Unix(1, 0)}, &Options{Now: func() time.Time {
			if h := hook.Swap(nil); h != nil {
				(*h)()
			}
			return time.Now()
		}})
		mustNext(t, g)
		leader := make(chan error, 1)
		go func() { _, err := g.Next(t.Context()); leader <- err }()
		synctest.Wait() // it sleeps until the next tick
		release := make(chan struct{})
		block := func() { <-release }
		hook.Store(&block)
		time.Sleep(2 * time.Millisecond) // and now it waits for the clock

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Millisecond {
			t.Errorf("a call behind it: %v after %v, want its deadline after 5ms", err, time.Since(start))
		}
		if err := g.Switch(Grant{Node: 2, From: time.Unix(1, 0)}); err != nil {
			t.Error(err)
		}
		close(release)
		if err := <-leader; err != nil {
			t.Errorf("the leader: %v", err)
		}

		inside := func() {
			if _, err := g.TryNext(); err != nil && !errors.Is(err, ErrExhausted) {
				t.Errorf("TryNext in the clock: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Next in the leader's clock: %v, want its deadline", err)
			}
		}
		done := make(chan error, 1)
		go func() { _, err := g.Next(t.Context()); done <- err }()
		synctest.Wait()
		hook.Store(&inside)
		if err := <-done; err != nil {
			t.Errorf("a leader whose clock calls the generator: %v", err)
		}
	})
}

// TestNilContext: a nil context panics at the first call, whether or not a wait
// is needed, and no ID is taken.
func TestNilContext(t *testing.T) {
	g, _ := newAtNoon(t, "default", Options{})
	wide := must.Get(NewGenerator128(MustParseLayout("uuidv7"), Grant{Node: 1, From: noon}, nil))(t)
	fetched := NewPrefetcher(g, nil)
	defer closePrefetcher(t, fetched)
	for name, call := range map[string]func(context.Context){
		"Next":            func(ctx context.Context) { _, _ = g.Next(ctx) },
		"Fill":            func(ctx context.Context) { _ = g.Fill(ctx, nil) },
		"NextBatch":       func(ctx context.Context) { _, _ = g.NextBatch(ctx, 1) },
		"Next128":         func(ctx context.Context) { _, _ = wide.Next(ctx) },
		"Fill128":         func(ctx context.Context) { _ = wide.Fill(ctx, nil) },
		"NextBatch128":    func(ctx context.Context) { _, _ = wide.NextBatch(ctx, 1) },
		"Prefetcher.Next": func(ctx context.Context) { _, _ = fetched.Next(ctx) },
		"Prefetcher.Fill": func(ctx context.Context) { _ = fetched.Fill(ctx, nil) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, "context.Background()") {
					t.Errorf("%s: panics with %q, want a hint at context.Background()", name, said)
				}
			}()
			call(nil)
		}()
	}
	if s := g.Stats(); s.IDs != 0 {
		t.Errorf("%d IDs were taken", s.IDs)
	}
}
