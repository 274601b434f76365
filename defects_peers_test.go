package firn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
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
		name: "yitter stalls",
		they: "blocks call 118,001 of a burst for two seconds, under its lock",
		firn: "never waits for more than a tick",
		test: inBubble(func(t *testing.T) {
			g, err := firn.NewGenerator(firn.MustParseLayout(yitter), firn.StaticGrant(1), nil)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for i := range 150_000 {
				start := time.Now()
				if _, err := g.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > time.Millisecond {
					t.Fatalf("call %d took %v", i+1, took)
				}
			}
			// A new generator with a fixed number begins at the latest possible
			// end of a burst of the previous one, and continues at the layout's
			// rate.
			want := 150_000 / 64 * time.Millisecond
			if took := time.Since(begin); took < want || took > want+3*time.Millisecond {
				t.Errorf("150000 IDs took %v, want about %v", took, want)
			}
			if s := g.Stats(); s.LongestWait > time.Millisecond {
				t.Errorf("the longest wait was %v", s.LongestWait)
			}
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
		name: "bwmarrin reads junk",
		they: "reads OIl in base 58 and !!! in base 32 as 0, and twenty Z as a negative number, and panics after JSON's \"-1\"",
		firn: "names the invalid character, or reports that the number is too great",
		test: func(t *testing.T) {
			wantBadTexts(t, "Base58.Parse", firn.Base58.Parse, "OIl", "O", "I", "l", "0", "", "+1", "-1", " 1", strings.Repeat("z", 20), "jpXCZedGfVR")
			wantBadTexts(t, "Base32.Parse", firn.Base32.Parse, "!!!", "", "-1", "U", strings.Repeat("Z", 20), "G000000000000")
			for _, text := range []string{`"-1"`, `-1`, `1.5`, `1e3`, `"18446744073709551616"`, `18446744073709551616`, `""`, `true`, `[1]`} {
				id := firn.ID(7)
				if err := json.Unmarshal([]byte(text), &id); err == nil || id != 7 {
					t.Errorf("json.Unmarshal(%s) = %v, %v, want an error and 7 as before", text, id, err)
				}
			}
		},
	}, {
		name: "bwmarrin has one layout",
		they: "keeps the bits in package variables: a second layout changed the node of an earlier ID from 3 to 96",
		firn: "keeps them in the Layout, and many live side by side",
		test: func(t *testing.T) {
			a := firn.MustParseLayout("default")
			id, err := a.Compose(firn.Parts{Time: a.Last(), Node: 3, Seq: 5})
			if err != nil {
				t.Fatal(err)
			}
			before := decompose(t, a, wideOf(id))
			b := firn.MustParseLayout("default,node-bits=5,seq-bits=17")
			generate(t, b.String(), granted(1), time.Now, 0).TryNext()
			if after := decompose(t, a, wideOf(id)); after != before || after.Node != 3 {
				t.Errorf("Decompose(%v) = %+v, then %+v", id, before, after)
			}
			if other := decompose(t, b, wideOf(id)); other.Node == 3 {
				t.Errorf("the layouts %s and %s read %v alike, so this shows nothing", a, b, id)
			}
		},
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
		name: "influx and others run ahead",
		they: "lets the time of IDs run ahead of the clock without bound: by 4.3 s after 1.2 s",
		firn: "keeps it within MaxAhead",
		test: func(t *testing.T) {
			for _, text := range []string{yitter, "lable", "uuidv7", "bits=time:40.seq:3.node:5,unit=7ms"} {
				l := firn.MustParseLayout(text)
				for _, ahead := range []time.Duration{0, 1, 5 * time.Millisecond, 100 * time.Millisecond, 100*time.Millisecond + 1} {
					clock := clockAt(l.Epoch().Add(12345 * time.Microsecond))
					g := mustAny(t, l, granted(1), &firn.Options{Now: clock.now, MaxAhead: ahead})
					for range 3 {
						ids, err := drain(g, 1_000_000)
						lead := decompose(t, l, ids[len(ids)-1]).Time.Sub(clock.now())
						if !errors.Is(err, firn.ErrExhausted) || lead > ahead || lead <= ahead-l.Unit() {
							t.Errorf("%s: %d IDs, then %v: the last is %v ahead, want at most %v and all that fit", text, len(ids), err, lead, ahead)
						}
						if got := g.Stats().Lead; got != lead {
							t.Errorf("%s: Stats().Lead = %v, want %v", text, got, lead)
						}
						clock.add(l.Unit())
					}
				}
			}
		},
	}, {
		name: "godruoyi spins",
		they: "returns the ID 0 if it fails, and spins for half a second if the clock went back by that much",
		firn: "returns the error, and reads the clock only a few times during a wait",
		test: inBubble(func(t *testing.T) {
			clock := new(shiftedClock)
			g := generate(t, "default,epoch=0", granted(1), clock.now, 0)
			g.TryNext()
			clock.shift(-500 * time.Millisecond)
			if id, err := g.TryNext(); err == nil || id != 0 {
				t.Errorf("TryNext half a second back = %v, %v, want an error", id, err)
			}
			few(t, "Next half a second back", &clock.readings, func() error {
				_, err := g.Next(t.Context())
				return err
			})
			// The hold of a batch is counted in whole ticks; MaxAhead need not
			// be whole.
			for _, ahead := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 1999 * time.Millisecond} {
				clock := new(shiftedClock)
				g := generate(t, "bits=time:32.node:8.seq:4,unit=1s,epoch=0", granted(1), clock.now, ahead)
				if _, _, err := g.Reserve(100); err != nil {
					t.Fatal(err)
				}
				time.Sleep(700 * time.Millisecond)
				few(t, fmt.Sprintf("NextBatch, MaxAhead %v", ahead), &clock.readings, func() error {
					_, err := g.NextBatch(t.Context(), 3)
					return err
				})
				few(t, fmt.Sprintf("Next, MaxAhead %v", ahead), &clock.readings, func() error {
					_, err := g.Next(t.Context())
					return err
				})
			}
		}),
	}, {
		name: "sonyflake takes half an address",
		they: "takes the last 16 bits of an IP address as the node: 10.1.0.5, 10.2.0.5 and 192.168.0.5 are all machine 5",
		firn: "takes no node from an IP address, nor from a host name that is made from one, as in clouds",
		test: func(t *testing.T) {
			for _, name := range []string{"ip-10-1-0-5", "ip-10-2-0-5.ec2.internal", "ip-192-168-0-5.eu-west-1.compute.internal", "host-10-0-12-7"} {
				if node, err := firn.NodeFromHostname(name); err == nil {
					t.Errorf("NodeFromHostname(%q) = %d, want an error: it is an address", name, node)
				}
			}
			for name, want := range map[string]uint64{"ids-5": 5, "ids-2-5.ids.default.svc": 5, "ids-10-2-5": 5, "a-1-2-3-4000": 4000} {
				if node, err := firn.NodeFromHostname(name); err != nil || node != want {
					t.Errorf("NodeFromHostname(%q) = %d, %v, want %d", name, node, err, want)
				}
			}
		},
	}, {
		name: "xid reads any JSON number",
		they: "takes the number 1111111111111111111101 for an ID",
		firn: "accepts a number only if 64 bits can hold it exactly",
		test: func(t *testing.T) {
			var id firn.ID
			if err := json.Unmarshal([]byte("1111111111111111111101"), &id); err == nil {
				t.Errorf("json.Unmarshal(1111111111111111111101) = %v, want an error", id)
			}
			if err := json.Unmarshal([]byte("18446744073709551615"), &id); err != nil || id != math.MaxUint64 {
				t.Errorf("json.Unmarshal(2^64-1) = %v, %v", id, err)
			}
		},
	}, {
		name: "sno takes ticks for nanoseconds",
		they: "sleeps as many nanoseconds as it should sleep ticks of 4 ms, and so spins",
		firn: "waits for what is left of the tick",
		test: inBubble(func(t *testing.T) {
			clock := new(shiftedClock)
			g := generate(t, "bits=time:39.node:16.seq:2,unit=4ms,epoch=0", granted(1), clock.now, 0)
			time.Sleep(time.Millisecond)
			drain64(g, 4)
			_, err := g.TryNext()
			wantWait(t, "ID 5 of a tick", err, 3*time.Millisecond)
			start := time.Now()
			few(t, "Next", &clock.readings, func() error {
				_, err := g.Next(t.Context())
				return err
			})
			wantElapsed(t, "Next", start, 3*time.Millisecond)
		}),
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
