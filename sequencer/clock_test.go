package sequencer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

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
