package firn_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
)

func TestDefectsOfSnowcast(t *testing.T) {
	runDefects(t, []defect{{
		name: "counter runs into the node",
		they: "counts one too far, so the last ID of a full millisecond of node 2k is the first of node 2k+1",
		firn: "fills the millisecond of both nodes with different IDs, in order, and decomposes each to its node",
		test: func(t *testing.T) {
			for _, text := range []string{"snowcast,epoch=0", "snowcast,nodes=1024,epoch=0", "snowcast,nodes=128,epoch=0"} {
				l := firn.MustParseLayout(text)
				for _, node := range []uint64{0, 2, l.MaxNode() - 1} {
					clock := clockAt(atMilli(1000))
					a, errA := drain64(generate(t, text, granted(node), clock.now, 0), 1<<17)
					b, errB := drain64(generate(t, text, granted(node+1), clock.now, 0), 1<<17)
					wantWait(t, text, errA, time.Millisecond)
					wantWait(t, text, errB, time.Millisecond)
					wantSequences(t, l, a, node, int(l.MaxSeq())+1)
					wantSequences(t, l, b, node+1, int(l.MaxSeq())+1)
					if !slices.IsSortedFunc(a, wideID.compare) || !slices.IsSortedFunc(b, wideID.compare) {
						t.Errorf("%s: the IDs of nodes %d and %d are not in order", text, node, node+1)
					}
					unique(t, l, slices.Concat(a, b))
				}
			}
		},
	}, {
		name: "end of time",
		they: "makes negative IDs after 34.8 years, and after 69.7 answers that a hundred retries failed",
		firn: "compares IDs as unsigned numbers, so they stay in order, and returns ErrTimeOver at the end",
		test: func(t *testing.T) {
			clock := clockAt(atMilli(1<<40 - 1))
			g := generate(t, "snowcast,epoch=0", granted(5), clock.now, 0)
			a, _ := g.TryNext()
			clock.add(time.Millisecond)
			b, err := g.TryNext()
			if err != nil || a >= 1<<63 || b < 1<<63 || b <= a {
				t.Errorf("IDs about 2^40 ms: %v and %v, %v", a, b, err)
			}
			clock.set(atMilli(1 << 41))
			if id, err := g.TryNext(); !errors.Is(err, firn.ErrTimeOver) {
				t.Errorf("TryNext() at 2^41 ms = %v, %v, want ErrTimeOver", id, err)
			}
		},
	}})
}

func TestDefectsOfHazelcast(t *testing.T) {
	l := firn.MustParseLayout("hazelcast")
	runDefects(t, []defect{{
		name: "carry past the last millisecond",
		they: "lets the 65th ID of the last millisecond become negative",
		firn: "refuses a batch that does not fit completely, and takes none of its IDs",
		test: func(t *testing.T) {
			clock := clockAt(l.Last())
			g := generate(t, "hazelcast", granted(1234), clock.now, 15*time.Second)
			if b, _, err := g.Reserve(65); !errors.Is(err, firn.ErrTimeOver) || b.Len() != 0 {
				t.Errorf("Reserve(65) in the last millisecond = %d IDs, %v, want ErrTimeOver", b.Len(), err)
			}
			b, _, err := g.Reserve(64)
			if err != nil {
				t.Fatalf("Reserve(64) in the last millisecond: %v", err)
			}
			ids := batchOf(b).ids
			wantSequences(t, l, ids, 1234, 64)
			if ids[0] != wideOf(9223372036850582738) || ids[63].lo > math.MaxInt64 {
				t.Errorf("the last IDs are %v to %v", ids[0], ids[63])
			}
			if id, err := g.TryNext(); !errors.Is(err, firn.ErrTimeOver) {
				t.Errorf("TryNext() = %v, %v, want ErrTimeOver", id, err)
			}
		},
	}, {
		name: "node bits from 31 on",
		they: "computes steps and nodes in 32 bits: with 31 node bits the step is negative, with 32 it is 1, and node 100 is out of range",
		firn: "computes in 64 bits",
		test: func(t *testing.T) {
			for _, bits := range []int{30, 31, 32, 33, 40, 50} {
				text := fmt.Sprintf("hazelcast,node-bits=%d,seq-bits=4,epoch=0", bits)
				l := firn.MustParseLayout(text)
				for _, node := range []uint64{3, 100, 1<<bits - 1} {
					g := generate(t, text, granted(node), clockAt(atMilli(1)).now, time.Second)
					b, _, err := g.Reserve(3)
					want := []firn.Run{{First: firn.ID(1<<(bits+4) | node), Step: 1 << bits, Count: 3}}
					if got := b.Runs(); err != nil || !slices.Equal(got, want) {
						t.Errorf("%s, node %d: Reserve(3).Runs() = %v, %v, want %v", text, node, got, err, want)
					}
					for id := range b.All() {
						if p := decompose(t, l, wideOf(id)); p.Node != node {
							t.Errorf("%s, node %d: %v has node %d", text, node, id, p.Node)
						}
					}
				}
				_, err := firn.NewGenerator(l, firn.StaticGrant(1<<bits), nil)
				wantRangeError(t, text, err, "node")
			}
		},
	}, {
		name: "validity overflows",
		they: "adds the validity to the clock: with a long validity, the sum overflows, every batch is too old when it arrives, and the first call never ends",
		firn: "needs one fetch for the first ID and none for the second, even if the validity is shorter than the fetch",
		test: func(t *testing.T) {
			for _, validity := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1e15, 0, -1, math.MinInt64, time.Hour} {
				source := &countingSource{most: 1000}
				p := firn.NewPrefetcher(source, 3, validity)
				for i := range 3 {
					if id, err := p.Next(t.Context()); err != nil || id != firn.ID(i) || source.fetches != 1 {
						t.Errorf("validity %v: call %d = %v, %v after %d fetches", validity, i, id, err, source.fetches)
					}
				}
			}
			// A batch is always valid for the call that fetched it. In a
			// bubble, no time would pass between the two, so this test runs
			// outside.
			source := &countingSource{most: 1000}
			p := firn.NewPrefetcher(source, 3, time.Nanosecond)
			if id, err := p.Next(t.Context()); err != nil || source.fetches != 1 {
				t.Errorf("validity 1ns: Next() = %v, %v after %d fetches, want 1 fetch", id, err, source.fetches)
			}
		},
	}, {
		name: "destroyed and created again",
		they: "begins from nothing: created again half a second after a burst of 100,000, all of the next 1000 IDs were repeats",
		firn: "begins where the previous one ended, as returned by Seal",
		test: func(t *testing.T) {
			clock := clockAt(atMilli(midday))
			grant := granted(7)
			var ids []wideID
			for range 5 {
				g := generate(t, "hazelcast", grant, clock.now, 15*time.Second)
				b, hold, err := g.Reserve(100_000)
				if err != nil || hold != 0 {
					t.Fatalf("Reserve(100000): hold %v, %v", hold, err)
				}
				ids = append(ids, batchOf(b).ids...)
				grant.From = g.Seal()
				if last := decompose(t, l, ids[len(ids)-1]).Time; grant.From != last.Add(time.Millisecond) {
					t.Errorf("Seal() = %v, want the end of %v", grant.From, last)
				}
				clock.add(500 * time.Millisecond)
			}
			unique(t, l, ids)
		},
	}, {
		name: "node taken back",
		they: "reads its node ID again at times, and assumes that no other process has had it",
		firn: "begins above everything it has used with every Switch, also back to an earlier node, and after a grant that it never used",
		test: func(t *testing.T) {
			for _, node := range []uint64{1, 2} { // of the grant in between, under which no ID is made
				clock := clockAt(atMilli(midday))
				g := generate(t, "hazelcast", granted(1), clock.now, time.Second)
				ids, err := drain64(g, 1000)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(g.Switch(granted(node)), g.Switch(granted(1))); err != nil {
					t.Fatal(err)
				}
				more, err := drain64(g, 1000)
				if err != nil {
					t.Fatal(err)
				}
				if more[0].compare(ids[999]) <= 0 {
					t.Errorf("node 1, then %d, then 1: %v comes after %v", node, more[0], ids[999])
				}
				unique(t, l, slices.Concat(ids, more))
				if err := g.Switch(granted(1)); err != nil {
					t.Fatal(err)
				}
				if end, last := g.Seal(), decompose(t, l, slices.MaxFunc(more, wideID.compare)).Time; !end.After(last) {
					t.Errorf("node 1 anew, without an ID: Seal() = %v, but %v was used", end, last)
				}
			}
		},
	}, {
		name: "waits without end",
		they: "makes every batch wait for an hour after a step of an hour back, and has no timeout",
		firn: "returns an error at once if the step exceeds MaxLag, and otherwise waits until the context ends",
		test: inBubble(func(t *testing.T) {
			clock := new(shiftedClock)
			g := generate(t, "hazelcast,epoch=0", granted(7), clock.now, 15*time.Second)
			if _, err := g.NextBatch(t.Context(), 100); err != nil {
				t.Fatal(err)
			}
			clock.shift(-time.Hour)
			start := time.Now()
			_, err := g.NextBatch(t.Context(), 100)
			wantBack(t, "NextBatch an hour back", err, time.Hour-15*time.Second+200/64*time.Millisecond)
			wantElapsed(t, "NextBatch an hour back", start, 0)
			clock.shift(time.Hour - 20*time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			start = time.Now()
			if _, err := g.NextBatch(ctx, 100); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("NextBatch with 2 s of patience: %v, want DeadlineExceeded", err)
			}
			wantElapsed(t, "NextBatch with 2 s of patience", start, 2*time.Second)
		}),
	}, {
		name: "abandoned wait",
		they: "loses the IDs of a batch whose caller gives up",
		firn: "takes them after the wait, so there is nothing to lose; a batch that would take too long is refused before",
		test: inBubble(func(t *testing.T) {
			g := generate(t, "hazelcast,epoch=0", granted(7), time.Now, 15*time.Second)
			if _, _, err := g.Reserve(64 * 20_000); err != nil { // they span 20 s
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			before := g.Stats().IDs
			for _, n := range []int{1, 100, 10_000_000} {
				if _, err := g.NextBatch(ctx, n); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, firn.ErrBatchTooLarge) != (n > 1_000_000) {
					t.Errorf("NextBatch(%d): %v, want DeadlineExceeded", n, err)
				}
			}
			if made := g.Stats().IDs; made != before {
				t.Errorf("%d IDs were burnt", made-before)
			}
		}),
	}, {
		name: "sleep under the lock",
		they: "lets one large batch hold up every caller for as long as it waits",
		firn: "waits without a lock: other calls learn at once how long it takes",
		test: inBubble(func(t *testing.T) {
			g := generate(t, "hazelcast,epoch=0", granted(7), time.Now, 15*time.Second)
			start := time.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := g.NextBatch(t.Context(), 10_000_000); err != nil {
					t.Errorf("NextBatch(10000000): %v", err)
				}
				wantElapsed(t, "NextBatch(10000000)", start, 141_249*time.Millisecond) // its last ID
			}()
			synctest.Wait()
			_, err := g.TryNext()
			wantWait(t, "TryNext", err, 141_250*time.Millisecond)
			g.Stats()
			wantElapsed(t, "TryNext", start, 0)
			<-done
		}),
	}})
}

// A slowSource takes a second for a batch, and fails at first.
type slowSource struct {
	fail    int64
	fetches atomic.Int64
}

func (s *slowSource) NextBatch(ctx context.Context, n int) (firn.Batch, error) {
	i := s.fetches.Add(1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return firn.Batch{}, ctx.Err()
	}
	if i <= s.fail {
		return firn.Batch{}, errors.New("the network is down")
	}
	return firn.BatchFromRuns(firn.Run{First: firn.ID(i) << 32, Step: 1, Count: n}), nil
}
