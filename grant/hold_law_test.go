package grant

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
)

// TestEndLaw: no written window ends beyond max(the mark, now + MaxAhead +
// window), however far the generator is ahead.
func TestEndLaw(t *testing.T) {
	r := newRig(t, 4, nil)
	for _, used := range []int64{never, rigTime - 1000, rigTime, rigTime + 49, rigTime + 50, rigTime + 51, rigTime + 600_000} {
		for _, mark := range []int64{never, rigTime, rigTime + 6000, rigTime + 6050, rigTime + 6051, maxTime} {
			r.m.used = used
			at := max(used, rigTime)
			want := max(mark, min(at, rigTime+50)+6000)
			if got := r.m.end(mark); got != want {
				t.Errorf("used %d, mark %d: %d, want %d", used-rigTime, mark-rigTime, got-rigTime, want-rigTime)
			}
		}
	}
	r.m.wall, r.m.used = maxTime-5999, never
	if got := r.m.end(never); got != maxTime {
		t.Errorf("at the end of all times: %d", got)
	}
}

// TestMarginLaw: a window is renewed when a third of it is used, plus or minus
// a fifth of that.
func TestMarginLaw(t *testing.T) {
	for _, window := range []int64{100, 6000, 60_000, 59_999} {
		r := newRig(t, 4, func(c *configRecord) { c.Window, c.LongestWindow = window, window })
		third := window / 3
		fifth := third / 5
		seen := make(map[int64]bool)
		for r.random = range uint64(2*fifth + 1) {
			used := window - r.m.newMargin()
			if used < third-fifth || used > third+fifth {
				t.Fatalf("window %d: renewed when %d is used", window, used)
			}
			seen[used] = true
		}
		if len(seen) != int(2*fifth+1) {
			t.Errorf("window %d: %d different margins, want %d", window, len(seen), 2*fifth+1)
		}
	}
}

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

// TestOpenLaw: a window is open by the clock, or if it would be open had the
// clock not been set.
func TestOpenLaw(t *testing.T) {
	for _, until := range []int64{-1, 0, 1} {
		for _, untilAt := range []int64{-1, 0, 1} {
			r := newRig(t, 4, nil)
			r.m.hold = &hold{until: r.wall + until, untilAt: r.mono + untilAt}
			if got := r.m.open(); got != (until > 0 || untilAt > 0) {
				t.Errorf("until %d by the clock, and %d by the steady one: open %t", until, untilAt, got)
			}
		}
	}
	r := newRig(t, 4, nil)
	r.holding()
	if h := r.m.hold; h.until != r.wall+6000 || h.untilAt != r.mono+6000 {
		t.Errorf("a new window: until %d, %d", h.until-r.wall, h.untilAt-r.mono)
	}
	r.renewing()
	r.answer(event{Applied: true})
	if h := r.m.hold; h.until != r.wall+6000 || h.untilAt != r.mono+6000 {
		t.Errorf("a renewed window: until %d, %d", h.until-r.wall, h.untilAt-r.mono)
	}
}

// TestAdoptLaw: what an applied renewal discards and keeps.
func TestAdoptLaw(t *testing.T) {
	r := newRig(t, 4, nil)
	var written [][]byte
	written = append(written, r.holding())
	for range 40 {
		a := r.renewing()
		written = append(written, a.Next)
		r.answer(event{Applied: true})
		if r.request != nil { // the configuration, which is read from time to time
			r.answer(event{Values: [][]byte{r.m.config}})
		}
	}
	// The last 16 records before the current one prove that the store went
	// back; an older one looks like a clone's.
	for i, value := range written[:len(written)-1] {
		c := &rig{t: t, m: r.m.clone(), wall: r.wall, mono: r.mono, used: r.used}
		c.renewing()
		c.answer(event{})
		n := c.read(value)
		n.Until = c.m.hold.until // so that the end does not reveal it
		c.m.hold.old = slices.Clone(c.m.hold.old)
		for j, old := range c.m.hold.old {
			if string(old) == string(value) {
				c.m.hold.old[j] = n.encode()
			}
		}
		c.answer(event{Values: [][]byte{n.encode()}})
		want := alarmCloned
		if i >= len(written)-1-oldKept {
			want = alarmRolledBack
		}
		if got := c.alarm(); got != want {
			t.Errorf("record %d of %d: alarm %d, want %d", i, len(written), got, want)
		}
	}
	if len(r.m.hold.old) != oldKept || len(r.m.hold.attempts) != 0 {
		t.Errorf("it remembers %d records and %d attempts", len(r.m.hold.old), len(r.m.hold.attempts))
	}
	// A window never shrinks.
	until := r.m.hold.until
	for _, to := range []int64{until, until - 1} {
		untilAt := r.m.hold.untilAt
		r.m.out = nil
		r.m.adopt([]byte("x"), to)
		if r.m.hold.until != until || r.m.hold.untilAt != untilAt || len(r.m.out) > 0 {
			t.Errorf("a renewal to %d ms after the end: it shrank by %d, %+v", to-until, until-r.m.hold.until, r.m.out)
		}
	}
	// The configuration is read with a renewal if it is due soon.
	for _, in := range []int64{9_999, 10_000} {
		c := r.m.clone()
		c.configAt = c.mono + in
		if c.adopt([]byte("x"), until); (c.configAt == c.mono) != (in < 10_000) {
			t.Errorf("it should be read in %d ms, but is read in %d", in, c.configAt-c.mono)
		}
	}
	for _, change := range []func(*hold){func(h *hold) { h.sealed = true }, func(h *hold) { h.sealing = true }} {
		c := r.m.clone()
		change(c.hold)
		c.adopt([]byte("z"), until+1)
		if slices.ContainsFunc(c.out, func(a action) bool { return a.Kind == actionExtend }) || c.hold.until != until+1 {
			t.Errorf("a sealed window is extended: %+v", c.out)
		}
	}
	for range 2 * attemptsKept {
		r.m.hold.attempts = remember(r.m.hold.attempts, []byte(fmt.Sprint(len(r.m.hold.attempts))))
	}
	if n := len(r.m.hold.attempts); n != attemptsKept {
		t.Errorf("it remembers %d attempts, want %d", n, attemptsKept)
	}
	last := remember([][]byte{{1}, {2}}, []byte{3})
	if len(last) != 3 || last[2][0] != 3 {
		t.Errorf("remembered: %v", last)
	}
	many := make([][]byte, attemptsKept)
	for i := range many {
		many[i] = []byte{byte(i)}
	}
	if many = remember(many, []byte{255}); many[0][0] != 1 || many[attemptsKept-1][0] != 255 {
		t.Errorf("the oldest is not the one that is forgotten: %v", many)
	}
}

// TestProbe: only a renewal that raises the mark by more than two windows reads
// other clocks first.
func TestProbe(t *testing.T) {
	for _, by := range []int64{12_000, 12_001} {
		for _, storeClock := range []bool{false, true} {
			r := newRig(t, 4, nil)
			r.holding()
			r.m.set.storeClock = storeClock
			r.m.clocks = clocks{}
			r.used = never
			r.wall, r.mono = r.wall+by, r.mono+by
			r.m.configAt = r.mono + 1_000_000
			r.m.hold.until = r.wall + 6000 - by
			r.step(event{Kind: eventDemand})
			if by == 12_000 {
				r.asks(actionCAS)
				continue
			}
			told := func() {
				if r.request != nil && r.request.Kind == actionTime {
					r.answer(event{Err: errNoAnswer})
				}
			}
			if storeClock {
				r.asks(actionTime)
			}
			told()
			if a := r.asks(actionGetMany); len(a.Keys) != picks {
				t.Errorf("it reads %v", a.Keys)
			}
			// It asks again after an error, and a clock far behind is rejected.
			keys := r.request.Keys
			r.answer(event{Err: errNoAnswer})
			if r.request != nil || !errors.Is(r.m.Status().Err, errNoAnswer) || r.m.notBefore <= r.mono || !r.m.renewFailed {
				t.Errorf("an error: %+v, %+v", r.m.Status(), r.request)
			}
			r.later(3000)
			told()
			r.asks(actionGetMany)
			ahead := r.record(func(n *nodeRecord) { n.State, n.Until, n.Wall = flagHeld, r.wall+20_000, r.wall+10_001 })
			e := event{Keys: keys}
			for range keys {
				e.Values = append(e.Values, ahead)
			}
			r.answer(e)
			if !errors.Is(r.m.Status().Err, ErrClockBehind) || r.request != nil || r.m.notBefore != r.mono+1000 {
				t.Errorf("far behind: %+v, %+v, wait %d", r.m.Status(), r.request, r.m.notBefore-r.mono)
			}
			r.later(3000)
			told()
			r.asks(actionGetMany)
			r.answer(event{Keys: keys, Values: make([][]byte, len(keys))})
			if a := r.asks(actionCAS); a.Key != r.m.hold.key || r.read(a.Next).Until != r.m.hold.nextTo {
				t.Errorf("it writes %s %s, and not its renewal", a.Key, a.Next)
			}
			// Only once: the next large renewal asks again.
			if r.m.probed {
				t.Error("it will not ask again")
			}
		}
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

// TestFencedLaw: a new floor seals a window that ends above it, and the alarm
// contains the time span; a window that ends at or below it is used to its end.
func TestFencedLaw(t *testing.T) {
	for _, by := range []int64{-6001, -6000, -5999, -1, 0, 1} { // the floor, relative to the window's end
		r := newRig(t, 4, nil)
		r.holding()
		h := r.m.hold
		c := r.m.sequencer
		c.Floor, c.Incarnation, c.Nonce = h.until+by, 2, "fence"
		r.step(event{Kind: eventHint})
		r.asks(actionGet)
		r.answer(event{Values: [][]byte{c.encode()}})
		a := r.did(actionAlarm)
		if by >= 0 {
			if a != nil || r.did(actionSeal) != nil || r.m.Status().Phase != Losing {
				t.Errorf("a floor %d above the window: %+v", by, r.out)
			}
			continue
		}
		want := alarm{Kind: alarmFenced, Node: h.node, From: max(c.Floor, h.from), Until: h.until}
		if a == nil || a.Alarm != want || r.did(actionSeal) == nil {
			t.Errorf("a floor %d in the window: %+v, want %+v", by, r.out, want)
		}
		r.step(event{Kind: eventSealed})
		if r.request != nil && r.request.Kind == actionCAS {
			t.Errorf("it gives back what is another's: %+v", r.request)
		}
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

// TestDropLaw: what is recorded about a claim that was given back, or was not.
func TestDropLaw(t *testing.T) {
	for _, attached := range []bool{false, true} {
		for _, e := range []event{{Applied: true}, {}, {Err: errNoAnswer}, {Applied: true, Err: errNoAnswer}} {
			for _, before := range []bool{false, true} {
				r := newRig(t, 4, nil)
				r.m.attached, r.m.claim, r.m.op, r.m.gaveBack = attached, &claim{key: r.key(1)}, opDrop, before
				r.request = &action{Kind: actionCAS}
				r.answer(e)
				if want := e.Applied && e.Err == nil; r.m.claim != nil || r.m.gaveBack != want {
					t.Errorf("wanted %t, %+v: given back %t", attached, e, r.m.gaveBack)
				}
				s := r.m.Status()
				if !attached && (s.Phase != Idle || s.Err != e.Err) || attached && (r.m.kept != nil || s.Phase != Joining) {
					t.Errorf("wanted %t, %+v: %+v, %v", attached, e, s, r.m.kept)
				}
			}
		}
	}
	// A read of a claim that is no longer wanted, without an answer.
	r := newRig(t, 4, nil)
	r.claiming()
	r.answer(event{Err: errors.New("another")})
	r.asks(actionGet)
	r.step(event{Kind: eventRelease})
	r.m.gaveBack = true
	r.answer(event{Err: errNoAnswer})
	if s := r.m.Status(); s.Phase != Idle || s.Err != errNoAnswer || r.m.gaveBack {
		t.Errorf("%+v, given back %t", s, r.m.gaveBack)
	}
	// A new request discards it.
	r.step(event{Kind: eventAttach})
	r.answer(event{Err: errNoAnswer})
	r.step(event{Kind: eventRelease})
	if s := r.m.Status(); s.Phase != Idle || s.Err != nil {
		t.Errorf("released before a number was claimed: %+v", s)
	}
	// Nor is it an error if a node ID is wanted again.
	r.m.attached, r.m.hold = true, &hold{}
	r.m.forget(false, errNoAnswer)
	if r.m.kept != nil {
		t.Errorf("another is wanted, and it says %v", r.m.kept)
	}
}

// TestWallOfRecords: a held record contains a clock that is consistent with its
// window, and a record that is given back contains the current clock.
func TestWallOfRecords(t *testing.T) {
	r := newRig(t, 4, nil)
	for _, until := range []int64{6050, 6051, 90_000} {
		for _, state := range []string{flagHeld, flagClosing, flagFree} {
			n := r.read(r.m.node(state, r.wall+until, nodeRecord{}))
			want := r.wall
			if state != flagFree {
				want = max(want, r.wall+until-6050)
			}
			if n.Wall != want {
				t.Errorf("%s until %d: the clock is %d, want %d", state, until, n.Wall-r.wall, want-r.wall)
			}
		}
	}
}

// TestLostIsUsed: the rest of a lost node ID's window is used, even if the
// clock was set back.
func TestLostIsUsed(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := newRig(t, 4, nil)
		r.holding()
		r.m.hold.lost = lost
		r.wall, r.m.used = r.wall-60_000, never
		if r.later(1); (r.did(actionSeal) != nil) == lost {
			t.Errorf("lost %t: %+v", lost, r.out)
		}
	}
}

// TestEarlyLaw: an unused window that begins far ahead of the clock is useless.
func TestEarlyLaw(t *testing.T) {
	for _, by := range []int64{1049, 1050, 1051} {
		for _, used := range []int64{-1, 0, 1} { // since the window begins
			r := newRig(t, 4, nil)
			from := r.wall + by
			r.m.used = from + used
			if got, want := r.m.early(from), by > 1050 && used <= 0; got != want {
				t.Errorf("it begins in %d ms, used %d: early %t", by, used, got)
			}
		}
	}
}

// TestSealedHearsNothing: a fence does not affect a node ID that is sealed.
func TestSealedHearsNothing(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		r := newRig(t, 4, nil)
		r.holding()
		r.m.hold.sealed, r.m.out = sealed, nil
		r.m.fenced(r.m.hold.from)
		if alarmed := len(r.m.out) > 0; alarmed == sealed || !r.m.hold.lost || r.m.hold.closing == sealed {
			t.Errorf("sealed %t: %+v", sealed, r.m.out)
		}
	}
}

// TestSwitchKeepsOrder: a node ID that replaces another begins above what was
// used, by this generator and by sealed ones.
func TestSwitchKeepsOrder(t *testing.T) {
	r := newRig(t, 4, nil)
	r.holding()
	r.used = rigTime + 5500
	r.step(event{Kind: eventRelease})
	r.step(event{Kind: eventSealed})
	r.answer(event{Applied: true})
	r.used = never // the next generator has used nothing
	r.wall, r.mono = r.wall+100, r.mono+100
	claim := r.claiming()
	r.answer(event{Applied: true})
	r.answer(event{Values: [][]byte{claim.Next, r.m.config}})
	if b := r.did(actionBegin); b == nil || b.From != rigTime+5500 {
		t.Errorf("%+v, want one from %d", b, int64(rigTime+5500))
	}
}

// TestSettledLaw: a successful answer ends all waits.
func TestSettledLaw(t *testing.T) {
	r := newRig(t, 4, nil)
	m := r.m
	m.failures, m.notBefore, m.demand, m.isRefused, m.crowded, m.droughts, m.listAfter, m.status.Err = 1, 2, true, true, true, 3, 4, errNoAnswer
	m.refusals = 5
	m.settled()
	if m.failures != 0 || m.refusals != 0 || m.notBefore != 0 || m.demand || m.isRefused || m.crowded || m.droughts != 0 || m.listAfter != 0 || m.status.Err != nil {
		t.Errorf("%+v", m)
	}
}

// TestConfigIsRead: while some of a window may be left, the configuration is
// read every 16 to 20 s, and after a renewal if it was last read long ago.
func TestConfigIsRead(t *testing.T) {
	for _, random := range []uint64{0, 1<<64 - 1, 4000, 3999} {
		r := newRig(t, 4, nil)
		r.random = random
		if !r.m.readConfig(r.m.config) {
			t.Fatal(r.m.status.Err)
		}
		if in := r.m.configAt - r.mono; in > 20_000 || in < 10_000 {
			t.Errorf("read again in %d ms", in)
		}
	}
	r := newRig(t, 4, nil)
	r.holding()
	last := r.mono
	for range 300 {
		r.wall, r.mono = r.wall+100, r.mono+100
		r.used = r.wall
		r.step(event{Kind: eventTick})
		for r.request != nil {
			switch a := *r.request; a.Kind {
			case actionCAS:
				r.answer(event{Applied: true})
			case actionGet:
				if a.Key != "v1/s/config" {
					t.Fatalf("it reads %s", a.Key)
				}
				last = r.mono
				r.answer(event{Values: [][]byte{r.m.config}})
			default:
				t.Fatalf("it asks for %+v", a)
			}
		}
		if r.mono-last > 20_000 {
			t.Fatalf("the configuration was not read for %v", time.Duration(r.mono-last)*time.Millisecond)
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
