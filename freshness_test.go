package firn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/freshness"
	"github.com/firnid/firn/internal/test/must"
)

// A watched generator has a clock and a counter of the test. Its methods use
// the allowances that readings of the clock make, as those of a Generator do
// with the processor's counter.
type watched struct {
	*Generator
	counter func() uint64
}

// newWatched returns a watched generator. The clock's times must have a
// monotonic part.
func newWatched(layout string, grant Grant, o Options, now func() time.Time, counter func() uint64) (watched, error) {
	o.Now = now
	g, err := NewGenerator(MustParseLayout(layout), grant, &o)
	if err == nil {
		g.tracker.InitCounter(min(freshness.MaxSpan, g.layout.unit/2), now(), counter)
	}
	return watched{g, counter}, err
}

// some is Fill for up to want IDs that are free.
func (g watched) some(want uint64) (ids []ID, err error) {
	t := g.term.Load()
	slot, n := t.takeFresh(g.counter(), want)
	if n == 0 {
		if t, slot, n, err = g.take(&request{want: want}); err != nil {
			return nil, err
		}
	}
	return slices.Collect(newBatch[ID](&t.composer, slot, int(n)).All()), nil
}

func (g watched) TryNext() (ID, error) {
	ids, err := g.some(1)
	return append(ids, 0)[0], err
}

// must returns the next ID.
func (g watched) must(t *testing.T) ID {
	t.Helper()
	return must.Get(g.TryNext())(t)
}

// fresh reports whether there is an allowance.
func (g watched) fresh() bool { return g.term.Load().allowed.End(g.counter()) > 0 }

// A liar is a counter with 3 counts per nanosecond while it is honest.
type liar struct {
	name  string
	exact bool // its lies only ever lead to a reading of the clock
	count func(r *rand.Rand, honest uint64) uint64
}

// liars returns the ways in which counters of real machines go wrong, and worse
// ones.
func liars() []liar {
	var offset, last, calls uint64
	var slow bool
	return []liar{
		{"is honest", true, func(_ *rand.Rand, n uint64) uint64 { return n }},
		{"jumps forward", true, func(r *rand.Rand, n uint64) uint64 {
			if calls++; calls > 10_000 && r.IntN(50) == 0 { // not twice within three readings
				calls = 0
				offset += 1_000_000 + r.Uint64N(1<<50)
			}
			return n + offset
		}},
		{"jumps back", true, func(r *rand.Rand, n uint64) uint64 {
			if r.IntN(50) == 0 {
				offset -= 1 << 56 // more than the time that passes in a test
			}
			return n + offset
		}},
		{"stops at times", false, func(r *rand.Rand, n uint64) uint64 {
			if r.IntN(50) > 0 {
				last = n
			}
			return last
		}},
		{"stands still", true, func(*rand.Rand, uint64) uint64 { return 42 }},
		{"is zero", true, func(*rand.Rand, uint64) uint64 { return 0 }},
		{"is of several sockets", false, func(r *rand.Rand, n uint64) uint64 { return n + r.Uint64N(3)*70_000 }},
		{"changes its rate", false, func(r *rand.Rand, n uint64) uint64 {
			if r.IntN(500) == 0 {
				slow = !slow
			}
			if slow {
				return n / 1000
			}
			return n
		}},
		{"goes backwards", false, func(_ *rand.Rand, n uint64) uint64 { return -n }},
		{"says anything", false, func(r *rand.Rand, _ uint64) uint64 { return r.Uint64() }},
		{"says anything near", false, func(r *rand.Rand, n uint64) uint64 { return n - 100_000 + r.Uint64N(200_000) }},
	}
}

// TestLyingCounter: whatever the counter that measures freshness returns, IDs
// increase, lie in their grant, and lead the clock by no more than MaxAhead. If
// its lies can only cause a reading of the clock, IDs are also behind it by no
// more than a tick and 50 µs, or half a tick if that is less.
func TestLyingCounter(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		for i, liar := range liars() {
			readings, ids, err := lie(seed, liar.count, liar.exact)
			if err != nil {
				t.Errorf("a counter that %s, seed %d: %v", liar.name, seed, err)
			}
			if i == 0 && readings > ids*3/4 {
				t.Errorf("an honest counter: %d readings of the clock for %d IDs, so this test says little", readings, ids)
			}
		}
	}
}

// lie lets a generator run with the counter for some simulated time, and
// returns what is wrong with its IDs.
func lie(seed uint64, count func(*rand.Rand, uint64) uint64, exact bool) (readings, made int, err error) {
	r := rand.New(rand.NewPCG(seed, 0))
	layout := []string{"default", "bits=time:51.node:6.seq:6,unit=1us", "bits=time:44.node:10.seq:2", "hazelcast"}[r.IntN(4)]
	ahead := []time.Duration{0, time.Millisecond, time.Second}[r.IntN(3)]
	base, passed := time.Now(), time.Duration(0)
	at := func() time.Time { return base.Add(passed) }
	now := func() time.Time {
		readings++
		passed += time.Duration(r.IntN(50))
		return at()
	}
	counter := func() uint64 {
		passed += time.Duration(r.IntN(10))
		return count(r, 3*uint64(passed))
	}
	from, until := base.Add(-time.Second), base.Add(time.Second)
	g, err := newWatched(layout, Grant{Node: 1, From: from, Until: until}, Options{MaxAhead: ahead}, now, counter)
	if err != nil {
		return 0, 0, err
	}
	unit := g.layout.unit
	span := min(freshness.MaxSpan, unit/2) // how old a reading may be
	last := ID(0)
	node, reserved := uint64(1), false
	seen, refused := make(map[ID]bool), 0
	for range 5_000 {
		var ids []ID
		var times []time.Time // when they were drawn
		n := r.IntN(1000)
		switch {
		case n < 900:
			passed += time.Duration(r.IntN(40))
		case n < 960:
			passed += time.Duration(r.IntN(100_000))
		case n < 990:
			passed += time.Duration(r.IntN(5_000_000))
		case n < 991:
			passed += time.Duration(r.Int64N(int64(100 * time.Hour)))
		case n < 996:
			ids, _ = g.some(1 + r.Uint64N(300))
		case n < 997:
			if b, _, err := g.Reserve(1 + r.IntN(5000)); err == nil {
				ids, reserved = slices.Collect(b.All()), true
			}
		case n < 999:
			until = at().Add(time.Duration(r.IntN(300_000_000)))
			if err := g.Extend(until); err != nil {
				until, _ = g.layout.timeOf(g.term.Load().limit.Load() >> g.layout.seqBits)
			}
		default:
			node = 1 + node%3
			from, until = at().Add(-time.Millisecond), at().Add(time.Second)
			if err := g.Switch(Grant{Node: node, From: from, Until: until}); err != nil {
				return 0, 0, err
			}
		}
		for range 1 + r.IntN(50)*r.IntN(2) {
			if id, err := g.TryNext(); err == nil {
				ids = append(ids, id)
			} else if refused++; errors.As(err, new(*ClockError)) {
				return readings, made, fmt.Errorf("the clock never went back, but %w", err)
			}
			for len(times) < len(ids) {
				times = append(times, at())
			}
		}
		for i, id := range ids {
			made++
			now := times[i]
			p, err := g.layout.Decompose(id)
			switch {
			case err != nil:
				return readings, made, err
			case seen[id]:
				err = fmt.Errorf("ID %v is made twice", id)
			case id <= last:
				err = fmt.Errorf("ID %v comes after %v", id, last)
			case p.Node != node || p.Time.Before(from) || !p.Time.Before(until):
				err = fmt.Errorf("an ID of node %d and %v is outside its grant of node %d, %v to %v", p.Node, p.Time, node, from, until)
			case p.Time.After(now.Add(ahead)) && n != 996 && !reserved:
				err = fmt.Errorf("an ID leads the clock by %v, MaxAhead is %v", p.Time.Sub(now), ahead)
			case exact && now.Sub(p.Time) >= unit+span+200: // a call takes some nanoseconds
				err = fmt.Errorf("an ID lags by %v, a tick is %v", now.Sub(p.Time), unit)
			}
			if err != nil {
				return readings, made, fmt.Errorf("%d of %d after %v: %w", i, len(ids), passed, err)
			}
			last, seen[id] = id, true
		}
		if len(ids) > 0 {
			if p, _ := g.layout.Decompose(last); !p.Time.After(at().Add(ahead)) {
				reserved = false // the clock has caught up with the reservation
			}
		}
	}
	return readings - refused, made, nil
}

// open returns a generator with an allowance: its clock was read, and the
// counter was found to be honest. Then the clock stands still, and so does the
// counter, almost.
func open(t *testing.T, layout string, o Options) (g watched, clock *atomic.Int64, readings *atomic.Int64) {
	t.Helper()
	clock, readings = new(atomic.Int64), new(atomic.Int64)
	base, count := time.Now(), new(atomic.Uint64)
	now := func() time.Time {
		readings.Add(1)
		return base.Add(time.Duration(clock.Load()))
	}
	counter := func() uint64 { return 10*uint64(clock.Load()) + count.Add(1) }
	g = must.Get(newWatched(layout, Grant{Node: 1, From: base.Add(-time.Hour)}, o, now, counter))(t)
	for range 4 {
		clock.Add(int64(10 * time.Millisecond))
		g.must(t)
	}
	before := readings.Load()
	if g.must(t); readings.Load() != before {
		t.Fatal("no allowance was made")
	}
	return g, clock, readings
}

// TestRefusalsAtFullContention: with any number of callers, every slot that
// MaxAhead or the grant allows is used, no other is, and refusals do not change
// the word.
func TestRefusalsAtFullContention(t *testing.T) {
	for _, end := range []error{ErrExhausted, ErrGrantOver} {
		o := Options{MaxAhead: 3 * time.Millisecond}
		if end == ErrGrantOver {
			o.MaxAhead = time.Hour
		}
		g, clock, readings := open(t, exact, o)
		var made []uint64 // slots
		for range 20 {
			clock.Add(int64(time.Millisecond))
			if end == ErrGrantOver {
				must.Do(t, g.Switch(Grant{Node: 1, From: time.Unix(1, 0), Until: g.now().Add(3 * time.Millisecond)}))
			}
			var mu sync.Mutex
			var all sync.WaitGroup
			for want := range uint64(8) {
				all.Go(func() {
					var mine []uint64
					for refused := 0; refused < 100; {
						ids, err := g.some(1 + want%4)
						for _, id := range ids {
							mine = append(mine, g.slotOf(t, id))
						}
						if err == nil {
							continue
						}
						if refused++; !errors.Is(err, end) {
							t.Errorf("a call: %v, want %v", err, end)
							return
						}
					}
					mu.Lock()
					defer mu.Unlock()
					made = append(made, mine...)
				})
			}
			all.Wait()
			var v view
			if err := g.loadView(&v); err != nil || v.word != min(v.limit, v.ahead) {
				t.Fatalf("the word is %d, %v, want %d, where %v begins", v.word, err, min(v.limit, v.ahead), end)
			}
		}
		slices.Sort(made)
		for i, slot := range made {
			if slot != made[0]+uint64(i) {
				t.Fatalf("slot %d is %d after %d: one was lost, or given twice", i, slot, made[max(i, 1)-1])
			}
		}
		if n := len(made); readings.Load() > int64(n/2) {
			t.Errorf("%d readings of the clock for %d IDs, so this test says little", readings.Load(), n)
		}
	}
}

// TestNoAllowances: an injected clock is called every time, and in a bubble,
// where time is fake, the counter is not used.
func TestNoAllowances(t *testing.T) {
	readings := 0
	g := newGenerator(t, Default(), Grant{Node: 1, From: noon}, &Options{Now: func() time.Time { readings++; return noon }})
	for range 1000 {
		mustNext(t, g)
	}
	if readings != 1000 {
		t.Errorf("an injected clock was read %d times for 1000 IDs", readings)
	}

	synctest.Test(t, func(t *testing.T) {
		synctestNow()
		g := newGenerator(t, MustParseLayout(exact), Grant{Node: 1, From: noon}, nil)
		for i := range 1000 {
			_, p := mustNext(t, g)
			wantParts(t, p, noon.Add(time.Duration(i)*time.Millisecond), 1, 0)
			time.Sleep(time.Millisecond)
		}
	})
}

// TestAllowanceIsMade: with the system's clock and the counter of this machine,
// allowances are made after some readings of the clock.
func TestAllowanceIsMade(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its monotonic clock may go in steps that are longer than an allowance")
	}
	g := newGenerator(t, MustParseLayout("bits=time:41.node:5.seq:17"), Grant{Node: 1, From: time.Unix(1, 0)}, nil)
	for deadline := time.Now().Add(must.Patience); ; {
		mustNext(t, g)
		if g.term.Load().allowed.End(freshness.Cycles()) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no allowance was made")
		}
	}
}

// TestMostIDsOfAReading: after 8,192 IDs, the clock is read again.
func TestMostIDsOfAReading(t *testing.T) {
	g, _, readings := open(t, "default", Options{MaxAhead: time.Hour})
	before := readings.Load()
	for range 10 * freshness.MaxIDs {
		g.must(t)
	}
	if n := readings.Load() - before; n < 9 || n > 11 {
		t.Errorf("%d readings of the clock for %d IDs, want one for each %d", n, 10*freshness.MaxIDs, freshness.MaxIDs)
	}
}

// TestNoAllowanceWhileCallsWait: a call that takes a free ID while others are
// in line makes no allowance, by which further calls would overtake them.
func TestNoAllowanceWhileCallsWait(t *testing.T) {
	base := time.Now() // with a monotonic part, which times in a bubble do not have
	synctest.Test(t, func(t *testing.T) {
		var clock, count atomic.Int64
		now := func() time.Time { return base.Add(time.Duration(clock.Load())) }
		counter := func() uint64 { return uint64(10*clock.Load() + count.Add(1)) }
		g, err := newWatched("bits=time:48.node:14.seq:2,unit=1s", Grant{Node: 1, From: base.Add(-time.Hour)}, Options{}, now, counter)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			clock.Add(int64(time.Second))
			g.must(t)
		}
		if !g.fresh() {
			t.Fatal("no allowance was made, so this test says little")
		}
		for range 3 { // the rest of the tick
			g.must(t)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := g.Next(ctx); done <- err }()
		synctest.Wait()
		clock.Add(int64(time.Second)) // while it sleeps
		g.must(t)
		if g.fresh() {
			t.Error("an allowance was made while a call waits")
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		clock.Add(int64(time.Second))
		g.must(t)
		if !g.fresh() {
			t.Error("no allowance was made when no call waits any more")
		}
	})
}

// TestAllowanceIsOfItsTerm: an allowance that a call makes late, after the
// grant was switched, does not apply to the new grant, which may end earlier.
func TestAllowanceIsOfItsTerm(t *testing.T) {
	g, clock, _ := open(t, "default", Options{MaxAhead: time.Second})
	clock.Add(int64(time.Second)) // the allowance is stale
	var v view
	must.Do(t, g.loadView(&v))
	over := Grant{Node: 2, From: time.Now().Add(-time.Hour), Until: time.Now().Add(-time.Minute)} // gives no ID
	must.Do(t, g.Switch(over))
	g.allow(&v, v.ahead)
	if id, err := g.TryNext(); !errors.Is(err, ErrGrantOver) {
		t.Errorf("TryNext = %v, %v, want ErrGrantOver: the grant of node 2 ended a minute ago", id, err)
	}
	if end := v.term.allowed.End(g.counter()); end != v.ahead {
		t.Errorf("the allowance of the old term ends at %d, want %d: none was made, so this test says little", end, v.ahead)
	}
}

// TestInlining: the functions on the path of a single ID are inlined. One more
// nested call costs a nanosecond of ten.
func TestInlining(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-m", "-o", os.DevNull, ".", "./internal/freshness").CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, name := range []string{"(*term).takeBelow", "(*composer).placeLast", "fresh", "(*Allowance).End"} {
		if !regexp.MustCompile(`(?m): can inline ` + regexp.QuoteMeta(name) + `$`).Match(out) {
			t.Errorf("%s cannot be inlined any more", name)
		}
	}
}
