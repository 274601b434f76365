package grant

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
)

// TestDueLaw: a renewal is written when an attempt must be confirmed. It is
// also written if the mark then grows by a twelfth of the window, when less
// than the margin is left and something was used since the last one, or when a
// caller waits.
func TestDueLaw(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	near := func(v int64) int64 { return v + pickOne[int64](random, -1, 0, 1, random.Int64N(6000)-3000) }
	count := 0
	for range 20_000 {
		window := pickOne[int64](random, 100, 6000, 6000)
		r := newRig(t, 4, func(c *configRecord) { c.Window, c.LongestWindow = window, window })
		m := r.m
		h := &hold{until: near(rigTime + window), limit: maxMark, margin: near(window * 2 / 3), renewed: near(rigTime)}
		m.hold, m.used, m.demand = h, near(rigTime), random.IntN(2) == 0
		switch random.IntN(4) {
		case 0:
			h.limit = h.until + random.Int64N(window/4)
		case 1:
			h.limit = h.until + window/12 - 1 + random.Int64N(2)
		}
		if random.IntN(8) == 0 {
			h.seen = []byte("x")
		}
		at := max(m.wall, m.used)
		if random.IntN(8) == 0 {
			h.margin = h.until - at
		}
		grows := min(max(h.until, min(at, m.wall+50)+window), h.limit)-h.until >= window/12
		low := h.until-at < h.margin
		want := h.seen != nil || grows && (m.demand || low && m.used > h.renewed)
		if got := m.due(); got != want {
			t.Fatalf("%+v, used %d, demand %t: due %t, want %t", *h, m.used-rigTime, m.demand, got, want)
		}
		if want {
			count++
		}
		ends := h.limit != maxMark && h.limit-h.until < window/12 && low
		if got := m.ends(); got != ends {
			t.Fatalf("%+v, used %d: ends %t, want %t", *h, m.used-rigTime, got, ends)
		}
		h.lost = random.IntN(8) == 0
		if got := m.overdue(); got != (want || h.lost) {
			t.Fatalf("overdue %t, due %t, lost %t", got, want, h.lost)
		}
	}
	if count < 1000 {
		t.Errorf("due in %d cases", count)
	}
	r := newRig(t, 4, nil)
	r.m.sequencer.Window = 6
	if got := r.m.leastGrowth(); got != 1 {
		t.Errorf("a window grows by %d ms, want 1 at least", got)
	}
	if r.m.overdue() {
		t.Error("overdue without a number")
	}
}

// TestReleaseLaw: what is given back, and what follows each answer.
func TestReleaseLaw(t *testing.T) {
	leaving := func(used int64) *rig {
		r := newRig(t, 4, nil)
		r.holding()
		r.used = used
		r.step(event{Kind: eventRelease})
		if s := r.did(actionSeal); s == nil || s.Node != r.m.hold.node || r.request != nil || r.m.Status().Phase != Leaving {
			t.Fatalf("it does not seal before it gives back: %+v", r.out)
		}
		r.step(event{Kind: eventSealed})
		r.asks(actionCAS)
		return r
	}
	// The mark is the end of what was used, but within the grant.
	for used, want := range map[int64]int64{never: rigTime, rigTime - 1: rigTime, rigTime: rigTime, rigTime + 77: rigTime + 77, rigTime + 6000: rigTime + 6000, rigTime + 6001: rigTime + 6000} {
		r := leaving(used)
		a := r.asks(actionCAS)
		n := r.read(a.Next)
		if n.Until != want || n.State != flagFree || n.Owner != "us" || string(a.Old) != string(r.m.hold.record) {
			t.Errorf("used %d: %+v over %s, want until %d", used-rigTime, n, a.Old, want-rigTime)
		}
		r.answer(event{Applied: true})
		if s := r.m.Status(); s.Phase != Idle || r.request != nil || r.m.hold != nil {
			t.Errorf("given back: %+v", s)
		}
		if r.m.prefer < 0 {
			t.Error("it does not remember the number")
		}
	}
	own := func(r *rig, state string) []byte {
		n := r.read(r.m.hold.record)
		n.State, n.Nonce = state, "another"
		return n.encode()
	}
	for _, tt := range []struct {
		name string
		do   func(r *rig) (old string) // the record that a second write replaces; "-" if there is no second write
	}{
		{"not sent", func(r *rig) string {
			r.answer(event{Err: ErrNotSent})
			return string(r.m.hold.record)
		}},
		{"unknown, and not applied", func(r *rig) string {
			r.answer(event{Err: errNoAnswer})
			r.asks(actionGetMany)
			r.answer(event{Values: [][]byte{r.m.hold.record}})
			return string(r.m.hold.record)
		}},
		{"unknown, and applied", func(r *rig) string {
			next := r.request.Next
			r.answer(event{Err: errNoAnswer})
			r.answer(event{Values: [][]byte{next}})
			if !r.m.gaveBack {
				t.Error("it was given back, and that is not noted")
			}
			return "-"
		}},
		{"refused, as it was closed by a record that is damaged", func(r *rig) string {
			value := strings.Replace(string(own(r, flagClosing)), `"nonce":"another"`, `"nonce":""`, 1)
			r.answer(event{})
			r.answer(event{Values: [][]byte{[]byte(value)}})
			return "-"
		}},
		{"unknown, and the store does not say", func(r *rig) string {
			r.answer(event{Err: errNoAnswer})
			r.answer(event{Err: errNoAnswer})
			return string(r.m.hold.record)
		}},
		{"refused, as a renewal was applied late", func(r *rig) string {
			r.m.hold.attempts = [][]byte{[]byte("late")}
			r.answer(event{})
			r.answer(event{Values: [][]byte{[]byte("late")}})
			return "late"
		}},
		{"refused, as it was closed", func(r *rig) string {
			value := own(r, flagClosing)
			r.answer(event{})
			r.answer(event{Values: [][]byte{value}})
			return string(value)
		}},
		{"refused, as another has closed it", func(r *rig) string {
			value := strings.Replace(string(own(r, flagClosing)), `"us"`, `"them"`, 1)
			r.answer(event{})
			r.answer(event{Values: [][]byte{[]byte(value)}})
			return "-"
		}},
		{"refused, as our name holds it", func(r *rig) string {
			value := own(r, flagHeld)
			r.answer(event{})
			r.answer(event{Values: [][]byte{value}})
			return "-"
		}},
		{"refused, as it is damaged", func(r *rig) string {
			r.answer(event{})
			r.answer(event{Values: [][]byte{[]byte("{")}})
			return "-"
		}},
		{"refused, as it is gone", func(r *rig) string {
			r.answer(event{})
			r.answer(event{})
			return "-"
		}},
	} {
		r := leaving(rigTime + 5)
		first := r.request.Next
		want := tt.do(r)
		if r.request == nil && want != "-" {
			if r.m.notBefore <= r.mono || r.m.Status().Err == nil {
				t.Errorf("%s: it neither waits nor says why: %+v", tt.name, r.m.Status())
			}
			r.later(6000)
		}
		if want == "-" {
			if r.m.hold != nil || r.m.Status().Phase != Idle || r.request != nil {
				t.Errorf("%s: %+v, %+v", tt.name, r.m.Status(), r.request)
			}
			continue
		}
		a := r.asks(actionCAS)
		if n := r.read(a.Next); string(a.Old) != want || n.State != flagFree || n.Until != rigTime+5 || string(a.Next) == string(first) {
			t.Errorf("%s: it writes %s over %s, want over %s", tt.name, a.Next, a.Old, want)
		}
	}
	// If nothing was used, a repair may have moved the mark below where the
	// grant began: that is no proof that the store went back.
	r := leaving(never)
	r.answer(event{Err: errNoAnswer})
	n := r.read(r.m.hold.record)
	n.free(0)
	n.Until, n.Gap = rigTime-1, span{}
	r.answer(event{Values: [][]byte{n.encode()}})
	if r.m.frozen || r.did(actionAlarm) != nil || r.m.Status().Phase != Idle {
		t.Errorf("repaired since: %+v, frozen %t", r.out, r.m.frozen)
	}
	// It also forgets earlier failures.
	r = leaving(never)
	r.m.failures, r.m.notBefore, r.m.status.Err, r.m.attached = 5, r.mono+4000, errNoAnswer, true
	r.answer(event{Applied: true})
	if s := r.m.Status(); s.Phase != Joining || s.Err != nil || r.m.failures != 0 || r.request == nil {
		t.Errorf("given back, and another is wanted: %+v, %d failures, %+v", s, r.m.failures, r.request)
	}
	r = leaving(never)
	r.m.failures = 5
	r.answer(event{})
	r.answer(event{})
	if r.m.failures != 0 {
		t.Errorf("lost, and %d failures are remembered", r.m.failures)
	}
	// 20 attempts, and no more until it is requested again.
	r = leaving(never)
	tries := 0
	for range 100 {
		if r.request != nil {
			tries++
			r.answer(event{Err: ErrNotSent})
		}
		if r.m.hold == nil {
			break
		}
		r.later(6000)
	}
	if tries != 20 || r.m.Status().Phase != Idle {
		t.Errorf("%d tries, and it is %+v", tries, r.m.Status())
	}
	r = leaving(never)
	for range 19 {
		r.answer(event{Err: ErrNotSent})
		r.later(6000)
	}
	r.answer(event{Err: ErrNotSent})
	r.step(event{Kind: eventRelease})
	if r.request == nil {
		t.Error("asked for again, it does not try again")
	}
}

// TestWaitingLaw: a process that has made IDs for times beyond the window of
// its node ID reports that, and begins to use the node ID when a renewal
// reaches these times.
func TestWaitingLaw(t *testing.T) {
	for _, tt := range []struct {
		used, from, until int64 // since now
		waits             bool
		wait              time.Duration // in the error
	}{
		{used: 6000, from: 0, until: 6000, waits: true, wait: 5950 * time.Millisecond},
		{used: 5999, from: 0, until: 6000},
		{used: 9000, from: 0, until: 6000, waits: true, wait: 8950 * time.Millisecond},
		{used: -9000, from: 40, until: 40, waits: true, wait: time.Millisecond},
		{used: -9000, from: 55, until: 55, waits: true, wait: 5 * time.Millisecond},
	} {
		r := newRig(t, 4, nil)
		r.tokens()
		r.m.attached = true
		r.m.used = r.wall + tt.used
		r.m.claim = &claim{node: 3, key: r.key(3), next: []byte("r"), from: r.wall + tt.from, until: r.wall + tt.until, limit: maxMark}
		r.m.out = nil
		r.m.begin()
		r.m.report()
		begun := slices.ContainsFunc(r.m.out, func(a action) bool { return a.Kind == actionBegin })
		var clock *firn.ClockError
		if begun == tt.waits || r.m.hold.waiting != tt.waits || errors.As(r.m.Status().Err, &clock) != tt.waits || r.m.Status().Phase != Holding {
			t.Fatalf("%+v: begun %t, %+v", tt, begun, r.m.Status())
		}
		if !tt.waits {
			continue
		}
		last := r.wall + max(tt.used, tt.from)
		if clock.Wait != tt.wait || !clock.Now.Equal(timeOf(r.wall)) || !clock.Last.Equal(timeOf(last)) || !strings.Contains(r.m.Status().Err.Error(), "sequencer s:") {
			t.Errorf("%+v: %+v, %v", tt, clock, r.m.Status().Err)
		}
		// It does not hide another error.
		r.m.status.Err = errNoAnswer
		if r.m.report(); r.m.Status().Err != errNoAnswer {
			t.Errorf("%+v: the store's error is %v", tt, r.m.Status().Err)
		}
		for _, to := range []int64{last, last + 1} {
			c := r.m.clone()
			c.adopt([]byte("r2"), to)
			i := slices.IndexFunc(c.out, func(a action) bool { return a.Kind == actionBegin })
			if (i >= 0) != (to > last) || slices.ContainsFunc(c.out, func(a action) bool { return a.Kind == actionExtend }) {
				t.Errorf("%+v: renewed to %d: %+v", tt, to-r.wall, c.out)
			}
			if i >= 0 && (c.out[i].From != last || c.out[i].Until != to || c.hold.waiting) {
				t.Errorf("%+v: it begins as %+v, want from %d", tt, c.out[i], last)
			}
		}
	}
}

// TestFencedSealsAtOnce: a member that learns of a fence below the end of its
// window stops, however long it has to wait for another node ID, and whatever
// else was read.
func TestFencedSealsAtOnce(t *testing.T) {
	for _, lost := range []bool{false, true} { // and wants another number
		for _, state := range []State{Attached, Detaching, Destroyed} {
			r := newRig(t, 4, func(c *configRecord) { c.Window, c.LongestWindow = 600_000, 600_000 })
			r.holding()
			r.m.hold.lost = lost
			r.later(configEvery)
			if a := r.asks(actionGet); a.Key != configKey("s") {
				t.Fatalf("it reads %s", a.Key)
			}
			c := r.m.sequencer
			c.State, c.Floor, c.Incarnation, c.Nonce = state, r.wall, c.Incarnation+1, "fenced"
			r.answer(event{Values: [][]byte{c.encode()}})
			if r.did(actionSeal) == nil {
				t.Errorf("lost %t, the sequencer is fenced and %v, and the generator is not sealed", lost, state)
			}
		}
	}
}
