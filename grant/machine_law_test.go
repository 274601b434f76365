package grant

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
)

// TestBackoffLaw: after n consecutive failures, a member waits d/2 + r, as
// described in docs/protocol.md under Waiting.
func TestBackoffLaw(t *testing.T) {
	for _, window := range []int64{100, 6000, 60_000, 600_000} {
		for _, left := range []int64{-1, 0, 20_000, 40_000, 40_008, 120_000, 121_000, 500_000} { // -1: no node ID
			for _, wanted := range []bool{true, false} {
				for n := 1; n <= 16; n++ {
					r := newRig(t, 4, func(c *configRecord) { c.Window, c.LongestWindow = window, window })
					r.m.attached = wanted
					most := int64(5000)
					if left >= 0 {
						r.m.hold = &hold{until: r.wall + 1000 + left}
						r.m.used = r.wall + 1000
						if wanted {
							most = max(most, min(left/8, 15_000))
						}
					}
					d := max(min(int64(50)<<min(n, 12), window/6, most), 1)
					least := int64(1 << 62)
					for _, r.random = range []uint64{0, uint64(d / 2), uint64(d/2 + 1), 1} {
						r.m.failures = n - 1
						r.m.fail(errNoAnswer, 0)
						want := d / 2
						switch r.random {
						case uint64(d / 2):
							want += d / 2
						case 1:
							want += min(1, d/2)
						}
						got := r.m.notBefore - r.mono
						if got != want && r.random != uint64(d/2+1) || got < d/2 || got > d {
							t.Fatalf("window %d, %d left, wanted %t, failure %d, chance %d: %d ms, want %d", window, left, wanted, n, r.random, got, want)
						}
						least = min(least, got)
					}
					if r.m.failures != n || r.m.status.Err != errNoAnswer {
						t.Fatalf("%d failures, %v", r.m.failures, r.m.status.Err)
					}
					r.m.failures, r.random = n-1, 0
					if r.m.fail(errNoAnswer, 7777); r.m.notBefore-r.mono != max(7777, d/2) {
						t.Fatalf("at least 7777 ms: %d", r.m.notBefore-r.mono)
					}
				}
			}
		}
	}
	// If no IDs were made recently, the rest of the window counts from the
	// clock; and the wait is bounded for any number of failures.
	r := newRig(t, 4, func(c *configRecord) { c.Window, c.LongestWindow = 600_000, 600_000 })
	r.m.attached, r.m.hold, r.m.used = true, &hold{until: r.wall + 100_000}, r.wall-50_000
	for _, failures := range []int{12, 60, 100, math.MaxInt32} {
		r.m.failures = failures
		if r.m.fail(errNoAnswer, 0); r.m.notBefore-r.mono != 6250 {
			t.Errorf("failure %d: %d ms", failures, r.m.notBefore-r.mono)
		}
	}
	// A sealed node ID does not prolong the wait, and without a window nothing
	// is known.
	r = newRig(t, 4, func(c *configRecord) { c.Window, c.LongestWindow = 600_000, 600_000 })
	r.m.attached, r.m.hold, r.m.failures = true, &hold{until: r.wall + 500_000, sealed: true}, 12
	if r.m.fail(errNoAnswer, 0); r.m.notBefore-r.mono != 2500 {
		t.Errorf("sealed: %d ms", r.m.notBefore-r.mono)
	}
	m := newMachine(Settings{Name: "s", random: func() uint64 { return 0 }})
	if m.fail(errNoAnswer, 0); m.notBefore != 50 {
		t.Errorf("before the configuration is known: %d ms", m.notBefore)
	}
	// While renewals fail, the configuration is still read in time.
	r.m.renewFailed, r.m.configAt = true, r.mono+33
	if r.m.fail(errNoAnswer, 0); r.m.notBefore != r.mono+33 {
		t.Errorf("the configuration must be read in 33 ms, but it waits %d", r.m.notBefore-r.mono)
	}
	for _, at := range []int64{0, -5} {
		r.m.configAt = r.mono + at
		if r.m.fail(errNoAnswer, 0); r.m.notBefore <= r.mono {
			t.Errorf("the configuration could not be read, and it does not wait")
		}
	}
}

// TestRefusedLaw: if the configuration forbids acquiring, a member looks again
// after a third of a window, but after 1 s at least and 5 s at most.
func TestRefusedLaw(t *testing.T) {
	for window, want := range map[int64]int64{100: 1000, 2997: 1000, 3003: 1001, 6000: 2000, 14_997: 4999, 15_003: 5000, 600_000: 5000} {
		r := newRig(t, 4, func(c *configRecord) { c.Window, c.LongestWindow = window, window })
		r.m.demand = true
		r.m.refuse(ErrDetached)
		if got := r.m.notBefore - r.mono; got != want || !r.m.isRefused || r.m.demand || r.m.status.Err != ErrDetached {
			t.Errorf("window %d: %d ms, want %d; refused %t, demand %t, %v", window, got, want, r.m.isRefused, r.m.demand, r.m.status.Err)
		}
	}
}

// TestHintDuringReadLaw: if a hint comes while the configuration is read, and
// the answer forbids acquiring, a member looks again at once, and only once.
func TestHintDuringReadLaw(t *testing.T) {
	for _, hint := range []bool{false, true} {
		r := newRig(t, 4, nil)
		r.step(event{Kind: eventAttach})
		r.asks(actionGet)
		c := r.m.sequencer
		c.State = Detaching
		if hint {
			r.step(event{Kind: eventHint})
		}
		r.answer(event{Values: [][]byte{c.encode()}})
		if again := r.request != nil; again != hint || !errors.Is(r.m.status.Err, ErrDetached) {
			t.Errorf("with a hint: %t, it asks again: %t, %v", hint, again, r.m.status.Err)
		}
		if hint {
			r.asks(actionGet)
			r.answer(event{Values: [][]byte{c.encode()}})
		}
		if wait := r.m.notBefore - r.mono; r.request != nil || wait != 2000 {
			t.Errorf("with a hint: %t, then it asks %+v and waits %d ms, want a wait of 2000 ms", hint, r.request, wait)
		}
	}
}

// TestReadConfigLaw: how a member evaluates each readable configuration.
func TestReadConfigLaw(t *testing.T) {
	layout := firn.MustParseLayout("bits=time:48.node:4,unit=1ms,epoch=0")
	for _, tt := range []struct {
		name   string
		change func(c *configRecord)
		set    func(s *Settings)
		err    error
		says   string
		thaws  bool // or freezes, if it is neither taken nor an error
	}{
		{name: "the same", change: func(c *configRecord) {}},
		{name: "another nonce", change: func(c *configRecord) { c.Nonce = "x" }},
		{name: "a greater incarnation", change: func(c *configRecord) { c.Incarnation = 9 }},
		{name: "a smaller incarnation", change: func(c *configRecord) { c.Incarnation = 4 }, err: ErrRolledBack},
		{name: "a smaller incarnation with a higher floor", change: func(c *configRecord) { c.Incarnation, c.Floor = 4, 101 }},
		{name: "a higher floor", change: func(c *configRecord) { c.Floor = 101 }},
		{name: "a lower floor", change: func(c *configRecord) { c.Floor = 99 }, err: ErrRolledBack},
		{name: "a lower floor with a greater incarnation", change: func(c *configRecord) { c.Floor, c.Incarnation = 99, 9 }, err: ErrRolledBack},
		{name: "no floor any more", change: func(c *configRecord) { c.Floor = never }, err: ErrRolledBack},
		{name: "another layout", change: func(c *configRecord) { c.Layout = firn.MustParseLayout("default") }, err: ErrMismatch, says: layout.String()},
		{name: "another window", change: func(c *configRecord) { c.Window, c.LongestWindow = 9000, 9000 }},
		{name: "the window that is wanted", change: func(c *configRecord) {}, set: func(s *Settings) {
			s.Config = &Config{Layout: layout, MaxAhead: 50 * time.Millisecond, Window: 6 * time.Second}
		}},
		{name: "another window than is wanted", change: func(c *configRecord) {}, set: func(s *Settings) {
			s.Config = &Config{Layout: layout, MaxAhead: 50 * time.Millisecond, Window: 7 * time.Second}
		}, err: ErrMismatch, says: "7s"},
		{name: "detaching", change: func(c *configRecord) { c.State = Detaching }, err: ErrDetached, says: "s is detaching"},
		{name: "destroyed", change: func(c *configRecord) { c.State = Destroyed }, err: ErrDestroyed, says: "s is destroyed"},
		{name: "all of the numbers", change: func(c *configRecord) {}, set: func(s *Settings) { s.Nodes = &Range{Lo: 0, Hi: 15} }},
		{name: "one number", change: func(c *configRecord) {}, set: func(s *Settings) { s.Nodes = &Range{Lo: 15, Hi: 15} }},
		{name: "a number too many", change: func(c *configRecord) {}, set: func(s *Settings) { s.Nodes = &Range{Lo: 15, Hi: 16} }, says: "15..16 do not fit"},
		{name: "no numbers", change: func(c *configRecord) {}, set: func(s *Settings) { s.Nodes = &Range{Lo: 5, Hi: 4} }, says: "5..4 do not fit"},
	} {
		r := newRig(t, 4, func(c *configRecord) { c.Floor, c.Incarnation = 100, 5 })
		if tt.set != nil {
			tt.set(&r.m.set)
		}
		c := r.m.sequencer
		tt.change(&c)
		ok := r.m.readConfig(c.encode())
		err := r.m.status.Err
		switch {
		case tt.err == nil && tt.says == "":
			if !ok || r.m.frozen || string(r.m.config) != string(c.encode()) || r.m.sequencer != c {
				t.Errorf("%s: %t, %v", tt.name, ok, err)
			}
			n := cmp.Or(r.m.set.Nodes, &Range{Lo: 0, Hi: 15})
			if lo, hi := r.m.lo, r.m.hi; lo != n.Lo || hi != n.Hi {
				t.Errorf("%s: the numbers %d..%d", tt.name, lo, hi)
			}
			if r.m.seenFloor != max(c.Floor, 100) || r.m.seenInc != max(c.Incarnation, 5) {
				t.Errorf("%s: floor %d, incarnation %d", tt.name, r.m.seenFloor, r.m.seenInc)
			}
		case ok || tt.err != nil && !errors.Is(err, tt.err) || err == nil || !strings.Contains(err.Error(), tt.says) || r.m.frozen != (tt.err == ErrRolledBack):
			t.Errorf("%s: %t, %v, frozen %t", tt.name, ok, err, r.m.frozen)
		}
	}

	// The error about another layout contains both layouts.
	r := newRig(t, 4, nil)
	c := r.m.sequencer
	c.Layout = firn.MustParseLayout("default")
	r.m.readConfig(c.encode())
	if m := (*MismatchError)(nil); !errors.As(r.m.status.Err, &m) || *m != (MismatchError{Sequencer: "s", Field: "layout", Have: c.Layout.String(), Want: layout.String()}) {
		t.Errorf("another layout: %#v", r.m.status.Err)
	}

	// The first read may return any number of records; an empty result is not
	// an error of the store.
	m := newMachine(Settings{Name: "s", random: func() uint64 { return 0 }})
	if m.readConfig(nil) || !errors.Is(m.status.Err, ErrNotFound) || m.frozen {
		t.Errorf("no configuration: %v, frozen %t", m.status.Err, m.frozen)
	}
	if m.readConfig([]byte("{")) || !errors.Is(m.status.Err, ErrDamaged) || m.frozen {
		t.Errorf("a damaged one: %v, frozen %t", m.status.Err, m.frozen)
	}
	if _, ok := m.Info(); ok {
		t.Error("it knows a configuration that it has not read")
	}
	r = newRig(t, 4, nil)
	if info, ok := r.m.Info(); !ok || info != r.m.sequencer.info("s") {
		t.Errorf("it knows %+v, %t", info, ok)
	}
	if r.m.readConfig(nil) || !r.m.frozen || !errors.Is(r.m.status.Err, ErrRolledBack) {
		t.Errorf("a configuration that is gone: %v, frozen %t", r.m.status.Err, r.m.frozen)
	}
}

// TestWatchedConfig: what a member does that holds a node ID and reads the
// configuration.
func TestWatchedConfig(t *testing.T) {
	watching := func() *rig {
		r := newRig(t, 4, nil)
		r.holding()
		r.step(event{Kind: eventHint})
		if a := r.asks(actionGet); a.Key != "v1/s/config" {
			t.Fatalf("it reads %s", a.Key)
		}
		return r
	}
	for state, err := range map[State]error{Detaching: ErrDetached, Detached: ErrDetached, Destroying: ErrDestroyed, Destroyed: ErrDestroyed} {
		r := watching()
		c := r.m.sequencer
		c.State = state
		r.answer(event{Values: [][]byte{c.encode()}})
		if r.did(actionSeal) == nil || !errors.Is(r.m.Status().Err, err) || r.m.Status().Phase != Leaving {
			t.Errorf("%v: %+v, %+v", state, r.out, r.m.Status())
		}
		r.step(event{Kind: eventSealed})
		if n := r.read(r.asks(actionCAS).Next); n.State != flagFree {
			t.Errorf("%v: %+v", state, n)
		}
		r.answer(event{Applied: true})
		if s := r.m.Status(); s.Phase != Joining {
			t.Errorf("%v: then it is %+v", state, s)
		}
	}
	// An error that prevents others from acquiring does not make this member
	// give anything back.
	for name, value := range map[string][]byte{"damaged": []byte("{"), "newer": []byte(`{"v":99}`)} {
		r := watching()
		r.answer(event{Values: [][]byte{value}})
		if s := r.m.Status(); r.did(actionSeal) != nil || s.Phase != Holding || s.Err == nil {
			t.Errorf("%s: %+v, %+v", name, r.out, s)
		}
	}
	// An error is reported, and the request is soon repeated; an answer ends
	// that.
	r := watching()
	r.answer(event{Err: errNoAnswer})
	if s := r.m.Status(); s.Err != errNoAnswer || s.Phase != Holding || r.m.configAt != r.mono || r.m.notBefore <= r.mono {
		t.Errorf("no answer: %+v, in %d ms", s, r.m.notBefore-r.mono)
	}
	r.later(1000)
	r.asks(actionGet)
	r.answer(event{Values: [][]byte{r.m.config}})
	if s := r.m.Status(); s.Err != nil {
		t.Errorf("an answer: %+v", s)
	}
	// But not if a renewal is overdue as well.
	r = watching()
	r.m.status.Err, r.m.demand = errNoAnswer, true
	r.wall, r.mono = r.wall+1000, r.mono+1000
	r.answer(event{Values: [][]byte{r.m.config}})
	if s := r.m.Status(); s.Err != errNoAnswer {
		t.Errorf("an answer, and a renewal that is overdue: %+v", s)
	}
	r.asks(actionCAS)
}

// TestWatchedBesideAClaim: while a claim is not settled, the configuration is
// still read in time, and errors of one do not prevent the other.
func TestWatchedBesideAClaim(t *testing.T) {
	r := newRig(t, 4, nil)
	r.holding()
	r.m.hold.lost = true
	r.m.claim = &claim{node: 9, key: r.key(9), from: r.wall, until: r.wall + 6000, attempts: [][]byte{[]byte("x")}, limit: maxMark}
	r.later(1)
	if a := r.asks(actionGet); a.Key != r.key(9) {
		t.Fatalf("it reads %s, and nothing is due but the claim", a.Key)
	}
	r.m.configAt = r.mono
	r.answer(event{Err: errNoAnswer})
	r.later(r.m.notBefore - r.mono)
	if a := r.asks(actionGet); a.Key != "v1/s/config" {
		t.Fatalf("it reads %s, and the configuration is due", a.Key)
	}
	r.answer(event{Err: errNoAnswer})
	wait := r.m.notBefore - r.mono
	if r.request != nil || wait <= 0 || r.m.configAt != r.m.notBefore+1 {
		t.Fatalf("no answer: it waits %d ms, and reads the configuration in %d", wait, r.m.configAt-r.mono)
	}
	r.later(wait)
	if a := r.asks(actionGet); a.Key != r.key(9) {
		t.Errorf("it reads %s, want the claim first", a.Key)
	}
	r.answer(event{Err: errNoAnswer})
	r.later(r.m.notBefore - r.mono)
	if a := r.asks(actionGet); a.Key != "v1/s/config" {
		t.Errorf("it reads %s, want the configuration", a.Key)
	}
}

// TestEmptyIsNone: an empty value from a store means an absent one.
func TestEmptyIsNone(t *testing.T) {
	r := newRig(t, 4, nil)
	r.m.config = nil
	r.tokens()
	r.step(event{Kind: eventAttach})
	r.answer(event{Values: [][]byte{{}}})
	if err := r.m.Status().Err; !errors.Is(err, ErrNotFound) {
		t.Errorf("an empty configuration: %v", err)
	}
}

// TestPickBeginsSmall: an abandoned pick does not make the next one larger.
func TestPickBeginsSmall(t *testing.T) {
	r := newRig(t, 10, nil)
	r.m.set.random = rand.New(rand.NewPCG(1, 1)).Uint64
	r.m.rounds = 2
	r.step(event{Kind: eventAttach})
	r.answer(event{Values: [][]byte{r.m.config}})
	if a := r.asks(actionGetMany); len(a.Keys) != picks {
		t.Errorf("it reads %d numbers at first", len(a.Keys))
	}
}

// TestClockSteps: a clock that jumps ahead by more than 10 s raises an alarm;
// one that steps by more than a second in either direction causes other clocks
// to be compared again.
func TestClockSteps(t *testing.T) {
	for _, by := range []int64{-20_000, -1001, -1000, 0, 1000, 1001, 10_000, 10_001, 90_000} {
		r := newRig(t, 4, nil)
		r.step(event{Kind: eventTick})
		r.m.clocks = clocks{told: alarmMembersAhead, known: true, watching: true}
		r.wall, r.mono = r.wall+5000+by, r.mono+5000
		r.step(event{Kind: eventTick})
		if by > 10_000 {
			if a := r.did(actionAlarm); a == nil || a.Alarm != (alarm{Kind: alarmClockJumped, By: time.Duration(by) * time.Millisecond}) {
				t.Errorf("ahead by %d ms: %+v", by, r.out)
			}
		} else if r.did(actionAlarm) != nil {
			t.Errorf("ahead by %d ms: %+v", by, r.out)
		}
		forgot := !r.m.clocks.known && !r.m.clocks.watching
		if want := by > 1000 || by < -1000; forgot != want || r.m.clocks.told != alarmMembersAhead {
			t.Errorf("a step of %d ms: forgotten %t, want %t; told %d", by, forgot, want, r.m.clocks.told)
		}
	}
	// The first event has no predecessor, and no clock exceeds the limits of
	// time.
	r := newRig(t, 4, nil)
	r.m.lastWall, r.m.lastMono = 0, 0
	if r.step(event{Kind: eventTick}); r.did(actionAlarm) != nil {
		t.Errorf("the first event: %+v", r.out)
	}
	for wall, want := range map[int64]int64{1 << 62: maxTime, maxTime: maxTime, -maxTime: -maxTime, -1 << 62: -maxTime} {
		r := newRig(t, 4, nil)
		r.wall, r.used = wall, 1<<62
		if r.step(event{Kind: eventTick}); r.m.wall != want || r.m.used != maxTime {
			t.Errorf("a clock at %d is taken for %d, and what was used for %d", wall, r.m.wall, r.m.used)
		}
	}
	// What was used never goes back.
	r = newRig(t, 4, nil)
	r.used = r.wall + 9
	r.step(event{Kind: eventTick})
	r.used = r.wall
	if r.step(event{Kind: eventTick}); r.m.used != r.wall+9 {
		t.Errorf("what was used went back by %d", r.wall+9-r.m.used)
	}
}

// TestWishes: what attach, release, a hint and a waiting caller end and begin.
func TestWishes(t *testing.T) {
	waiting := func(holds bool) *rig {
		r := newRig(t, 4, nil)
		if holds {
			r.holding()
		} else {
			r.tokens()
			r.m.attached = true
		}
		r.m.failures, r.m.notBefore, r.m.status.Err = 7, r.mono+5000, errNoAnswer
		return r
	}
	r := waiting(false)
	r.m.demand = false
	r.step(event{Kind: eventAttach})
	r.asks(actionGet)
	if r.m.failures != 0 || r.m.Status().Err != nil || !r.m.demand {
		t.Errorf("attach: %d failures, %v, demand %t", r.m.failures, r.m.Status().Err, r.m.demand)
	}
	r = waiting(false)
	r.m.demand = true
	r.step(event{Kind: eventRelease})
	if r.request != nil || r.m.Status().Phase != Idle || r.m.demand || r.m.notBefore != 0 {
		t.Errorf("release: %+v, %+v", r.request, r.m.Status())
	}
	r = waiting(true)
	r.m.hold.release = 9
	r.step(event{Kind: eventRelease})
	if r.did(actionSeal) == nil || r.m.hold.release != 0 {
		t.Errorf("release of a number: %+v", r.out)
	}
	for _, holds := range []bool{false, true} {
		for _, frozen := range []bool{false, true} {
			r = waiting(holds)
			r.m.frozen = frozen
			r.step(event{Kind: eventHint})
			if asks := r.request != nil; asks != (!holds || frozen) || holds && !r.m.wantConfig {
				t.Errorf("a hint, holding %t, frozen %t: %+v", holds, frozen, r.request)
			}
		}
	}
	for _, holds := range []bool{false, true} {
		for _, refused := range []bool{false, true} {
			for _, in := range []int64{50, 5000} {
				r = waiting(holds)
				r.m.isRefused, r.m.notBefore, r.m.demand = refused, r.mono+in, false
				r.step(event{Kind: eventDemand})
				want := in
				if !holds && refused {
					want = min(in, 100)
				}
				if got := r.m.notBefore - r.mono; got != want || !r.m.demand || r.request != nil {
					t.Errorf("demand, holding %t, refused %t: it waits %d ms, want %d", holds, refused, got, want)
				}
			}
		}
	}
}

// TestSealedLaw: only a seal that was requested is recorded.
func TestSealedLaw(t *testing.T) {
	r := newRig(t, 4, nil)
	r.step(event{Kind: eventSealed})
	r.holding()
	r.used = r.wall + 5
	r.step(event{Kind: eventSealed})
	if r.m.hold.sealed {
		t.Errorf("a seal without a request: %+v", r.m.hold)
	}
	r.step(event{Kind: eventRelease})
	if r.request != nil {
		t.Errorf("before it is sealed it asks for %+v", r.request)
	}
	for range 2 { // and it is requested once
		if r.step(event{Kind: eventTick}); r.did(actionSeal) != nil || r.request != nil {
			t.Errorf("before it is sealed: %+v", r.out)
		}
	}
	r.used = r.wall + 7
	r.step(event{Kind: eventSealed})
	if !r.m.hold.sealed || r.m.hold.sealing || r.m.used != r.wall+7 {
		t.Errorf("%+v, %d", r.m.hold, r.m.used)
	}
	// A mark that was kept does not go back with the next generator.
	r.m.hold.sealing, r.used = true, r.wall+3
	r.request = nil
	r.m.op = opNone
	if r.step(event{Kind: eventSealed}); r.m.used != r.wall+7 {
		t.Errorf("it goes back to %d", r.m.used-r.wall)
	}
}

// TestTimerLaw: when the machine requests a Tick.
func TestTimerLaw(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		r := newRig(t, 4, nil)
		m := r.m
		m.attached, m.demand = random.IntN(8) > 0, random.IntN(2) == 0
		m.used = r.wall + random.Int64N(200) - 100
		m.notBefore = r.mono + pickOne[int64](random, -1, 0, 0, 0, 1, 70)
		m.configAt = r.mono + pickOne[int64](random, -5, 0, 1, 40, 4000, 90_000)
		var h *hold
		if random.IntN(8) > 0 {
			until := r.wall + pickOne[int64](random, -50, 0, 50, 3000, 5999, 6000, 6050)
			h = &hold{
				until: until, untilAt: r.mono + pickOne[int64](random, -1, 0, 1, 3000), limit: maxMark,
				margin: pickOne[int64](random, 3600, 4000, 4400), sealing: random.IntN(8) == 0, lost: random.IntN(8) == 0,
			}
			if random.IntN(4) == 0 {
				h.limit = until + random.Int64N(900)
			}
		}
		m.hold = h
		if random.IntN(16) == 0 {
			m.op = opWatch
		}
		want := int64(-1)
		switch {
		case m.op != opNone:
		case m.mono < m.notBefore:
			want = m.notBefore
		case h == nil || h.sealing || h.lost || !m.attached:
		default:
			var all []int64
			at := max(r.wall, m.used)
			if left := h.until - at; left > h.margin {
				all = append(all, r.mono+left-h.margin)
			} else if left > 0 {
				all = append(all, r.mono+500)
			}
			if h.until > r.wall || h.untilAt > r.mono {
				all = append(all, max(m.configAt, r.mono+1))
			}
			if m.demand {
				growth := min(max(h.until, min(at, r.wall+50)+6000), h.limit) - h.until
				all = append(all, r.mono+max(500-growth, 1))
			}
			if len(all) > 0 {
				want = slices.Min(all)
			}
		}
		m.out = nil
		m.timer()
		got := int64(-1)
		for _, a := range m.out {
			if a.Kind == actionTimer {
				got = a.At
			}
		}
		if got != want || len(m.out) > 1 {
			t.Fatalf("%+v, attached %t, demand %t, op %d, used %d, configuration in %d: wake in %d, want %d",
				h, m.attached, m.demand, m.op, m.used-r.wall, m.configAt-r.mono, got-r.mono, want-r.mono)
		}
	}
	r := newRig(t, 4, nil)
	r.m.attached, r.m.sequencer.Window = true, 6
	r.m.hold = &hold{until: r.wall + 3, limit: maxMark, margin: 4}
	r.m.configAt = r.mono + 1000
	r.m.out = nil
	if r.m.timer(); r.m.out[0].At != r.mono+1 {
		t.Errorf("a short window: wake in %d ms", r.m.out[0].At-r.mono)
	}
}

// TestReportLaw: there is a report for every status that differs from the
// previous one, and for no other.
func TestReportLaw(t *testing.T) {
	errs := []error{nil, errNoAnswer, errors.New("no answer"), ErrDetached}
	holds := []*hold{nil}
	for i := range 64 {
		holds = append(holds, &hold{
			node: uint64(i & 1), until: rigTime + int64(i>>1&1), closing: i>>2&1 == 1, sealing: i>>3&1 == 1, sealed: i>>4&1 == 1, lost: i>>5&1 == 1,
		})
	}
	random := rand.New(rand.NewPCG(1, 1))
	r := newRig(t, 4, nil)
	var last Status
	changes := 0
	for range 20_000 {
		m := r.m
		m.hold, m.attached, m.out = pickOne(random, holds...), random.IntN(2) == 0, nil
		m.status.Err = pickOne(random, errs...)
		m.claim = nil
		if random.IntN(3) == 0 {
			m.claim = &claim{node: 9, until: 99}
		}
		m.owner = pickOne(random, "us", "we")
		err := m.status.Err
		m.report()
		h := m.hold
		want := Status{Err: err}
		switch {
		case h == nil && m.attached:
			want.Phase = Joining
		case h == nil && m.claim != nil:
			want.Phase, want.Node, want.Until = Leaving, 9, 99
		case h == nil:
			want = Status{}
		default:
			want.Node, want.Until = h.node, h.until
			switch {
			case !m.attached || h.closing || h.sealing || h.sealed:
				want.Phase = Leaving
			case h.lost:
				want.Phase, want.Owner = Losing, m.owner
			default:
				want.Phase, want.Owner = Holding, m.owner
			}
		}
		if m.Status() != want {
			t.Fatalf("%+v, want %+v", m.Status(), want)
		}
		text := func(s Status) string { return fmt.Sprintf("%+v", s) }
		if differs := text(want) != text(last); differs != (len(m.out) == 1) || differs && (m.out[0].Kind != actionReport || m.out[0].Status != want) {
			t.Fatalf("after %+v, %+v is reported: %+v", last, want, m.out)
		} else if differs {
			changes++
			last = want
		}
	}
	if changes < 1000 {
		t.Errorf("%d changes", changes)
	}
	// A new owner alone counts as a change.
	r.m.hold, r.m.attached, r.m.status.Err = &hold{until: rigTime}, true, nil
	r.m.report()
	r.m.owner, r.m.out = "another", nil
	if r.m.report(); len(r.m.out) != 1 || r.m.out[0].Status.Owner != "another" {
		t.Errorf("another owner: %+v", r.m.out)
	}
}

// TestHost: the host's name is truncated between characters, because records
// are limited.
func TestHost(t *testing.T) {
	for name, want := range map[string]int{"": 0, "h": 1, strings.Repeat("a", 64): 64, strings.Repeat("a", 65): 64, strings.Repeat("ü", 40): 64, "a" + strings.Repeat("ü", 40): 63, strings.Repeat("\x80", 70): 0} {
		m := newMachine(Settings{Host: name, random: func() uint64 { return 7 }})
		if got := m.set.Host; len(got) != want || !strings.HasPrefix(name, got) {
			t.Errorf("%q is cut to %q", name, got)
		}
		if m.owner != "00000000000000070000000000000007" {
			t.Errorf("owner %q", m.owner)
		}
	}
}

// TestMachineClone: changes of a machine and its clone do not affect each
// other.
func TestMachineClone(t *testing.T) {
	r := newRig(t, 4, nil)
	r.holding()
	r.m.hold.attempts, r.m.hold.old = append(make([][]byte, 0, 8), []byte("a")), append(make([][]byte, 0, 8), []byte("o"))
	r.m.claim = &claim{attempts: append(make([][]byte, 0, 8), []byte("c"))}
	r.m.clocks.records, r.m.clocks.leads = map[string][]byte{"k": nil}, map[string]lead{"k": {1, 2}}
	c := r.m.clone()
	if len(c.out) != 0 || len(c.hold.attempts) != 1 || len(c.hold.old) != 1 || len(c.claim.attempts) != 1 || len(c.clocks.records) != 1 || len(c.clocks.leads) != 1 {
		t.Fatalf("a clone lacks something: %+v", c)
	}
	c.hold.node, c.claim.node = 99, 99
	c.hold.attempts, c.hold.old, c.claim.attempts = append(c.hold.attempts, []byte("x")), append(c.hold.old, []byte("x")), append(c.claim.attempts, []byte("x"))
	c.clocks.records["x"], c.clocks.leads["x"] = nil, lead{}
	if r.m.hold.node == 99 || r.m.claim.node == 99 || len(r.m.clocks.records) != 1 || len(r.m.clocks.leads) != 1 ||
		string(r.m.hold.attempts[:2][1]) == "x" || string(r.m.hold.old[:2][1]) == "x" || string(r.m.claim.attempts[:2][1]) == "x" {
		t.Error("a clone writes into what it was copied from")
	}
	n := newMachine(Settings{random: func() uint64 { return 0 }}).clone()
	if n.hold != nil || n.claim != nil {
		t.Errorf("%+v", n)
	}
}

// TestFreezeLaw: a frozen member acquires, renews and gives back nothing. It
// reads the configuration, and the record of a window in use, every sixth of a
// window, but after 100 ms at least and 15 s at most. If another's window
// overlaps, it stops at once.
func TestFreezeLaw(t *testing.T) {
	for window, want := range map[int64]int64{100: 100, 600: 100, 660: 110, 6000: 1000, 89_994: 14_999, 90_006: 15_000, 900_000: 15_000} {
		r := newRig(t, 4, func(c *configRecord) { c.Window, c.LongestWindow = window, window })
		r.m.freeze()
		if got := r.m.notBefore - r.mono; got != want {
			t.Errorf("window %d: it looks again in %d ms, want %d", window, got, want)
		}
	}
	r := newRig(t, 4, nil)
	record := r.holding()
	other := func(from, until int64) []byte {
		n := r.read(record)
		n.Owner, n.Nonce, n.From.time, n.Until = "them", "another", rigTime+from, rigTime+until
		return n.encode()
	}
	for _, tt := range []struct {
		name        string
		value       []byte
		floor       int64 // of the configuration, since the grant began; 0: none
		alarm       AlarmKind
		from, until int64
		seals       bool
	}{
		{name: "claimed", value: other(2000, 8000), alarm: alarmRolledBack, from: 2000, until: 6000, seals: true},
		{name: "claimed before a fence", value: other(2000, 8000), floor: 9000, alarm: alarmFenced, from: 2000, until: 6000, seals: true},
		{name: "taken over", value: other(6000, 12_000), alarm: alarmTakenOver, from: 1000, until: 6000},
	} {
		r := newRig(t, 4, nil)
		r.holding()
		r.step(event{Kind: eventWentBack})
		r.used = rigTime + 1000
		r.later(1000)
		r.asks(actionGetMany)
		c := r.m.sequencer
		if tt.floor != 0 {
			c.Floor = rigTime + tt.floor
		}
		r.answer(event{Values: [][]byte{tt.value, c.encode()}})
		a := r.did(actionAlarm)
		if a == nil || a.Alarm.Kind != tt.alarm || a.Alarm.From != rigTime+tt.from || a.Alarm.Until != rigTime+tt.until || (r.did(actionSeal) != nil) != tt.seals || r.m.frozen == (tt.floor != 0) {
			t.Errorf("%s: %+v, frozen %t", tt.name, r.out, r.m.frozen)
		}
		if r.step(event{Kind: eventSealed}); r.m.frozen {
			r.later(1000)
			r.asks(actionGet)
		}
	}
	r.step(event{Kind: eventWentBack})
	if r.alarm() != alarmRolledBack || r.m.Status().Phase != Holding {
		t.Fatalf("%+v", r.out)
	}
	at := r.wall
	values := [][]byte{record, nil, []byte("{"), r.record(func(n *nodeRecord) { n.Owner = "us" }), r.record(func(n *nodeRecord) { n.Owner = "" })}
	for i := range values {
		r.used = r.wall
		r.step(event{Kind: eventDemand})
		r.later(1000)
		if a := r.asks(actionGetMany); !slices.Equal(a.Keys, []string{r.m.hold.key, "v1/s/config"}) {
			t.Fatalf("it reads %v", a.Keys)
		}
		r.answer(event{Values: [][]byte{values[i], r.m.config}})
		if r.did(actionAlarm) != nil || r.did(actionSeal) != nil || r.request != nil || r.m.frozenAt != at {
			t.Fatalf("it is told again: %+v", r.out)
		}
	}
	r.later(1000)
	r.answer(event{Err: errNoAnswer})
	if err := r.m.Status().Err; !errors.Is(err, ErrRolledBack) || !errors.Is(err, errNoAnswer) || r.request != nil || r.m.notBefore <= r.mono {
		t.Errorf("no answer: %v, %+v", err, r.request)
	}
	r.step(event{Kind: eventRelease})
	r.step(event{Kind: eventSealed})
	if r.request != nil || r.m.Status().Phase != Idle {
		t.Errorf("released while frozen: %+v, %+v", r.request, r.m.Status())
	}
	if r.later(60_000); r.request != nil {
		t.Errorf("it asks for %+v, and no number is wanted", r.request)
	}
}

// TestThawLaw: a freeze ends with a floor that is new, or further above the
// clock than anything that may be granted.
func TestThawLaw(t *testing.T) {
	for _, tt := range []struct {
		floor, seen int64 // since now
		thaws       bool
	}{
		{floor: 51, seen: 100, thaws: true}, {floor: 50, seen: 100}, {floor: 0, seen: 100},
		{floor: -100, seen: -100}, {floor: -99, seen: -100, thaws: true}, {floor: 100, seen: 100, thaws: true}, {floor: 101, seen: 100, thaws: true},
	} {
		for _, holds := range []bool{false, true} {
			r := newRig(t, 4, func(c *configRecord) { c.Incarnation = 5 })
			if holds {
				r.holding()
			} else {
				r.tokens()
				r.m.attached = true
			}
			r.m.seenFloor = r.wall + tt.seen
			r.step(event{Kind: eventWentBack})
			r.m.failures = 9
			for r.request == nil {
				r.wall, r.mono = r.wall-1, r.mono+1000 // the clock when it froze counts
				r.step(event{Kind: eventTick})
			}
			c := r.m.sequencer
			c.Floor, c.Incarnation = rigTime+tt.floor, 2
			r.answer(event{Values: [][]byte{c.encode()}})
			if r.m.frozen == tt.thaws {
				t.Fatalf("%+v, holding %t: frozen %t", tt, holds, r.m.frozen)
			}
			if !tt.thaws {
				if r.did(actionSeal) != nil || r.request != nil {
					t.Errorf("%+v, holding %t: %+v", tt, holds, r.out)
				}
				continue
			}
			// Its node ID is lost, and it starts over, whatever the
			// incarnation.
			if holds && (!r.m.hold.lost || r.alarm() != alarmFenced && tt.floor < 6000) {
				t.Errorf("%+v: %+v, %+v", tt, r.m.hold, r.out)
			}
			if r.m.failures != 0 || r.m.notBefore != 0 {
				t.Errorf("%+v: %d failures, wait %d", tt, r.m.failures, r.m.notBefore)
			}
			if holds {
				r.step(event{Kind: eventSealed})
			}
			if a := r.asks(actionGet); a.Key != "v1/s/config" {
				t.Errorf("%+v: it reads %s", tt, a.Key)
			}
			r.answer(event{Values: [][]byte{c.encode()}})
			if r.m.frozen {
				t.Errorf("%+v: it freezes again", tt)
			}
		}
	}
	faulty := newRig(t, 4, nil).m.sequencer
	faulty.Floor, faulty.Incarnation = rigTime+1_000_000, 0
	for name, value := range map[string][]byte{"gone": nil, "damaged": []byte("{"), "damaged, and fenced": faulty.encode()} {
		r := newRig(t, 4, nil)
		r.tokens()
		r.m.attached = true
		r.step(event{Kind: eventWentBack})
		r.later(1000)
		r.answer(event{Values: [][]byte{value}})
		if !r.m.frozen || r.request != nil || !errors.Is(r.m.Status().Err, ErrRolledBack) {
			t.Errorf("%s: frozen %t, %+v", name, r.m.frozen, r.m.Status())
		}
	}
}
