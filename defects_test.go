package firn_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
)

// A defect is a behaviour of another system, observed by running or reading it,
// that Firn avoids.
type defect struct {
	name string
	they string // what that system does
	firn string // what Firn does, shown by test
	test func(t *testing.T)
}

func runDefects(t *testing.T, defects []defect) {
	for _, d := range defects {
		t.Run(strings.ReplaceAll(d.name, " ", "-"), func(t *testing.T) {
			t.Logf("they: %s", d.they)
			t.Logf("Firn: %s", d.firn)
			d.test(t)
		})
	}
}

// A standingClock stands still until it is set. Multiple goroutines may read
// and set it, and it counts its readings.
type standingClock struct {
	nano     atomic.Int64 // since 1970
	readings atomic.Int64
}

func clockAt(at time.Time) *standingClock {
	c := new(standingClock)
	c.set(at)
	return c
}

func (c *standingClock) set(at time.Time)    { c.nano.Store(at.UnixNano()) }
func (c *standingClock) add(d time.Duration) { c.nano.Add(int64(d)) }
func (c *standingClock) now() time.Time {
	c.readings.Add(1)
	return time.Unix(0, c.nano.Load())
}

// A shiftedClock is the bubble's clock with an offset.
type shiftedClock struct {
	by       atomic.Int64
	readings atomic.Int64
}

func (c *shiftedClock) shift(d time.Duration) { c.by.Add(int64(d)) }
func (c *shiftedClock) now() time.Time {
	c.readings.Add(1)
	return time.Now().Add(time.Duration(c.by.Load()))
}

// midday is a time that all layouts here contain, in milliseconds since 1970.
const midday = 1_700_000_000_000

func atMilli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// granted returns a grant that has begun, so that the first ID needs no wait.
func granted(node uint64) firn.Grant { return firn.Grant{Node: node, From: time.Unix(0, 1)} }

// generate makes a generator of a layout of 64 bits.
func generate(t *testing.T, layout string, grant firn.Grant, now func() time.Time, maxAhead time.Duration) *firn.Generator {
	t.Helper()
	g, err := firn.NewGenerator(firn.MustParseLayout(layout), grant, &firn.Options{Now: now, MaxAhead: maxAhead})
	if err != nil {
		t.Fatalf("NewGenerator(%s, %+v): %v", layout, grant, err)
	}
	return g
}

// drain takes IDs without waiting, up to most, and returns what stopped it.
func drain(g anyGenerator, most int) (ids []wideID, err error) {
	for range most {
		id, err := g.tryNext()
		if err != nil {
			return ids, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func drain64(g *firn.Generator, most int) ([]wideID, error) { return drain(gen64{g}, most) }

// wantRangeError checks that err names the field that cannot hold the value.
func wantRangeError(t *testing.T, what string, err error, field string) {
	t.Helper()
	var fault *firn.RangeError
	if !errors.As(err, &fault) || fault.Field != field {
		t.Errorf("%s: %v, want a *RangeError of the %s", what, err, field)
	}
}

// wantWait checks that err contains how long it takes until an ID is free.
func wantWait(t *testing.T, what string, err error, wait time.Duration) {
	t.Helper()
	var fault *firn.WaitError
	if !errors.As(err, &fault) || fault.Wait != wait || !errors.Is(err, firn.ErrExhausted) {
		t.Errorf("%s: %v, want a *WaitError of %v", what, err, wait)
	}
}

// wantBack checks that err reports a clock that went back, and how long no ID
// is available.
func wantBack(t *testing.T, what string, err error, wait time.Duration) {
	t.Helper()
	var fault *firn.ClockError
	if !errors.As(err, &fault) || fault.Wait != wait || errors.Is(err, firn.ErrBeforeEpoch) {
		t.Errorf("%s: %v, want a *ClockError with a wait of %v", what, err, wait)
	}
}

// wantBadTexts checks that every text is rejected.
func wantBadTexts[T any](t *testing.T, what string, parse func(string) (T, error), texts ...string) {
	t.Helper()
	for _, text := range texts {
		if got, err := parse(text); err == nil {
			t.Errorf("%s(%q) = %v, want an error", what, text, got)
		}
	}
}

// wantElapsed checks how much time has passed in a bubble.
func wantElapsed(t *testing.T, what string, start time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(start); got != want {
		t.Errorf("%s took %v, want %v", what, got, want)
	}
}

// inBubble runs a test in fake time.
func inBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// wantSequences checks that IDs of one tick and node have the numbers 0 to n-1.
func wantSequences(t *testing.T, l firn.Layout, ids []wideID, node uint64, n int) {
	t.Helper()
	if len(ids) != n {
		t.Errorf("%s: %d IDs in a tick, want %d", l, len(ids), n)
	}
	first := decompose(t, l, ids[0])
	for i, id := range ids {
		want := firn.Parts{Time: first.Time, Node: node, Seq: uint64(i)}
		if got := decompose(t, l, id); got != want {
			t.Errorf("%s: ID %d is %+v, want %+v", l, i, got, want)
			return
		}
	}
}

func TestDefectsOfFlakeIDGen(t *testing.T) {
	l := firn.MustParseLayout("flake-idgen")
	runDefects(t, []defect{{
		name: "time wraps",
		they: "takes the time modulo 2^42, so that IDs begin again from zero on 2109-05-15",
		firn: "refuses a later time, and stops with ErrTimeOver after the last millisecond",
		test: func(t *testing.T) {
			_, err := l.Compose(firn.Parts{Time: atMilli(1 << 42), Node: 1023})
			wantRangeError(t, "Compose at 2^42 ms", err, "time")
			clock := clockAt(atMilli(1<<42 - 1))
			g := generate(t, "flake-idgen", granted(1023), clock.now, time.Second)
			ids, err := drain64(g, 5000)
			if len(ids) != 4096 || !errors.Is(err, firn.ErrTimeOver) || ids[4095] != (wideID{0, math.MaxUint64}) {
				t.Errorf("in the last millisecond: %d IDs, then %v, want 4096 and ErrTimeOver", len(ids), err)
			}
			clock.set(atMilli(1 << 42))
			if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrTimeOver) {
				t.Errorf("Next() after the last millisecond = %v, %v, want ErrTimeOver", id, err)
			}
		},
	}, {
		name: "sequence mask",
		they: "takes any seqMask: with holes it loses counters, and a wide one runs into the worker, so IDs repeat",
		firn: "has a width, not a mask: a millisecond holds each of its 4096 numbers once, beside the node's own bits",
		test: func(t *testing.T) {
			wantBadTexts(t, "ParseLayout", firn.ParseLayout, "flake-idgen,seqMask=5", "flake-idgen,seq-bits=13", "bits=time:42.node:10.seq:-1", "bits=time:42.node:10.seq:0xf")
			_, err := l.Compose(firn.Parts{Time: atMilli(midday), Seq: 4096})
			wantRangeError(t, "Compose for sequence 4096", err, "sequence")
			g := generate(t, "flake-idgen", granted(1), clockAt(atMilli(midday)).now, 0)
			ids, err := drain64(g, 5000)
			wantWait(t, "ID 4097 of a millisecond", err, time.Millisecond)
			wantSequences(t, l, ids, 1, 4096)
		},
	}, {
		name: "clock that leaps",
		they: "after a leap forward that was corrected, refuses all calls until the clock reaches that time again",
		firn: "makes nothing at the leap because its grant is too short, and continues as soon as the clock is right",
		test: func(t *testing.T) {
			clock := clockAt(atMilli(midday))
			grant := granted(1)
			grant.Until = atMilli(midday + 60_000)
			g := generate(t, "flake-idgen", grant, clock.now, 0)
			a, _ := g.TryNext()
			clock.set(time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC))
			for range 1000 {
				if id, err := g.TryNext(); !errors.Is(err, firn.ErrGrantOver) {
					t.Fatalf("TryNext() in 2050 = %v, %v, want ErrGrantOver", id, err)
				}
				if b, _, err := g.Reserve(10); !errors.Is(err, firn.ErrGrantOver) {
					t.Fatalf("Reserve(10) in 2050 = %d IDs, %v, want ErrGrantOver", b.Len(), err)
				}
			}
			clock.set(atMilli(midday))
			if b, err := g.TryNext(); err != nil || b != a+1 {
				t.Errorf("TryNext() after the leap = %v, %v, want %v", b, err, a+1)
			}
		},
	}, {
		name: "generator per call",
		they: "repeats IDs if each call makes its own generator",
		firn: "begins after everything that an earlier one may have made",
		test: inBubble(func(t *testing.T) {
			var ids []wideID
			for range 200 {
				g, err := firn.NewGenerator(l, firn.StaticGrant(1), nil)
				if err != nil {
					t.Fatal(err)
				}
				id, err := g.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, wideOf(id))
			}
			unique(t, l, ids)
		}),
	}, {
		name: "restart with the clock behind",
		they: "remembers nothing, so that IDs repeat",
		firn: "never begins before its grant, whatever the clock shows",
		test: func(t *testing.T) {
			clock := clockAt(atMilli(midday))
			g := generate(t, "flake-idgen", granted(1), clock.now, time.Second)
			if _, err := drain64(g, 100_000); err != nil {
				t.Fatal(err)
			}
			end := g.Seal()
			clock.add(-time.Hour)
			g = generate(t, "flake-idgen", firn.Grant{Node: 1, From: end}, clock.now, time.Second)
			_, err := g.TryNext()
			wantWait(t, "TryNext an hour back", err, end.Sub(clock.now())-time.Second)
			clock.set(end)
			if id, err := g.TryNext(); err != nil || decompose(t, l, wideOf(id)).Time.Before(end) {
				t.Errorf("TryNext() = %v, %v, want an ID from %v on", id, err, end)
			}
		},
	}})
}

func TestDefectsOfBoundary(t *testing.T) {
	l := firn.MustParseLayout("boundary")
	boundary := func(t *testing.T, grant firn.Grant, now func() time.Time, ahead time.Duration) *firn.Generator128 {
		t.Helper()
		g, err := firn.NewGenerator128(l, grant, &firn.Options{Now: now, MaxAhead: ahead})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	runDefects(t, []defect{{
		name: "more than 65536 in a millisecond",
		they: "lets the sequence wrap: 65,540 calls on a stopped clock returned 65,536 different IDs",
		firn: "continues in the next millisecond as far as MaxAhead allows, and returns an error beyond that",
		test: func(t *testing.T) {
			clock := clockAt(atMilli(midday))
			ids, err := drain(gen128{boundary(t, granted(9), clock.now, time.Second)}, 65_540)
			if err != nil || len(ids) != 65_540 {
				t.Errorf("%d IDs, then %v, want 65540", len(ids), err)
			}
			unique(t, l, ids)
			ids, err = drain(gen128{boundary(t, granted(9), clock.now, 0)}, 65_540)
			wantWait(t, "ID 65537 of a millisecond", err, time.Millisecond)
			wantSequences(t, l, ids, 9, 65_536)
			for _, ahead := range []time.Duration{0, time.Second} {
				b, hold, err := boundary(t, granted(9), clock.now, ahead).Reserve(65_540)
				if err != nil || b.Len() != 65_540 || hold != max(0, time.Millisecond-ahead) {
					t.Fatalf("Reserve(65540), MaxAhead %v: %d IDs, hold %v, %v", ahead, b.Len(), hold, err)
				}
				unique(t, l, batchOf128(b).ids)
			}
		},
	}, {
		name: "clock runs backwards",
		they: "refuses until the clock has caught up, but forgets that at a restart and then repeats IDs",
		firn: "returns a *ClockError, later continues where it was, and a new generator begins where its grant does",
		test: func(t *testing.T) {
			clock := clockAt(atMilli(midday))
			g := boundary(t, granted(9), clock.now, 0)
			ids, _ := drain(gen128{g}, 10)
			clock.add(-500 * time.Millisecond)
			_, err := g.TryNext()
			wantBack(t, "TryNext half a second back", err, 500*time.Millisecond)
			clock.add(500 * time.Millisecond)
			more, err := drain(gen128{g}, 10)
			if err != nil {
				t.Error(err)
			}
			end := g.Seal()
			clock.add(-500 * time.Millisecond)
			g = boundary(t, firn.Grant{Node: 9, From: end}, clock.now, 0)
			_, err = g.TryNext()
			wantWait(t, "TryNext of a new generator half a second back", err, 501*time.Millisecond)
			clock.set(end)
			last, err := drain(gen128{g}, 10)
			if err != nil {
				t.Error(err)
			}
			wantSequences(t, l, slices.Concat(ids, more), 9, 20)
			unique(t, l, slices.Concat(ids, more, last))
		},
	}, {
		name: "restart in the same millisecond",
		they: "returns the same sequence numbers again after a crash",
		firn: "begins after everything that the previous one may have made",
		test: inBubble(func(t *testing.T) {
			var ids []wideID
			for range 5 {
				g := boundary(t, firn.StaticGrant(9), time.Now, 3*time.Millisecond)
				some, err := gen128{g}.fill(t.Context(), 100_000)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, some...)
			}
			unique(t, l, ids)
		}),
	}})
}

func TestDefectsOfLable(t *testing.T) {
	modes := []string{"lable,cluster=3", "lable,mode=time-sequential,cluster=3"}
	l := firn.MustParseLayout("lable")
	runDefects(t, []defect{{
		name: "clock goes back",
		they: "sets the sequence to 0 whenever the clock has changed: at 100, 101, 100, 101 it makes two IDs twice",
		firn: "returns an error at the earlier time, or continues ahead of it as far as MaxAhead allows",
		test: func(t *testing.T) {
			for _, mode := range modes {
				for _, ahead := range []time.Duration{0, 10 * time.Millisecond} {
					l := firn.MustParseLayout(mode)
					clock := clockAt(atMilli(0))
					g := generate(t, mode, granted(300), clock.now, ahead)
					var ids []wideID
					for i, ms := range []int64{100, 101, 100, 101} {
						clock.set(atMilli(ms))
						id, err := g.TryNext()
						if i == 2 && ahead == 0 {
							wantBack(t, mode+" at 100 after 101", err, time.Millisecond)
							continue
						}
						if err != nil {
							t.Errorf("%s at %d: %v", mode, ms, err)
						}
						ids = append(ids, wideOf(id))
					}
					unique(t, l, ids)
				}
			}
		},
	}, {
		name: "old time with a new number",
		they: "reads the clock before it asks for its number, so an ID can have a time at which another process owned the number",
		firn: "checks every ID against the grant under which it is made, even if the grant changes while the call waits",
		test: inBubble(func(t *testing.T) {
			for _, mode := range modes {
				g := generate(t, mode, firn.Grant{Node: 3, From: time.Now(), Until: time.Now().Add(time.Hour)}, time.Now, 0)
				drain64(g, 64) // so that the next call waits
				from := time.Now().Add(300*time.Second + 100*time.Microsecond)
				done := make(chan firn.ID)
				go func() {
					id, err := g.Next(t.Context())
					if err != nil {
						t.Errorf("%s: Next(): %v", mode, err)
					}
					done <- id
				}()
				synctest.Wait()
				if err := g.Switch(firn.Grant{Node: 9, From: from}); err != nil {
					t.Fatal(err)
				}
				p := decompose(t, firn.MustParseLayout(mode), wideOf(<-done))
				if p.Node != 9 || p.Time.Before(from) {
					t.Errorf("%s: the ID has node %d and the time %v, want node 9 from %v on", mode, p.Node, p.Time, from)
				}
			}
		}),
	}, {
		name: "batch that fails half-way",
		they: "loses the IDs made so far, and lets other calls take IDs in between",
		firn: "takes a batch's slots at once or not at all",
		test: func(t *testing.T) {
			clock := clockAt(atMilli(midday))
			g := generate(t, "lable", firn.Grant{Node: 1, From: atMilli(midday), Until: atMilli(midday + 2)}, clock.now, time.Second)
			if b, _, err := g.Reserve(129); !errors.Is(err, firn.ErrGrantOver) || b.Len() != 0 {
				t.Errorf("Reserve(129) where 128 are left = %d IDs, %v, want ErrGrantOver", b.Len(), err)
			}
			if b, err := g.NextBatch(t.Context(), 129); !errors.Is(err, firn.ErrGrantOver) || b.Len() != 0 {
				t.Errorf("NextBatch(129) where 128 are left = %d IDs, %v, want ErrGrantOver", b.Len(), err)
			}
			b, _, err := g.Reserve(128)
			if err != nil {
				t.Fatalf("Reserve(128) where 128 are left: %v", err)
			}
			ids := batchOf(b).ids
			wantSequences(t, l, ids[:64], 1, 64)
			wantSequences(t, l, ids[64:], 1, 64)
		},
	}, {
		name: "paused process",
		they: "keeps using an expired claim until its connection notices",
		firn: "checks the end of its grant for every ID",
		test: func(t *testing.T) {
			clock := clockAt(atMilli(midday))
			g := generate(t, "lable", firn.Grant{Node: 1, From: atMilli(midday), Until: atMilli(midday + 5000)}, clock.now, 0)
			if _, err := g.TryNext(); err != nil {
				t.Error(err)
			}
			clock.add(5 * time.Second) // the process was suspended
			if id, err := g.TryNext(); !errors.Is(err, firn.ErrGrantOver) {
				t.Errorf("TryNext() at the end of the grant = %v, %v, want ErrGrantOver", id, err)
			}
			if err := g.Extend(atMilli(midday + 9000)); err != nil {
				t.Error(err)
			}
			if id, err := g.TryNext(); err != nil || decompose(t, l, wideOf(id)).Seq != 0 {
				t.Errorf("TryNext() of the longer grant = %v, %v", id, err)
			}
		},
	}})
}
