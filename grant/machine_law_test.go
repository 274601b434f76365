package grant

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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
		{name: "another max-ahead than is wanted", change: func(c *configRecord) {}, set: func(s *Settings) {
			s.Config = &Config{Layout: layout, MaxAhead: 51 * time.Millisecond, Window: 7 * time.Second}
		}, err: ErrMismatch, says: "51ms"},
		{name: "detaching", change: func(c *configRecord) { c.State = Detaching }, err: ErrDetached, says: "s is detaching"},
		{name: "destroyed", change: func(c *configRecord) { c.State = Destroyed }, err: ErrDestroyed, says: "s is destroyed"},
		{name: "all of the numbers", change: func(c *configRecord) {}, set: func(s *Settings) { s.AllNodes, s.Lo, s.Hi = false, 0, 15 }},
		{name: "all of the numbers, whatever else is said", change: func(c *configRecord) {}, set: func(s *Settings) { s.Lo, s.Hi = 5, 7 }},
		{name: "one number", change: func(c *configRecord) {}, set: func(s *Settings) { s.AllNodes, s.Lo, s.Hi = false, 15, 15 }},
		{name: "a number too many", change: func(c *configRecord) {}, set: func(s *Settings) { s.AllNodes, s.Lo, s.Hi = false, 15, 16 }, says: "15..16 do not fit"},
		{name: "no numbers", change: func(c *configRecord) {}, set: func(s *Settings) { s.AllNodes, s.Lo, s.Hi = false, 5, 4 }, says: "5..4 do not fit"},
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
			if lo, hi := r.m.lo, r.m.hi; r.m.set.AllNodes && (lo != 0 || hi != 15) || !r.m.set.AllNodes && (lo != r.m.set.Lo || hi != r.m.set.Hi) {
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
	m := newMachine(Settings{Name: "s", AllNodes: true, random: func() uint64 { return 0 }})
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
