package sequencer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// timedStore is a store that returns its time, which may be wrong.
type timedStore struct {
	grant.Store
	offset time.Duration
}

func (s timedStore) Time(context.Context) (time.Time, time.Duration, error) {
	return time.Now().Add(s.offset), time.Millisecond, nil
}

// in2026 runs f in a bubble whose clock shows a day in 2026.
func in2026(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)))
		f(t)
	})
}

// sixteen has 16 node IDs.
var sixteen = firn.MustParseLayout("bits=time:44.node:4.seq:4,unit=1ms,epoch=0")

// crash ends a sequencer like the death of its process.
func crash(t *testing.T, q *sequencer.Sequencer, s *brokenStore) {
	t.Helper()
	s.set(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = q.Close(ctx)
}

// TestHostAhead: a host whose clock is ahead crashes and restarts repeatedly
// beside working members. It gets no node ID, whether the store returns its
// time or not, and they keep theirs.
func TestHostAhead(t *testing.T) {
	for _, ahead := range []time.Duration{11 * time.Second, 2 * time.Minute, time.Hour, 365 * 24 * time.Hour} {
		for _, timed := range []bool{true, false} {
			if !timed && ahead < 90*time.Second {
				continue // so little does no harm, and no record shows it at once
			}
			t.Run(fmt.Sprintf("%v, timed %t", ahead, timed), func(t *testing.T) {
				in2026(t, func(t *testing.T) {
					var store grant.Store = new(memstore.Store)
					if timed {
						store = timedStore{store, 0}
					}
					var good []*sequencer.Sequencer
					for range 10 {
						good = append(good, open(t, store, &sequencer.Config{Layout: sixteen}))
					}
					wrong := func() time.Time { return time.Now().Add(ahead) }
					for range 30 {
						for range 5 {
							ctx, cancel := context.WithTimeout(t.Context(), time.Second)
							bad, err := sequencer.Open(ctx, store, "orders", &sequencer.Config{Now: wrong})
							cancel()
							if err == nil {
								t.Fatalf("it has node %d", bad.State().Node)
							}
							if timed && !errors.Is(err, grant.ErrClockAhead) {
								t.Fatalf("Open = %v, want ErrClockAhead", err)
							}
							for _, q := range good {
								next(t, q, 3)
							}
						}
					}
					// It stays that way: the member sees who renews, and its
					// error reports that.
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					done := make(chan error)
					go func() {
						_, err := sequencer.Open(ctx, store, "orders", &sequencer.Config{Now: wrong, WaitForNode: true})
						done <- err
					}()
					for range 59 {
						time.Sleep(time.Second)
						for _, q := range good {
							next(t, q, 1)
						}
					}
					if err := <-done; !errors.Is(err, grant.ErrClockAhead) {
						t.Errorf("Open = %v, want ErrClockAhead", err)
					}
					cancel()
					for _, q := range good {
						if s := q.Stats().Keeper; s.Lost > 0 || s.Acquired != 1 {
							t.Errorf("a good member lost its number: %+v", s)
						}
						_ = q.Close(t.Context())
					}
				})
			})
		}
	}
}

// TestStoreClockWrong: a wrong clock of the store prevents no member from
// working if members agree with each other.
func TestStoreClockWrong(t *testing.T) {
	// In a small layout, and in one with few members among many node IDs.
	for _, c := range []struct {
		offset time.Duration
		layout firn.Layout
	}{{-time.Hour, sixteen}, {time.Hour, sixteen}, {-time.Hour, firn.Default()}, {time.Hour, firn.Default()}} {
		in2026(t, func(t *testing.T) {
			mem := new(memstore.Store)
			var good []*sequencer.Sequencer
			for range 3 {
				good = append(good, open(t, timedStore{mem, 0}, &sequencer.Config{Layout: c.layout}))
			}
			stop := make(chan struct{})
			go func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Second):
						for _, q := range good {
							_, _ = q.TryNext()
						}
					}
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			q, err := sequencer.Open(ctx, timedStore{mem, c.offset}, "orders", &sequencer.Config{WaitForNode: true})
			cancel()
			close(stop)
			if err != nil {
				t.Fatalf("with the store's clock off by %v: %v", c.offset, err)
			}
			for _, q := range append(good, q) {
				_ = q.Close(t.Context())
			}
		})
	}
}

// TestRepair: processes whose clock is a year ahead have claimed every node ID
// and died. A repair gives them back, with dead owners and live ones, and no ID
// is made twice, even after the year has passed.
func TestRepair(t *testing.T) {
	const year = 365 * 24 * time.Hour
	in2026(t, func(t *testing.T) {
		mem := new(memstore.Store)
		var all ids
		wrong := &sequencer.Config{Layout: sixteen, AllowClockAhead: true, AllowClockBehind: true, Now: func() time.Time { return time.Now().Add(year) }}

		// Half of the node IDs have been used before.
		var used []*sequencer.Sequencer
		for range 8 {
			q := open(t, mem, &sequencer.Config{Layout: sixteen})
			all.add(t, next(t, q, 200)...)
			used = append(used, q)
		}
		for _, q := range used {
			if err := q.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		var alive []*sequencer.Sequencer
		for i := range 16 {
			s := &brokenStore{Store: mem}
			q := open(t, s, wrong)
			all.add(t, next(t, q, 500)...)
			if i%2 == 0 {
				crash(t, q, s)
			} else {
				s.set(true) // otherwise they would claim again
				alive = append(alive, q)
			}
		}
		if _, err := sequencer.Open(t.Context(), mem, "orders", &sequencer.Config{AllowClockBehind: true}); !errors.Is(err, grant.ErrNodesExhausted) {
			t.Fatalf("Open = %v, want ErrNodesExhausted", err)
		}

		dry, err := grant.Repair(t.Context(), mem, "orders", &grant.RepairOptions{DryRun: true})
		if err != nil || len(dry.Nodes) != 16 || len(dry.Left) != 0 {
			t.Fatalf("a dry run: %+v, %v, want 16 numbers", dry, err)
		}
		done, err := grant.Repair(t.Context(), mem, "orders", nil)
		if err != nil || len(done.Nodes) != 16 {
			t.Fatalf("Repair = %+v, %v", done, err)
		}
		if again, err := grant.Repair(t.Context(), mem, "orders", nil); err != nil || len(again.Nodes)+len(again.Left) != 0 {
			t.Errorf("a second Repair = %+v, %v, want nothing to do", again, err)
		}

		use := func(n int) {
			t.Helper()
			var good []*sequencer.Sequencer
			for range n {
				good = append(good, open(t, mem, &sequencer.Config{Layout: sixteen, WaitForNode: true}))
			}
			for range 30 {
				time.Sleep(10 * time.Second)
				for _, q := range good {
					all.add(t, next(t, q, 200)...)
				}
				for _, q := range alive {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					if id, err := q.Next(ctx); err == nil {
						all.add(t, id)
					}
					cancel()
				}
			}
			for _, q := range good {
				if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		use(10)
		for _, q := range alive {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_ = q.Close(ctx)
			cancel()
		}
		alive = nil
		// The time that the wrong clock showed comes and passes.
		time.Sleep(time.Until(done.Nodes[0].To.Add(-3 * time.Minute)))
		for range 3 {
			use(4)
		}
		if len(all.seen) < 16*500+8*200+30*10*200 {
			t.Errorf("%d IDs, want more", len(all.seen))
		}
	})
}

// TestBefore1970: an ID's time may be before 1970, and 0 is a valid time.
func TestBefore1970(t *testing.T) {
	for _, at := range []string{"1969-12-31T23:59:00Z", "1969-12-31T23:59:59.5Z", "1970-01-01T00:00:00Z", "1960-06-01T00:00:00Z"} {
		in2026(t, func(t *testing.T) {
			begin, err := time.Parse(time.RFC3339, at)
			if err != nil {
				t.Fatal(err)
			}
			offset := time.Until(begin)
			now := func() time.Time { return time.Now().Add(offset) }
			mem := new(memstore.Store)
			l := firn.MustParseLayout("bits=time:48.node:4.seq:4,unit=1ms,epoch=1950-01-01T00:00:00Z")
			var all ids
			for life := range 40 {
				s := &brokenStore{Store: mem}
				q, err := sequencer.Open(t.Context(), s, "orders", &sequencer.Config{Layout: l, Nodes: &sequencer.Range{Lo: 3, Hi: 3}, Now: now, WaitForNode: true, Window: 3 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				for range 8 {
					all.add(t, next(t, q, 20)...)
					time.Sleep(300 * time.Millisecond)
				}
				if life%2 == 0 {
					crash(t, q, s)
				} else if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
