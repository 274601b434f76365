package firn_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn"
)

// TestDefectsOfPeers checks the bugs of other Go libraries.
func TestDefectsOfPeers(t *testing.T) {
	const yitter = "bits=time:51.node:6.seq:6,epoch=0" // its default shape
	runDefects(t, []defect{{
		name: "yitter shifts before it widens",
		they: "loses the high bits of the worker if worker and sequence have more than 16 bits: 1024 workers become 16",
		firn: "keeps every bit of every node, whatever the shape",
		test: func(t *testing.T) {
			for _, text := range []string{"default", "bits=time:42.node:15.seq:6", "bits=time:30.node:4.seq:21", "bits=time:24.node:32.seq:8", "bits=time:22.seq:20.node:22"} {
				l := firn.MustParseLayout(text)
				seen := make(map[firn.ID]bool)
				step := l.MaxNode()/2000 + 1
				for node := uint64(0); node <= l.MaxNode(); node += step {
					id, err := l.Compose(firn.Parts{Time: l.Last(), Node: node, Seq: l.MaxSeq()})
					if p := decompose(t, l, wideOf(id)); err != nil || p.Node != node || seen[id] {
						t.Fatalf("%s, node %d: %v, %v has node %d", text, node, id, err, p.Node)
					}
					seen[id] = true
				}
			}
			clock := clockAt(firn.Default().Epoch().Add(time.Hour))
			a, errA := drain64(generate(t, "default", granted(1), clock.now, time.Second), 20_000)
			b, errB := drain64(generate(t, "default", granted(17), clock.now, time.Second), 20_000)
			if err := errors.Join(errA, errB); err != nil {
				t.Error(err)
			}
			unique(t, firn.Default(), slices.Concat(a, b))
		},
	}, {
		name: "yitter restarted",
		they: "repeats 18,997 of 20,000 IDs when a process with the same worker starts after a burst",
		firn: "starts after everything that a burst may have used",
		test: inBubble(func(t *testing.T) {
			l := firn.MustParseLayout(yitter)
			var ids []wideID
			for range 2 {
				g, err := firn.NewGenerator(l, firn.StaticGrant(1), nil)
				if err != nil {
					t.Fatal(err)
				}
				some, err := gen64{g}.fill(t.Context(), 20_000)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, some...)
				time.Sleep(15 * time.Millisecond)
			}
			unique(t, l, ids)
		}),
	}, {
		name: "yitter prints and repeats",
		they: "repeats a third of its IDs if the clock is set back by 20 ms, and prints a line",
		firn: "continues ahead of the clock as far as MaxAhead allows, and returns an error beyond that",
		test: func(t *testing.T) {
			l := firn.MustParseLayout(yitter)
			for _, ahead := range []time.Duration{0, 10 * time.Millisecond, time.Second} {
				clock := clockAt(atMilli(midday))
				g := generate(t, yitter, granted(1), clock.now, ahead)
				ids, _ := drain64(g, 1000)
				clock.add(-20 * time.Millisecond)
				more, err := drain64(g, 1000)
				if ahead < 20*time.Millisecond {
					var fault *firn.ClockError
					if len(more) != 0 || !errors.As(err, &fault) {
						t.Errorf("MaxAhead %v, 20 ms back: %d IDs, then %v, want a *ClockError", ahead, len(more), err)
					}
				}
				clock.add(40 * time.Millisecond)
				last, err := drain64(g, 10)
				if err != nil {
					t.Errorf("MaxAhead %v, the clock is right again: %v", ahead, err)
				}
				unique(t, l, slices.Concat(ids, more, last))
			}
		},
	}, {
		name: "sno at the start of a tick",
		they: "keeps time and sequence in two words, and gives numbers twice if goroutines meet at the start of a tick",
		firn: "keeps both in one word",
		test: func(t *testing.T) {
			const text = "bits=time:39.node:16.seq:8,unit=4ms,epoch=0"
			clock := clockAt(atMilli(midday))
			tick := func() time.Time { clock.add(100 * time.Microsecond); return clock.now() } // 40 readings per tick
			g := generate(t, text, granted(1), tick, 4*time.Millisecond)
			var ids [4][]wideID
			var all sync.WaitGroup
			for i := range ids {
				all.Go(func() {
					for range 20_000 {
						if id, err := g.TryNext(); err == nil {
							ids[i] = append(ids[i], wideOf(id))
						}
					}
				})
			}
			all.Wait()
			unique(t, firn.MustParseLayout(text), slices.Concat(ids[:]...))
		},
	}, {
		name: "xid in a busy second",
		they: "lets a counter of 24 bits wrap inside a second: 16,957,440 IDs in one held about 180,000 repeats",
		firn: "carries into the next second, and holds the batch back until then",
		test: func(t *testing.T) {
			const text = "bits=time:32.node:8.seq:24,unit=1s,epoch=0"
			g := generate(t, text, granted(1), clockAt(atMilli(midday)).now, 0)
			b, hold, err := g.Reserve(16_957_440)
			if err != nil || hold != time.Second {
				t.Fatalf("Reserve(16957440): hold %v, %v, want a second", hold, err)
			}
			n := 0
			var end firn.ID
			for _, r := range b.Runs() {
				if r.First < end || r.Step != 1 {
					t.Errorf("run %+v begins below %v", r, end)
				}
				end = r.First + firn.ID(r.Count)
				n += r.Count
			}
			if n != 16_957_440 {
				t.Errorf("the runs have %d IDs", n)
			}
			g = generate(t, text, granted(1), clockAt(atMilli(midday)).now, 0)
			if _, _, err := g.Reserve(1 << 24); err != nil {
				t.Fatal(err)
			}
			_, err = g.TryNext()
			wantWait(t, "ID 2^24+1 of a second", err, time.Second)
		},
	}, {
		name: "sonyflake sleeps",
		they: "if the clock went back, sleeps for the whole step under its lock: 2 s, or 8 h",
		firn: "returns an error at once from TryNext, waits in Next until the context ends, and does not wait at all for 8 h",
		test: inBubble(func(t *testing.T) {
			clock := new(shiftedClock)
			g := generate(t, "sonyflake,epoch=0", granted(1), clock.now, 0)
			drain64(g, 100)
			clock.shift(-2 * time.Second)
			start := time.Now()
			for range 1000 {
				_, err := g.TryNext()
				wantBack(t, "TryNext 2 s back", err, 2*time.Second)
			}
			wantElapsed(t, "TryNext 2 s back", start, 0)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Next 2 s back with 100 ms of patience: %v", err)
			}
			wantElapsed(t, "Next 2 s back with 100 ms of patience", start, 100*time.Millisecond)
			if _, err := g.Next(t.Context()); err != nil {
				t.Errorf("Next 2 s back: %v", err)
			}
			wantElapsed(t, "Next 2 s back", start, 2*time.Second)
			clock.shift(-8 * time.Hour)
			start = time.Now()
			_, err := g.Next(t.Context())
			wantBack(t, "Next 8 h back", err, 8*time.Hour)
			wantElapsed(t, "Next 8 h back", start, 0)
		}),
	}, {
		name: "bwmarrin restarted",
		they: "repeats 20,676 of 50,000 IDs in a new process whose clock is 50 ms back",
		firn: "begins where its grant does, above the end of the previous one",
		test: inBubble(func(t *testing.T) {
			l := firn.MustParseLayout("default,epoch=0")
			clock := new(shiftedClock)
			grant := granted(1)
			var ids []wideID
			for range 3 {
				g := generate(t, l.String(), grant, clock.now, 100*time.Millisecond)
				some, err := gen64{g}.fill(t.Context(), 50_000)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, some...)
				grant.From = g.Seal()
				clock.shift(-50 * time.Millisecond)
			}
			unique(t, l, ids)
		}),
	}, {
		name: "ulid returns the smaller ID later",
		they: "reads the clock before it takes its lock, so a call can return an ID below one already returned",
		firn: "never does: see also TestOrderBetweenGoroutines",
		test: func(t *testing.T) {
			g, err := firn.NewGenerator128(firn.MustParseLayout("ulid"), granted(1), &firn.Options{MaxAhead: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			last := firn.ID128{}
			for i := range 20_000 {
				id, err := g.TryNext()
				if err != nil || id.Compare(last) <= 0 {
					t.Fatalf("ID %d = %v, %v, after %v", i, id, err, last)
				}
				last = id
			}
		},
	}, {
		name: "influx carries into the node",
		they: "adds to its word after a hundred failed tries, and the carry can reach the node",
		firn: "adds the node after the slot is taken, so no carry reaches it",
		test: func(t *testing.T) {
			const text = "bits=node:8.time:40.seq:1.node:8.seq:1"
			l := firn.MustParseLayout(text)
			g := generate(t, text, granted(0xfffe), clockAt(atMilli(255)).now, time.Hour)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					ids, err := drain64(g, 2000)
					if err != nil {
						t.Error(err)
					}
					for _, id := range ids {
						if p := decompose(t, l, id); p.Node != 0xfffe {
							t.Errorf("ID %v has node %#x", id, p.Node)
							return
						}
					}
				})
			}
			all.Wait()
		},
	}, {
		name: "gofrs wraps its counter",
		they: "made one in 4096 UUIDs sort below the one before",
		firn: "carries into the millisecond",
		test: func(t *testing.T) {
			l := firn.MustParseLayout("uuidv7")
			g := mustAny(t, l, granted(1), &firn.Options{Now: clockAt(atMilli(midday)).now, MaxAhead: time.Second})
			ids, err := drain(g, 20_000)
			if err != nil || len(ids) != 20_000 {
				t.Fatalf("%d IDs, then %v", len(ids), err)
			}
			for i := range ids[1:] {
				if !ids[i].less(ids[i+1]) {
					t.Fatalf("ID %d = %v is not less than %v", i, ids[i], ids[i+1])
				}
			}
			b, _, err := g.reserve(20_000)
			if err != nil || !slices.IsSortedFunc(b.ids, wideID.compare) || !ids[len(ids)-1].less(b.ids[0]) {
				t.Errorf("Reserve(20000): %v; the IDs are not in order", err)
			}
		},
	}})
}
