package firn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/freshness"
	"github.com/firnid/firn/internal/test/must"
)

// noon is the initial time of most tests' clocks.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A handClock is a clock that a test sets. hook, if set, runs at each reading.
type handClock struct {
	mu   sync.Mutex
	t    time.Time
	hook func()
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	t, hook := c.t, c.hook
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	return t
}

func (c *handClock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

func (c *handClock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// newGenerator returns a generator. Its arguments must be valid.
func newGenerator(t testing.TB, l Layout, grant Grant, o *Options) *Generator {
	t.Helper()
	return must.Get(NewGenerator(l, grant, o))(t)
}

// exact is the layout default with ticks that begin at sequence number 0.
const exact = "default,even=0"

// newAtNoon makes a generator whose grant begins when its clock does.
func newAtNoon(t *testing.T, layout string, o Options) (*Generator, *handClock) {
	t.Helper()
	clock := &handClock{t: noon}
	o.Now = clock.Now
	g := newGenerator(t, MustParseLayout(layout), Grant{Node: 5, From: noon}, &o)
	return g, clock
}

func mustNext(t *testing.T, g *Generator) (ID, Parts) {
	t.Helper()
	id, err := g.TryNext()
	if err != nil {
		t.Fatalf("TryNext: %v", err)
	}
	p := must.Get(g.layout.Decompose(id))(t)
	return id, p
}

// wantDistinct wants no ID twice. It sorts them.
func wantDistinct(t *testing.T, what string, ids []ID) {
	t.Helper()
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) || n > 0 && ids[0] == 0 {
		t.Errorf("%s: %d different IDs, want %d, and no 0", what, n, len(ids))
	}
}

func wantParts(t *testing.T, got Parts, at time.Time, node, seq uint64) {
	t.Helper()
	if want := (Parts{at, node, seq}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// synctestNow moves a bubble's clock, which begins in the year 2000, to noon.
func synctestNow() { time.Sleep(time.Until(noon)) }

func TestWordHas63Bits(t *testing.T) {
	for _, test := range []struct{ layout, want string }{
		{"bits=time:48.node:48.seq:32", "31 for ticks of 1ms, which end in 1970"},
		{"bits=time:20.seq:43,unit=1ms", ""},
		{"bits=time:30.seq:34,unit=1ms", "29 for ticks"},
		{"boundary", ""},
		{"mastodon", ""},
		{"bits=time~:53.seq:11", "must fit as a whole: use at most 63 bits"}, // cut to 52 bits, the reversed time would lie elsewhere
		{"bits=time:53.seq:11", ""}, // ends in the year 144680, the layout twice as late
		{"xid", "96 bits"},
		{"ksuid", "160 bits"},
	} {
		l := MustParseLayout(test.layout)
		_, err := NewGenerator(l, StaticGrant(0), nil)
		if l.Bits() == 128 {
			_, err = NewGenerator128(l, StaticGrant(0), nil)
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("NewGenerator(%s): got %v, want an error with %q", test.layout, err, test.want)
		}
	}
	if _, err := NewGenerator(Layout{}, StaticGrant(0), nil); err == nil {
		t.Error("NewGenerator took the zero Layout")
	}
	if _, err := NewGenerator(MustParseLayout("boundary"), StaticGrant(0), nil); err == nil || !strings.Contains(err.Error(), "NewGenerator128") {
		t.Errorf("NewGenerator(boundary): got %v, want an error that names NewGenerator128", err)
	}
}

// A clock that stands still just before the next tick does not make a waiting
// call spin.
func TestWaitingDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readings int
		now := noon.Add(time.Millisecond - 1)
		g := newGenerator(t, Default(), Grant{Node: 5, From: noon}, &Options{Now: func() time.Time { readings++; return now }})
		must.Do(t, g.Fill(t.Context(), make([]ID, 4096)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		readings = 0
		if _, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || readings > 110 {
			t.Errorf("got %v after %d readings of the clock in 1ms, want at most one in 10µs", err, readings)
		}
	})
}

func TestNoIDIsZero(t *testing.T) {
	// An epoch of now: tick 0. Node 0 and sequence 0 would give the ID 0.
	for _, layout := range []string{"default", "hazelcast", "bits=time:41.node:22", "lable"} {
		l := MustParseLayout(layout).WithEpoch(noon)
		clock := &handClock{t: noon}
		for _, grant := range []Grant{{Node: 0, From: noon}, {Node: 0, From: noon.Add(-time.Hour)}, StaticGrant(0)} {
			g := newGenerator(t, l, grant, &Options{Now: clock.Now})
			b, _, err := g.Reserve(3)
			if err != nil {
				t.Fatal(err)
			}
			if ids := slices.Collect(b.All()); ids[0] == 0 || len(ids) != 3 {
				t.Errorf("%s, %v: got %v, want no 0", layout, grant, ids)
			}
		}
	}
	// Node 1 has the whole tick.
	g, _ := NewGenerator(MustParseLayout(exact).WithEpoch(noon), Grant{Node: 1, From: noon}, &Options{Now: func() time.Time { return noon }})
	_, p := mustNext(t, g)
	wantParts(t, p, noon, 1, 0)
}

// A process that is restarted immediately repeats nothing, even after a burst.
func TestQuickRestartOfAStaticNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synctestNow()
		var all []ID
		for life := range 5 {
			g := newGenerator(t, MustParseLayout("hazelcast"), StaticGrant(9), &Options{MaxAhead: 100 * time.Millisecond})
			ids := make([]ID, 64*105*(life%2)+10)
			must.Do(t, g.Fill(t.Context(), ids))
			// A batch beyond MaxAhead, a reservation that is held as required,
			// and one that is abandoned with the process.
			for _, size := range []int{1, 64 * 250} {
				b := must.Get(g.NextBatch(t.Context(), size))(t)
				ids = slices.AppendSeq(ids, b.All())
			}
			b, hold, err := g.Reserve(64 * 150)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(hold)
			ids = slices.AppendSeq(ids, b.All())
			if s := g.Stats(); s.Lead > 100*time.Millisecond {
				t.Errorf("life %d: the last ID leads the clock by %v", life, s.Lead)
			}
			all = append(all, ids...)
			wantDistinct(t, fmt.Sprintf("life %d", life), all)
			if _, _, err := g.Reserve(64 * 10_000); err != nil {
				t.Fatal(err)
			}
			ended, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if id, err := g.Next(ended); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("life %d: %v, %v behind the reservation, want the deadline", life, id, err)
			}
			cancel()
		}
	})
}

// TestRefusedReserve: a reservation that another call prevents leaves no trace:
// a clock that goes back afterwards is reported as such.
func TestRefusedReserve(t *testing.T) {
	l := MustParseLayout("bits=time:40.node:4.seq:4,unit=1s")
	clock := &handClock{t: noon}
	g := newGenerator(t, l, Grant{Node: 1, From: noon, Until: noon.Add(20 * time.Second)}, &Options{Now: clock.Now})
	clock.hook = func() { // after Reserve has read the word
		clock.hook = nil
		must.Get(g.TryNext())(t)
	}
	if _, hold, err := g.Reserve(20 * 16); !errors.Is(err, ErrGrantOver) || hold != 0 {
		t.Errorf("a reservation of the whole grant after an ID: hold %v, %v", hold, err)
	}
	clock.Set(noon.Add(15 * time.Second))
	must.Get(g.TryNext())(t)
	clock.Set(noon.Add(time.Second))
	_, err := g.TryNext()
	if _, is := errors.AsType[*ClockError](err); !is {
		t.Errorf("after the clock went back: %v", err)
	}
}

// TestStaticFirstSlot: a static term has one first slot, that of the first call
// that has read the clock. Until a call has taken a slot nothing is used, even
// if that call is interrupted before it has moved the word.
func TestStaticFirstSlot(t *testing.T) {
	clock := &handClock{t: noon}
	g := newGenerator(t, MustParseLayout("default,even=0"), StaticGrant(1), &Options{Now: clock.Now})
	first := uint64(noon.Sub(g.layout.Epoch()).Milliseconds()) << 12
	g.term.Load().staticFirst.Store(first) // by a call that is interrupted now
	if used := g.Used(); !used.IsZero() {
		t.Errorf("used %v before the first ID", used)
	}
	clock.Set(noon.Add(time.Hour))
	id := must.Get(g.TryNext())(t)
	if got := g.term.Load().staticFirst.Load(); got != first {
		t.Errorf("first slot %d, want %d: it was chosen twice", got, first)
	}
	if got := must.Get(g.layout.Decompose(id))(t); !got.Time.Equal(noon.Add(time.Hour)) {
		t.Errorf("the first ID has the time %v, want that of the clock", got.Time)
	}
}

// TestStaticReference: a generator with a static grant begins MaxAhead and a
// tick after its reference. If the clock was set back since, it says so, and
// does not wait for longer than MaxLag.
func TestStaticReference(t *testing.T) {
	const ms = time.Millisecond
	ref := time.Now() // with a monotonic part, as the system's clock has
	ref = ref.Add(ref.Truncate(ms).Sub(ref))
	open := func(now func() time.Time) *Generator {
		g := newGenerator(t, MustParseLayout("default,epoch=0"), StaticGrant(5), nil)
		g.tracker, g.now = freshness.Tracker{}, now
		g.term.Load().reference = ref
		return g
	}
	for _, test := range []struct {
		clock time.Duration // from the reference
		first time.Duration // the first ID, from the reference
		wait  time.Duration // or until then
		back  bool          // with a *ClockError
	}{
		{time.Hour, time.Hour, 0, false},
		{7 * ms, 7 * ms, 0, false},
		{2 * ms, 6 * ms, 0, false},
		{ms, 6 * ms, 0, false},
		{ms - 1, 0, 1, false},
		{0, 0, ms, false},
		{-1, 0, ms + 1, true},
		{-time.Hour, 0, time.Hour + ms, true},
	} {
		g := open(func() time.Time { return ref.Add(test.clock) })
		var wait *WaitError
		var back *ClockError
		switch _, err := g.TryNext(); {
		case test.wait == 0:
			if used, want := g.Used(), ref.Add(test.first+ms); err != nil || !used.Equal(want) {
				t.Errorf("clock %v after the reference: used until %v, %v, want %v", test.clock, used, err, want)
			}
		case test.back:
			last := ref.Add(5 * ms)
			if !errors.As(err, &back) || back.Wait != test.wait || !back.Last.Equal(last) {
				t.Errorf("clock %v after the reference: %v, want a ClockError of %v, with %v as the last time", test.clock, err, test.wait, last)
			}
			if test.clock < -defaultMaxLag {
				if _, err := g.Next(t.Context()); !errors.As(err, &back) {
					t.Errorf("Next with the clock %v after the reference: %v, want a ClockError", test.clock, err)
				}
			}
		default:
			if !errors.As(err, &wait) || wait.Wait != test.wait {
				t.Errorf("clock %v after the reference: %v, want a WaitError of %v", test.clock, err, test.wait)
			}
		}
	}

	// In a bubble, which begins decades earlier, it is the first call.
	synctest.Test(t, func(t *testing.T) {
		g := open(time.Now)
		begin := time.Now()
		if _, err := g.Next(t.Context()); err != nil || time.Since(begin) != ms {
			t.Errorf("the first ID in a bubble: %v after %v, want 1ms", err, time.Since(begin))
		}
	})

	// One generator of a process has the start of the process, and later ones
	// begin when they are made.
	startUsed.Store(false)
	for _, want := range []bool{true, false} {
		made := time.Now()
		ref := newGenerator(t, Default(), StaticGrant(5), nil).term.Load().reference
		if (ref == processStart) != want || !want && ref.Before(made) {
			t.Errorf("a generator made at %v begins after %v, want the start of the process: %t", made, ref, want)
		}
	}
	startUsed.Store(false)
	var firsts atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if newReference() == processStart {
				firsts.Add(1)
			}
		})
	}
	all.Wait()
	if n := firsts.Load(); n != 1 {
		t.Errorf("%d generators begin after the start of the process, want 1", n)
	}
}

// Next waits for a clock that went back by up to MaxLag, and notices within a
// second if it is corrected.
func TestBackwardClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synctestNow()
		var step atomic.Int64 // added to the bubble's clock, in nanoseconds
		now := func() time.Time { return time.Now().Add(time.Duration(step.Load())) }
		g := newGenerator(t, Default(), Grant{Node: 1, From: noon}, &Options{Now: now, MaxAhead: time.Second, MaxLag: 5 * time.Second})
		first, _ := mustNext(t, g)

		step.Store(int64(-3 * time.Second))
		before := time.Now()
		second, err := g.Next(t.Context())
		if err != nil || second != first+1 || time.Since(before) != 2*time.Second {
			t.Errorf("Next after a step back: %v, %v after %v, want %v after 2s", second, err, time.Since(before), first+1)
		}
		step.Store(int64(-5 * time.Second))
		before = time.Now()
		go func() { time.Sleep(1500 * time.Millisecond); step.Store(int64(0)) }()
		if _, err := g.Next(t.Context()); err != nil || time.Since(before) != 2*time.Second {
			t.Errorf("Next while the clock is set right: %v after %v, want 2s", err, time.Since(before))
		}
		for lag, most := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Second: 3 * time.Second} {
			for _, beyond := range []time.Duration{0, 1} {
				step.Store(0)
				g := newGenerator(t, Default(), Grant{Node: 1, From: time.Now()}, &Options{Now: now, MaxAhead: time.Second, MaxLag: lag})
				mustNext(t, g)
				step.Store(int64(-time.Second - most - beyond))
				before := time.Now()
				if _, err := g.Next(t.Context()); (err != nil) != (beyond > 0) || err != nil && time.Since(before) != 0 {
					t.Errorf("MaxLag %v: Next with the clock %v beyond MaxAhead: %v after %v", lag, most+beyond, err, time.Since(before))
				}
			}
		}
	})
}

// Calls race with changes of the grant and with Seal, by the system's clock. No
// ID lies at or after the time that Seal returned, none comes twice, those of a
// caller increase, and all are counted, in terms that end while the clock moves
// the word too.
func TestSealAgainstNext(t *testing.T) {
	rounds := 84
	if testing.Short() {
		rounds = 21
	}
	for round := range rounds {
		layout := []string{"bits=time:56.node:6.seq:1,unit=1us", "bits=time:43.node:10.seq:10,unit=1us", "bits=time:41.node:5.seq:17"}[round%3]
		from := time.Unix(1, 0)
		g := newGenerator(t, MustParseLayout(layout), Grant{Node: 1, From: from}, &Options{MaxAhead: time.Second})
		ids := make([][]ID, 4)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				for {
					switch id, err := g.TryNext(); {
					case err == nil:
						ids[i] = append(ids[i], id)
					case errors.Is(err, ErrSealed):
						return
					}
				}
			})
		}
		last := uint64(0)
		for i := range round % 7 {
			time.Sleep(50 * time.Microsecond)
			if err := g.Switch(Grant{Node: uint64(i % 4), From: from}); err != nil {
				t.Error(err)
			}
			n := g.Stats().IDs
			if n < last {
				t.Errorf("Stats().IDs fell from %d to %d", last, n)
			}
			last = n
		}
		until := g.Seal()
		all.Wait()
		for _, mine := range ids {
			if !slices.IsSorted(mine) {
				t.Errorf("%s: a caller's IDs are not in order", layout)
			}
			for _, id := range mine {
				if p, _ := g.layout.Decompose(id); !p.Time.Before(until) {
					t.Fatalf("%s: ID of %v, but Seal said %v", layout, p.Time, until)
				}
			}
		}
		made := slices.Concat(ids...)
		if got := g.Stats().IDs; got != uint64(len(made)) {
			t.Errorf("%s: Stats().IDs = %d, want %d", layout, got, len(made))
		}
		wantDistinct(t, layout, made)
	}
}

// If the clock goes back while a batch waits, and no ID is ahead of the new
// time, the batch does not wait for the clock to catch up: it begins at the new
// time.
func TestClockGoesBackUnderABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synctestNow()
		var step atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(step.Load())) }
		g := newGenerator(t, MustParseLayout("bits=time:48.node:14.seq:2"), Grant{Node: 1, From: noon.Add(-time.Hour)}, &Options{Now: now})
		go func() {
			time.Sleep(500 * time.Millisecond)
			step.Store(int64(-5 * time.Second))
		}()
		b, err := g.NextBatch(t.Context(), 2000*4)
		// It notices within a second, and then needs two, minus a tick.
		if took := time.Since(noon); err != nil || took < 2499*time.Millisecond || took > 3*time.Second {
			t.Errorf("NextBatch of 2s: %v after %v, want at most 3s", err, took)
		}
		for id := range b.All() {
			if p, _ := g.layout.Decompose(id); now().Sub(p.Time) > 3*time.Second || p.Time.After(now()) {
				t.Errorf("an ID of %v, where the clock is %v", p.Time, now())
			}
		}
	})
}

// TestNextBatch: a batch beyond MaxAhead is taken when its last ID is within
// it. With an earlier deadline it fails at once, and nothing is lost.
func TestNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synctestNow()
		g := newGenerator(t, Default(), Grant{Node: 1, From: noon}, &Options{MaxAhead: 10 * time.Millisecond})
		for _, test := range []struct{ ticks, deadline, took int }{ // in milliseconds
			{11, 0, 0}, {100, 88, 0}, {100, 90, 89}, {100, 1000, 89},
		} {
			time.Sleep(time.Second)
			before, start := g.Stats().IDs, time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(test.deadline)*time.Millisecond)
			b, err := g.NextBatch(ctx, 4096*test.ticks)
			cancel()
			if took := time.Since(start); took != time.Duration(test.took)*time.Millisecond {
				t.Errorf("%+v: it took %v", test, took)
			}
			switch {
			case test.ticks == 100 && test.took == 0:
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrBatchTooLarge) ||
					g.Stats().IDs != before {
					t.Errorf("%+v: %v, %d IDs taken", test, err, g.Stats().IDs-before)
				}
			case err != nil:
				t.Errorf("%+v: %v", test, err)
			default:
				checkBatch(t, g, slices.Collect(b.All()), 4096*test.ticks, start)
			}
		}
	})
}

// A batch under a static grant, which has no end, spans a minute, or what
// MaxAhead allows at once. TestGeneratorLaw compares what Reserve and NextBatch
// take; here they wait.
func TestStaticGrantBoundsABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synctestNow()
		for _, test := range []struct {
			layout string
			ahead  time.Duration
			most   int
		}{
			{"bits=time:48.node:14.seq:2", 100 * time.Millisecond, 4 * 60_000},
			{"bits=time:48.node:14.seq:2", time.Hour, 4 * 3_600_001},
			{"bits=time:32.node:8.seq:4,unit=7s", 0, 8 << 4},
			{"bits=time:24.node:8.seq:8,unit=1h", 90 * time.Minute, 2 << 8},
		} {
			l := MustParseLayout(test.layout)
			wait := time.Duration((test.most-1)>>l.seqBits) * l.unit
			g := newGenerator(t, l, StaticGrant(1), &Options{MaxAhead: test.ahead})
			// Refused at once, even if it would have to wait in line first.
			ctx, cancel := context.WithCancel(t.Context())
			waiting := make(chan error)
			go func() { _, err := g.Next(ctx); waiting <- err }()
			synctest.Wait()
			start := time.Now()
			for _, n := range []int{test.most + 1, math.MaxInt} {
				_, err := g.NextBatch(ctx, n)
				_, _, err2 := g.Reserve(n)
				for _, err := range []error{err, err2} {
					if !errors.Is(err, ErrBatchTooLarge) || !strings.Contains(err.Error(), "Fill") || time.Since(start) != 0 {
						t.Errorf("%+v: a batch of %d: %v, want ErrBatchTooLarge, and a hint at Fill", test, n, err)
					}
				}
			}
			cancel()
			<-waiting
			// It begins a tick after MaxAhead, so MaxAhead does not help the
			// first batch.
			b, err := g.NextBatch(t.Context(), test.most)
			if took := time.Since(start); err != nil || b.Len() != test.most || took > wait+l.unit || took < wait {
				t.Errorf("%+v: the largest batch: %d IDs, %v after %v, want %v", test, b.Len(), err, took, wait)
			}
			if _, _, err := g.Reserve(test.most); err != nil {
				t.Errorf("%+v: the largest reservation: %v", test, err)
			}
			// So it is if the grant becomes a static one while it waits.
			must.Do(t, g.Switch(Grant{Node: 1, From: time.Now()}))
			go func() { _, err := g.NextBatch(t.Context(), 2*test.most); waiting <- err }()
			synctest.Wait()
			must.Do(t, g.Switch(StaticGrant(1)))
			if err := <-waiting; !errors.Is(err, ErrBatchTooLarge) {
				t.Errorf("%+v: a batch that waits while the grant becomes static: %v", test, err)
			}
			for _, n := range []int{1, test.most} {
				var w *WaitError
				if _, _, err := g.Reserve(n); errors.As(err, &w) {
					time.Sleep(w.Wait)
				}
				if _, _, err := g.Reserve(n); err != nil {
					t.Errorf("%+v: another reservation of %d when that is over: %v", test, n, err)
				}
			}
		}
	})
}
