package firn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
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

// few checks that a waiting call reads the clock only a few times.
func few(t *testing.T, what string, readings *atomic.Int64, call func() error) {
	t.Helper()
	before := readings.Load()
	if err := call(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if n := readings.Load() - before; n > 8 {
		t.Errorf("%s read the clock %d times", what, n)
	}
}

func TestDefectsOfFlakeIDGen(t *testing.T) {
	l := firn.MustParseLayout("flake-idgen")
	runDefects(t, []defect{{
		name: "masked id",
		they: "cuts an id to ten bits and turns text into numbers: 1024 is 0, -1 is 1023, 'abc' is 0",
		firn: "refuses a node that does not fit, or is not a number",
		test: func(t *testing.T) {
			for _, node := range []uint64{1024, 4294967301, math.MaxUint64} {
				_, err := firn.NewGenerator(l, firn.StaticGrant(node), nil)
				wantRangeError(t, fmt.Sprintf("NewGenerator for node %d", node), err, "node")
				_, err = l.Compose(firn.Parts{Time: atMilli(midday), Node: node})
				wantRangeError(t, fmt.Sprintf("Compose for node %d", node), err, "node")
				_, err = l.ParseNode(fmt.Sprint(node))
				wantRangeError(t, fmt.Sprintf("ParseNode(%d)", node), err, "node")
			}
			wantBadTexts(t, "ParseNode", l.ParseNode, "-1", "abc", "", "1.9", "true", "0x10", " 5", "[7]", "NaN", "1e3")
		},
	}, {
		name: "masked datacenter",
		they: "cuts datacenter and worker to five bits, so 32 is 0, and drops both if there is an id",
		firn: "refuses a piece that does not fit, or is given twice, or beside a number",
		test: func(t *testing.T) {
			wantBadTexts(t, "ParseNode", l.ParseNode, "datacenter=32", "worker=33", "datacenter=-1", "worker=x", "worker=",
				"5,datacenter=1", "datacenter=1,5", "datacenter=1,datacenter=1", "shard=1")
			if got, err := l.ParseNode("datacenter=9,worker=7"); err != nil || got != 295 {
				t.Errorf("ParseNode(datacenter=9,worker=7) = %d, %v, want 295", got, err)
			}
		},
	}, {
		name: "epoch that is not a number",
		they: "takes an epoch of 'abc' or NaN for 0",
		firn: "refuses it",
		test: func(t *testing.T) {
			wantBadTexts(t, "ParseLayout", firn.ParseLayout, "flake-idgen,epoch=abc", "flake-idgen,epoch=NaN", "flake-idgen,epoch=", "flake-idgen,epoch=true", "flake-idgen,epoch=1e12")
		},
	}, {
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
		name: "first millisecond",
		they: "begins with 1 if the time since the epoch is 0",
		firn: "begins with 0 in every millisecond, except for the one number that would make the ID 0",
		test: func(t *testing.T) {
			l := firn.MustParseLayout(fmt.Sprintf("flake-idgen,epoch=%d", int64(midday)))
			g := generate(t, l.String(), granted(1), clockAt(l.Epoch()).now, 0)
			ids, _ := drain64(g, 5000)
			wantSequences(t, l, ids, 1, 4096)
			g = generate(t, l.String(), granted(0), clockAt(l.Epoch()).now, 0)
			if ids, _ = drain64(g, 5000); len(ids) != 4095 || ids[0] != (wideID{0, 1}) {
				t.Errorf("node 0 has %d IDs in the first millisecond, from %v on, want 4095 from 1 on", len(ids), ids[0])
			}
		},
	}, {
		name: "epoch in the future",
		they: "reports that the clock moved backwards",
		firn: "reports at once that the clock is before the epoch, even if it may wait",
		test: func(t *testing.T) {
			g := generate(t, fmt.Sprintf("flake-idgen,epoch=%d", int64(midday+7)), firn.StaticGrant(1), clockAt(atMilli(midday)).now, 0)
			for range 2 {
				_, err := g.Next(t.Context())
				var fault *firn.ClockError
				if !errors.As(err, &fault) || !errors.Is(err, firn.ErrBeforeEpoch) || fault.Wait != 7*time.Millisecond {
					t.Errorf("Next() 7 ms before the epoch: %v, want a *ClockError that matches ErrBeforeEpoch", err)
				}
			}
		},
	}, {
		name: "waiting on a clock that went back",
		they: "throws ReferenceError from next(cb), and never calls back",
		firn: "waits in Next until the clock has caught up",
		test: inBubble(func(t *testing.T) {
			clock := new(shiftedClock)
			g := generate(t, "flake-idgen", granted(1), clock.now, 0)
			before, err := g.TryNext()
			if err != nil {
				t.Fatal(err)
			}
			clock.shift(-5 * time.Second)
			_, err = g.TryNext()
			wantBack(t, "TryNext 5 s back", err, 5*time.Second)
			start := time.Now()
			id, err := g.Next(t.Context())
			if err != nil || id <= before {
				t.Errorf("Next() = %v, %v, after %v", id, err, before)
			}
			wantElapsed(t, "Next 5 s back", start, 5*time.Second)
		}),
	}, {
		name: "clock goes back during a wait",
		they: "throws from a timer, which ends the process",
		firn: "keeps waiting",
		test: inBubble(func(t *testing.T) {
			clock := new(shiftedClock)
			g := generate(t, "flake-idgen", granted(1), clock.now, 0)
			ids, _ := drain64(g, 4096)
			start := time.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				id, err := g.Next(t.Context())
				if err != nil || wideOf(id).compare(ids[4095]) <= 0 {
					t.Errorf("Next() = %v, %v, after %v", id, err, ids[4095])
				}
			}()
			synctest.Wait()
			clock.shift(-2 * time.Second)
			<-done
			wantElapsed(t, "Next", start, 2*time.Second+time.Millisecond)
		}),
	}, {
		name: "overflow",
		they: "throws without a callback, and does not report when to retry",
		firn: "reports to the nanosecond how long to wait; Next waits exactly that long",
		test: inBubble(func(t *testing.T) {
			time.Sleep(250 * time.Microsecond)
			g := generate(t, "flake-idgen", granted(1), time.Now, 0)
			if ids, _ := drain64(g, 4096); len(ids) != 4096 {
				t.Fatalf("%d IDs in a millisecond, want 4096", len(ids))
			}
			_, err := g.TryNext()
			wantWait(t, "TryNext", err, 750*time.Microsecond)
			start := time.Now()
			if _, err := g.Next(t.Context()); err != nil {
				t.Error(err)
			}
			wantElapsed(t, "Next", start, 750*time.Microsecond)
		}),
	}, {
		name: "fractional clock",
		they: "treats 100.25 and 100.75 ms as two times, and makes the same ID at both",
		firn: "counts both as millisecond 100",
		test: func(t *testing.T) {
			clock := clockAt(atMilli(100).Add(250 * time.Microsecond))
			g := generate(t, "flake-idgen", granted(1), clock.now, 0)
			a, _ := g.TryNext()
			clock.add(500 * time.Microsecond)
			b, err := g.TryNext()
			if err != nil || b != a+1 {
				t.Errorf("IDs at 100.25 and 100.75 ms: %v and %v, %v, want neighbours", a, b, err)
			}
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
	}, {
		name: "no way back from an ID",
		they: "cannot return the datacenter and worker of an ID, which its users asked for",
		firn: "decomposes IDs, and names the parts of the node",
		test: func(t *testing.T) {
			p, err := l.Decompose(5828128208445124608) // from its own README
			if err != nil || p.Time.UnixMilli() != 1389534046279 || p.Seq != 0 {
				t.Errorf("Decompose(5828128208445124608) = %+v, %v, want 1389534046279 ms", p, err)
			}
			want := []firn.NodePart{{Name: "datacenter", Value: 7}, {Name: "worker", Value: 3}}
			if got := l.NodeParts(p.Node); !slices.Equal(got, want) {
				t.Errorf("NodeParts(%d) = %v, want %v", p.Node, got, want)
			}
		},
	}, {
		name: "numbers in JavaScript",
		they: "makes IDs that JavaScript's numbers round, and so seem to repeat",
		firn: "writes IDs as JSON strings, and has a layout whose last ID is exact in a number",
		test: func(t *testing.T) {
			if got, err := json.Marshal(firn.ID(1<<53 + 1)); err != nil || string(got) != `"9007199254740993"` {
				t.Errorf("json.Marshal(2^53+1) = %s, %v", got, err)
			}
			l := firn.MustParseLayout("js53")
			last, err := l.Compose(firn.Parts{Time: l.Last(), Node: l.MaxNode(), Seq: l.MaxSeq()})
			if err != nil || last != 1<<53-1 {
				t.Errorf("the last ID of js53 = %v, %v, want 2^53-1", last, err)
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
		name: "bad base",
		they: "crashes its server on {get, 99}, repeats IDs after that, and ends the application at the eleventh time",
		firn: "returns an error without calling the generator",
		test: func(t *testing.T) {
			g := boundary(t, granted(9), clockAt(atMilli(midday)).now, 0)
			before, _ := g.TryNext()
			for range 11 {
				wantBadTexts(t, "ParseFormat", firn.ParseFormat, "flake99", "flake63", "flake1", "flake0", "flake-1", "base63", "base1", "base10.0", "abc", "62")
			}
			after, err := g.TryNext()
			if _, lo := before.Uint64s(); err != nil || after != firn.ID128FromUint64s(midday, lo+1) {
				t.Errorf("TryNext() = %v, %v, after %v", after, err, before)
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
		name: "fields are cut",
		they: "truncates time, worker and sequence without an error",
		firn: "names the field that does not fit",
		test: func(t *testing.T) {
			_, err := l.Compose128(firn.Parts{Time: atMilli(midday), Node: 1 << 48})
			wantRangeError(t, "Compose128 for node 2^48", err, "node")
			_, err = l.Compose128(firn.Parts{Time: atMilli(midday), Seq: 1 << 16})
			wantRangeError(t, "Compose128 for sequence 2^16", err, "sequence")
			_, err = l.Compose128(firn.Parts{Time: atMilli(-1)})
			wantRangeError(t, "Compose128 before 1970", err, "time")
			_, err = firn.NewGenerator128(l, firn.StaticGrant(1<<48), nil)
			wantRangeError(t, "NewGenerator128 for node 2^48", err, "node")
		},
	}, {
		name: "MAC address",
		they: "takes the first interface with any address, software-assigned ones too, 0 for lo, and crashes on an address of another length",
		firn: "takes the 48-bit address of the named card, and reports why it refuses others",
		test: testMAC,
	}, {
		name: "first sequence",
		they: "never uses sequence 0 in the millisecond in which it starts",
		firn: "begins with 0",
		test: func(t *testing.T) {
			g := boundary(t, granted(9), clockAt(atMilli(midday)).now, 0)
			id, err := g.TryNext()
			if want := (firn.Parts{Time: atMilli(midday), Node: 9}); err != nil || decompose(t, l, wideOf128(id)) != want {
				t.Errorf("TryNext() = %+v, %v, want %+v", decompose(t, l, wideOf128(id)), err, want)
			}
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
	}, {
		name: "start in a faulty state",
		they: "answers an unknown request with ok, and with its default settings can never start",
		firn: "cannot start in a state that makes no IDs: a zero Layout and an empty grant are errors",
		test: func(t *testing.T) {
			if _, err := firn.NewGenerator128(firn.Layout{}, granted(9), nil); err == nil {
				t.Error("NewGenerator128 of the zero Layout: no error")
			}
			at := atMilli(midday)
			if _, err := firn.NewGenerator128(l, firn.Grant{Node: 9, From: at, Until: at}, nil); err == nil {
				t.Error("NewGenerator128 of an empty grant: no error")
			}
			if _, err := firn.NewGenerator128(l, granted(9), &firn.Options{MaxAhead: -1}); err == nil {
				t.Error("NewGenerator128 with a negative MaxAhead: no error")
			}
		},
	}})
}

// testMAC compares NodeFromInterface with the rules, on the interfaces of this
// machine.
func testMAC(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Skip(err)
	}
	l := firn.MustParseLayout("boundary")
	for _, allowLocal := range []bool{false, true} {
		var first uint64
		for _, i := range interfaces {
			var want uint64
			mac := i.HardwareAddr
			for _, b := range mac {
				want = want<<8 | uint64(b)
			}
			good := len(mac) == 6 && want != 0 && mac[0]&1 == 0 && (allowLocal || mac[0]&2 == 0)
			got, err := firn.NodeFromInterface(i.Name, allowLocal)
			if good != (err == nil) || good && (got != want || got > l.MaxNode()) {
				t.Errorf("NodeFromInterface(%q, %v) with %v = %#x, %v", i.Name, allowLocal, mac, got, err)
			}
			if good && first == 0 {
				first = want
			}
		}
		if got, err := firn.NodeFromInterface("", allowLocal); got != first || (err == nil) != (first != 0) {
			t.Errorf("NodeFromInterface(\"\", %v) = %#x, %v, want %#x", allowLocal, got, err, first)
		}
		if got, err := firn.NodeFromInterface("no such interface", allowLocal); err == nil {
			t.Errorf("NodeFromInterface(\"no such interface\") = %#x, want an error", got)
		}
	}
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
		name: "sequence above 63",
		they: "gives up after twelve milliseconds if the clock has stopped",
		firn: "makes 64 IDs, then waits as long as its context allows",
		test: inBubble(func(t *testing.T) {
			_, err := l.Compose(firn.Parts{Time: atMilli(midday), Seq: 64})
			wantRangeError(t, "Compose for sequence 64", err, "sequence")
			for _, mode := range modes {
				clock := clockAt(atMilli(midday))
				g := generate(t, mode, granted(300), clock.now, 0)
				ids, err := drain64(g, 65)
				wantWait(t, mode+": ID 65 of a millisecond", err, time.Millisecond)
				wantSequences(t, firn.MustParseLayout(mode), ids, 300, 64)

				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				if id, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: Next() on a clock that stands = %v, %v, want DeadlineExceeded", mode, id, err)
				}
				cancel()
				wantElapsed(t, "Next", start, 5*time.Second)
				time.AfterFunc(3*time.Second, func() { clock.add(time.Millisecond) })
				if _, err := g.Next(t.Context()); err != nil {
					t.Errorf("%s: Next() on a clock that goes on after 3 s: %v", mode, err)
				}
			}
		}),
	}, {
		name: "interrupted wait",
		they: "reports that the sequence is invalid",
		firn: "returns the context's error, and takes nothing",
		test: inBubble(func(t *testing.T) {
			clock := clockAt(atMilli(midday))
			g := generate(t, "lable", granted(1), clock.now, 0)
			drain64(g, 64)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if id, err := g.Next(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Next() = %v, %v, want Canceled", id, err)
			}
			clock.add(time.Millisecond)
			id, err := g.TryNext()
			if p := decompose(t, l, wideOf(id)); err != nil || p.Seq != 0 || !p.Time.Equal(clock.now()) {
				t.Errorf("TryNext() = %+v, %v, want sequence 0 of the next millisecond", p, err)
			}
		}),
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
		name: "numbers out of range",
		they: "accepts clusters like 99 and -3, and fails when it makes an ID",
		firn: "refuses them when the layout is read, and the other fields when they are used",
		test: func(t *testing.T) {
			wantBadTexts(t, "ParseLayout", firn.ParseLayout, "lable,cluster=16", "lable,cluster=99", "lable,cluster=-3", "lable,cluster=1.5",
				"lable,cluster=12,,13", "lable,cluster= 7", "lable,cluster=", "lable,mode=", "lable,mode=SPREAD", "lable,mode=null")
			for name, p := range map[string]firn.Parts{
				"node":     {Time: atMilli(midday), Node: 2048},
				"sequence": {Time: atMilli(midday), Seq: 64},
				"time":     {Time: atMilli(1 << 42)},
			} {
				for _, mode := range modes {
					_, err := firn.MustParseLayout(mode).Compose(p)
					wantRangeError(t, fmt.Sprintf("%s: Compose(%+v)", mode, p), err, name)
				}
			}
			_, err := firn.NewGenerator(l, firn.StaticGrant(2048), nil)
			wantRangeError(t, "NewGenerator for node 2048", err, "node")
		},
	}, {
		name: "batch of less than one",
		they: "returns an empty batch for -1, and its stack of IDs, which refills itself, recurses without end for batches of 0",
		firn: "returns an error, and takes nothing; a prefetcher cannot be made with such a size",
		test: func(t *testing.T) {
			g := generate(t, "lable", granted(1), clockAt(atMilli(midday)).now, 0)
			for _, n := range []int{-1, 0, math.MinInt} {
				if b, _, err := g.Reserve(n); err == nil || b.Len() != 0 {
					t.Errorf("Reserve(%d) = %d IDs, %v, want an error", n, b.Len(), err)
				}
				if b, err := g.NextBatch(t.Context(), n); err == nil || b.Len() != 0 {
					t.Errorf("NextBatch(%d) = %d IDs, %v, want an error", n, b.Len(), err)
				}
				func() {
					defer func() {
						if said := fmt.Sprint(recover()); !strings.Contains(said, fmt.Sprint(n)) {
							t.Errorf("NewPrefetcher(%d) panics with %q, want a sentence with the number", n, said)
						}
					}()
					firn.NewPrefetcher(g, n, 0)
				}()
			}
			if err := g.Fill(t.Context(), nil); err != nil {
				t.Errorf("Fill of no IDs: %v", err)
			}
			if made := g.Stats().IDs; made != 0 {
				t.Errorf("%d IDs were made, want 0", made)
			}
		},
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
		name: "use after close",
		they: "takes a new number after close, and never gives it back; its stack still hands out IDs",
		firn: "returns ErrSealed from every call",
		test: func(t *testing.T) {
			g := generate(t, "lable", granted(1), clockAt(atMilli(midday)).now, 0)
			g.Seal()
			_, err1 := g.TryNext()
			_, err2 := g.Next(t.Context())
			_, _, err3 := g.Reserve(1)
			_, err4 := g.NextBatch(t.Context(), 1)
			err5 := g.Fill(t.Context(), make([]firn.ID, 1))
			err6 := g.Extend(time.Time{})
			err7 := g.Switch(granted(2))
			for i, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
				if !errors.Is(err, firn.ErrSealed) {
					t.Errorf("call %d after Seal: %v, want ErrSealed", i+1, err)
				}
			}
		},
	}, {
		name: "wrong mode",
		they: "returns the generator of the mode that was asked for first",
		firn: "has the mode in the layout, and refuses to read an ID of the other mode",
		test: func(t *testing.T) {
			for i, mode := range modes {
				g := generate(t, mode, granted(1), clockAt(atMilli(midday)).now, 0)
				id, err := g.TryNext()
				if err != nil {
					t.Fatal(err)
				}
				if p, err := firn.MustParseLayout(modes[1-i]).Decompose(id); err == nil {
					t.Errorf("Decompose(%v) of %s by %s = %+v, want an error", id, mode, modes[1-i], p)
				}
			}
		},
	}, {
		name: "time zero",
		they: "begins with 1 at time 0",
		firn: "begins with 0, unless that would be the ID 0",
		test: func(t *testing.T) {
			for _, c := range []struct {
				layout string
				node   uint64
				want   uint64
			}{{"lable", 0, 1}, {"lable", 1, 0}, {"lable,cluster=1", 0, 0}, {"lable,mode=time-sequential", 0, 0}} {
				g := generate(t, c.layout, firn.Grant{Node: c.node, From: time.Unix(-1, 0)}, clockAt(atMilli(0)).now, 0)
				id, err := g.TryNext()
				if p := decompose(t, firn.MustParseLayout(c.layout), wideOf(id)); err != nil || id == 0 || p.Seq != c.want {
					t.Errorf("%s, node %d at time 0: TryNext() = %v, %v, want sequence %d", c.layout, c.node, id, err, c.want)
				}
			}
		},
	}, {
		name: "bytes of another length",
		they: "parses exactly 8 bytes, and throws otherwise",
		firn: "does the same, with an error",
		test: func(t *testing.T) {
			for _, b := range [][]byte{nil, {}, make([]byte, 7), make([]byte, 9), make([]byte, 16)} {
				if p, err := l.DecomposeBytes(b); err == nil {
					t.Errorf("DecomposeBytes of %d bytes = %+v, want an error", len(b), p)
				}
			}
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
