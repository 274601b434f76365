package firn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// oneATick returns a generator with an ID per millisecond, which counts the
// readings of its clock, in a bubble.
func oneATick(t *testing.T) (g *Generator, readings *atomic.Int64) {
	t.Helper()
	readings = new(atomic.Int64)
	now := func() time.Time { readings.Add(1); return time.Now() }
	g = must.Get(NewGenerator(MustParseLayout("bits=time:48.node:16"), Grant{Node: 1, From: time.Unix(1, 0)}, &Options{Now: now}))(t)
	mustNext(t, g) // the one of this tick
	return g, readings
}

// TestFirstComeFirstServed: waiting calls get their IDs in the order of their
// arrival, one per tick, even before calls that arrive when the IDs are free. A
// tick wakes only one of them.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, readings := oneATick(t)
		const callers = 200
		start, done := time.Now(), make(chan ID, callers)
		ids := make([]ID, callers)
		call := func(i int) {
			var err error
			if i%2 == 0 {
				ids[i], err = g.Next(t.Context())
			} else {
				err = g.Fill(t.Context(), ids[i:i+1])
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
		if n := readings.Load(); n > 4*callers {
			t.Errorf("%d readings of the clock for %d calls, want a few for each", n, callers)
		}
		if s := g.Stats(); s.Waits != callers {
			t.Errorf("Stats().Waits = %d, want %d", s.Waits, callers)
		}
	})
}

// TestLeavingTheLine: a call that leaves takes nothing and delays no other
// call, wherever in the line it was.
func TestLeavingTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := oneATick(t)
		before := g.Stats().IDs
		start := time.Now()
		type result struct {
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
				var err error
				if i%2 == 0 {
					_, err = g.Next(ctx)
				} else {
					err = g.Fill(ctx, make([]ID, 1))
				}
				results[i] <- result{err, time.Since(start)}
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
		if s := g.Stats(); s.IDs != before+3 || s.Waits != 6 || s.TotalWait != 6*time.Millisecond {
			t.Errorf("%+v, want 3 IDs more, and 6 waits of 1, 2, 3 ms, and none", s)
		}
		if g.line.busy() {
			t.Error("a call is still in line")
		}
		for _, cancel := range cancels {
			cancel()
		}
	})
}

// checkBatch: n consecutive slots, none older than the call, none beyond
// MaxAhead.
func checkBatch(t *testing.T, g *Generator, ids []ID, n int, start time.Time) {
	t.Helper()
	if len(ids) != n {
		t.Fatalf("a batch of %d IDs, want %d", len(ids), n)
	}
	first, last := g.slotOf(t, ids[0]), g.slotOf(t, ids[n-1])
	if last-first != uint64(n-1) {
		t.Errorf("a batch from slot %d to %d, want %d consecutive ones", first, last, n)
	}
	p, _ := g.layout.Decompose(ids[0])
	if p.Time.Before(start.Truncate(g.layout.unit)) {
		t.Errorf("its first ID is of %v before the call", start.Sub(p.Time))
	}
	p, _ = g.layout.Decompose(ids[n-1])
	if lead := time.Until(p.Time); lead > g.maxAhead {
		t.Errorf("its last ID leads by %v, MaxAhead is %v", lead, g.maxAhead)
	}
}

func (c *core) slotOf(t *testing.T, id ID) uint64 {
	t.Helper()
	p := must.Get(c.layout.Decompose(id))(t)
	tick, _, _ := c.layout.tickAt(p.Time)
	return tick<<c.layout.seqBits | p.Seq
}

// TestBatchKeepsItsPlace: calls that arrived before a batch are served before
// it, and later ones after it, as soon as it leaves.
func TestBatchKeepsItsPlace(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := newGenerator(t, MustParseLayout("bits=time:48.node:14.seq:2"),
				Grant{Node: 1, From: time.Unix(1, 0)}, &Options{MaxAhead: 100 * time.Millisecond})
			must.Do(t, g.Fill(t.Context(), make([]ID, 404))) // all that are free now
			start := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var mu sync.Mutex
			var order []string
			var at []time.Duration
			call := func(name string, f func() error) {
				go func() {
					err := f()
					mu.Lock()
					defer mu.Unlock()
					if errors.Is(err, context.Canceled) && errors.Is(err, ErrExhausted) {
						name += " is cancelled"
					} else if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					order, at = append(order, name), append(at, time.Since(start))
				}()
				synctest.Wait()
			}
			var before, batch, after, last []ID
			next := func(ids *[]ID) func() error {
				return func() error { id, err := g.Next(t.Context()); *ids = append(*ids, id); return err }
			}
			call("before", next(&before))
			call("batch", func() error {
				b, err := g.NextBatch(ctx, 1000)
				batch = slices.Collect(b.All())
				return err
			})
			call("after", next(&after))
			call("last", func() error { last = make([]ID, 2); return g.Fill(t.Context(), last) })

			time.Sleep(50 * time.Millisecond)
			var w *WaitError
			made := g.Stats().IDs
			for name, err := range map[string]error{
				"TryNext": func() error { _, err := g.TryNext(); return err }(),
				"Reserve": func() error { _, _, err := g.Reserve(1); return err }(),
			} {
				// The batch has the slots from the second one of tick 101 on,
				// and the slots after it are free in tick 351, which MaxAhead
				// allows in tick 251.
				if want := 201 * time.Millisecond; !errors.As(err, &w) || w.Wait != want {
					t.Errorf("%s while the batch leads: %v, want a wait of %v", name, err, want)
				}
			}
			if made != 404+1 || g.Stats().IDs != made {
				t.Errorf("%d IDs are made while the batch waits, then %d, want 405", made, g.Stats().IDs)
			}
			if cancelled {
				cancel()
				synctest.Wait()
				got, want := order, []string{"before", "batch is cancelled", "after", "last"}
				if !slices.Equal(sorted(got), sorted(want)) || at[3] != 50*time.Millisecond {
					t.Errorf("%q after %v, want %q, when the batch left", got, at, want)
				}
				if got := g.Stats().IDs; got != 404+4 {
					t.Errorf("%d IDs were taken, want 408: none for the batch", got)
				}
				return
			}
			time.Sleep(time.Second)
			synctest.Wait() // Sleep orders nothing for the race detector
			if want := []string{"before", "batch", "after", "last"}; order[0] != want[0] || !slices.Equal(sorted(order), sorted(want)) {
				t.Errorf("served in the order %q, want %q", order, want)
			}
			if want := []time.Duration{1, 251, 251, 251}; !slices.EqualFunc(at, want, func(got, ms time.Duration) bool { return got == ms*time.Millisecond }) {
				t.Errorf("served after %v, want %v ms", at, want)
			}
			if ids := slices.Concat(before, batch, after, last); !slices.IsSorted(ids) {
				t.Errorf("IDs are not in the order of the calls")
			}
		})
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// waitingCalls take n IDs, and wait for them.
var waitingCalls = map[string]func(ctx context.Context, g *Generator, n int) ([]ID, error){
	"Next": func(ctx context.Context, g *Generator, n int) (ids []ID, err error) {
		for err == nil && len(ids) < n {
			var id ID
			id, err = g.Next(ctx)
			ids = append(ids, id)
		}
		return ids, err
	},
	"Fill": func(ctx context.Context, g *Generator, n int) ([]ID, error) {
		ids := make([]ID, n)
		return ids, g.Fill(ctx, ids)
	},
	"NextBatch": func(ctx context.Context, g *Generator, n int) ([]ID, error) {
		b, err := g.NextBatch(ctx, n)
		return slices.Collect(b.All()), err
	},
}

// TestChangesUnderAWait: a change of the generator while a call waits, asleep
// or in its second or third reading of the clock, takes effect before what it
// takes from then on, as in a call that does not wait. A refusal ends it at
// once, and a batch keeps the time that it has waited.
func TestChangesUnderAWait(t *testing.T) {
	const n, took = 40, 10 * time.Millisecond
	switchTo := func(node uint64, from, until time.Duration) func(*Generator) error {
		return func(g *Generator) error {
			next := Grant{Node: node, From: time.Now().Add(from)}
			if until >= 0 {
				next.Until = time.Now().Add(until)
			}
			return g.Switch(next)
		}
	}
	for name, call := range waitingCalls {
		for change, test := range map[string]struct {
			do    func(*Generator) error
			node  uint64 // of the last ID
			want  error
			sleep time.Duration // how long it is suspended in the reading
			later time.Duration // how much later the grant begins
		}{
			"TryNext": {func(g *Generator) error {
				if _, err := g.TryNext(); !errors.Is(err, ErrExhausted) { // unless a batch leads
					return err
				}
				return nil
			}, 1, nil, 0, 0},
			"Extend":            {func(g *Generator) error { return g.Extend(time.Time{}) }, 1, nil, 0, 0},
			"Switch":            {switchTo(2, -time.Hour, -1), 2, nil, 0, 0},
			"Switch at the end": {switchTo(2, -time.Hour, -1), 2, nil, time.Second, 0},
			"later":             {switchTo(2, time.Minute, -1), 2, nil, 0, time.Minute},
			"shorter":           {switchTo(2, -time.Hour, 0), 0, ErrGrantOver, 0, 0},
			"Seal":              {func(g *Generator) error { g.Seal(); return nil }, 0, ErrSealed, 0, 0},
		} {
			for _, reading := range []int64{2, 3, 0} { // 0: asleep
				synctest.Test(t, func(t *testing.T) {
					what := fmt.Sprintf("%s, %s in reading %d", name, change, reading)
					var readings atomic.Int64
					var at int64
					var changed time.Time
					later := test.later
					var g *Generator
					do := func() {
						if err := test.do(g); err != nil {
							t.Errorf("%s: %v", what, err)
						}
						if changed = time.Now(); reading > 0 {
							later += test.sleep
							time.Sleep(test.sleep)
							changed = time.Now()
						}
					}
					now := func() time.Time {
						if readings.Add(1) == at {
							do()
						}
						return time.Now()
					}
					// The word is at the beginning of a tick, where a new term
					// begins.
					g, err := NewGenerator(MustParseLayout("bits=time:48.node:14.seq:2"),
						Grant{1, time.Unix(1, 0), time.Now().Add(100 * time.Millisecond)}, &Options{Now: now})
					if err != nil {
						t.Fatal(err)
					}
					before := make([]ID, 4)
					must.Do(t, g.Fill(t.Context(), before))
					if at = readings.Load() + reading; reading == 0 {
						at = -1
						time.AfterFunc(took/2+1, do)
					}
					began := time.Now()
					after, err := call(t.Context(), g, n)
					passed := time.Since(began)
					synctest.Wait() // for the change
					if !errors.Is(err, test.want) || changed.IsZero() {
						t.Errorf("%s: %v, want %v", what, err, test.want)
					}
					if g.line.busy() || g.line.batchEnd.Load() > 0 {
						t.Errorf("%s: something is left in line", what)
					}
					if err != nil {
						if late := time.Since(changed); late > 0 {
							t.Errorf("%s: ends %v later, want at once", what, late)
						}
						return
					}
					limit := later + took + 2*time.Millisecond
					if test.later > 0 {
						limit += took // a batch begins in the later grant
					}
					if passed < later || passed > limit {
						t.Errorf("%s: it took %v, want %v at most", what, passed, limit)
					}
					if p, _ := g.layout.Decompose(after[n-1]); p.Node != test.node {
						t.Errorf("%s: %v of node %d, want %d", what, after[n-1], p.Node, test.node)
					}
					if name == "NextBatch" {
						checkBatch(t, g, after, n, began)
					}
					if every := slices.Concat(before, after); !slices.IsSorted(every) {
						t.Errorf("%s: %v", what, every)
					}
				})
			}
		}
	}
}

// TestNotYourTurn: the error of a call whose turn has not come contains how
// many IDs the calls before it want, and how long these take, instead of the
// time for one ID.
func TestNotYourTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := oneATick(t)
		wait := func(n int, d time.Duration, want string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), d)
			go func() {
				defer cancel()
				_, err := g.NextBatch(ctx, n)
				if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
					t.Errorf("%d IDs: got %v, want %q", n, err, want)
				}
			}()
			synctest.Wait()
		}
		wait(100, time.Minute, "")
		wait(200, 260*time.Millisecond, "firn: 200 IDs are not free for another 200ms: context deadline exceeded")
		wait(300, 700*time.Millisecond, "")
		wait(50, 350*time.Millisecond, "firn: 50 IDs are not free for another 350ms: earlier calls wait for 300: context deadline exceeded")
		wait(1, 50*time.Millisecond, "firn: no ID is free for another 651ms: earlier calls wait for 650: context deadline exceeded")
		wait(7, time.Minute, "") // counts for later calls only
		if _, err := g.TryNextBatch(1); err == nil || err.Error() != "firn: no ID is free for another 659ms: earlier calls wait for 658" {
			t.Errorf("TryNextBatch: %v", err)
		}
		time.Sleep(time.Second)
		if want := g.line.want.Load(); want != 0 {
			t.Errorf("no call waits, but the line wants %d", want)
		}
	})
}
