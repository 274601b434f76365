package grant

import (
	"errors"
	"testing"
)

// TestRenewal: what a renewal writes, and which record it replaces.
func TestRenewal(t *testing.T) {
	r := newRig(t, 4, nil)
	first := r.holding()
	r.m.hold.over, r.m.hold.gap, r.m.hold.spoiled = over{5, "before"}, span{1, 2}, span{maxTime - 2, maxTime - 1}
	a := r.renewing()
	n := r.read(a.Next)
	want := nodeRecord{
		Nonce: n.Nonce, Owner: "us", Until: r.wall + 6000, Wall: r.wall, State: flagHeld, Host: "h",
		From: maybe{rigTime, true}, Over: over{5, "before"}, Gap: span{1, 2}, Spoiled: span{maxTime - 2, maxTime - 1},
	}
	if n != want || string(a.Old) != string(first) || n.Nonce == r.read(first).Nonce || len(n.Nonce) != 32 {
		t.Errorf("it writes %+v over %s, want %+v over %s", n, a.Old, want, first)
	}
	r.answer(Event{Applied: true})
	if e := r.did(Extend); e == nil || e.Until != n.Until || e.Node != r.m.hold.node || r.m.Status().Until != n.Until || r.did(Begin) != nil {
		t.Errorf("applied: %+v", r.out)
	}
	if next := r.renewing(); string(next.Old) != string(a.Next) {
		t.Errorf("the next one is over %s, want %s", next.Old, a.Next)
	}

	// The window ends where a span begins that may already be used.
	r = newRig(t, 4, nil)
	r.holding()
	r.m.hold.limit = r.m.hold.until + 700
	if n := r.read(r.renewing().Next); n.Until != r.m.hold.until+700 {
		t.Errorf("until %d, want 700 more", n.Until-r.m.hold.until)
	}
}

// TestUnknownRenewal: an attempt that a read shows is replaced by a window that
// is no shorter, and counts once that is applied.
func TestUnknownRenewal(t *testing.T) {
	for _, back := range []int64{0, 1500, 5000} { // how far the clock goes back meanwhile
		r := newRig(t, 4, nil)
		first := r.holding()
		attempt := r.renewing()
		until := r.m.Status().Until
		r.answer(Event{Err: errNoAnswer})
		if a := r.asks(Get); a.Key != r.m.hold.key {
			t.Fatalf("it reads %q", a.Key)
		}
		if r.m.status.Err == nil || r.did(Extend) != nil {
			t.Errorf("unknown: %+v", r.out)
		}
		r.answer(Event{Values: [][]byte{attempt.Next}})
		if r.request != nil || r.did(Extend) != nil || r.m.Status().Until != until {
			t.Errorf("a read makes the window longer, or it does not wait: %+v, %+v", r.out, r.request)
		}
		r.wall -= back
		r.later(6000)
		a := r.asks(CAS)
		if n := r.read(a.Next); string(a.Old) != string(attempt.Next) || n.Until < r.read(attempt.Next).Until {
			t.Errorf("the clock goes back by %d: it writes until %d over %s", back, n.Until-until, a.Old)
		}
		// After a refusal, a read shows the current record.
		r.answer(Event{})
		r.asks(Get)
		switch back {
		case 0: // the attempt that was read was lost in a failover
			r.answer(Event{Values: [][]byte{first}})
			if a := r.asks(CAS); string(a.Old) != string(first) {
				t.Errorf("what was seen has gone, and it writes over %s, want %s", a.Old, first)
			}
		default:
			r.answer(Event{Values: [][]byte{attempt.Next}})
			r.later(1000)
			r.asks(CAS)
			r.answer(Event{Applied: true})
			if r.did(Extend) == nil {
				t.Errorf("applied: %+v", r.out)
			}
			if r.request != nil {
				r.answer(Event{Values: [][]byte{r.m.config}})
			}
			// Earlier writes are remembered: seeing one proves that the store
			// went back.
			for i, old := range [][]byte{first, attempt.Next} {
				c := &rig{t: t, m: r.m.Clone(), wall: r.wall, mono: r.mono, used: r.used}
				c.renewing()
				c.answer(Event{})
				c.answer(Event{Values: [][]byte{old}})
				if c.alarm() != RolledBack {
					t.Errorf("old record %d is back: %+v", i, c.out)
				}
			}
		}
	}
}

// TestReadBackLaw: how a member evaluates each record that can be in place of
// its own, after a refused renewal.
func TestReadBackLaw(t *testing.T) {
	type result struct {
		phase Phase
		alarm AlarmKind
		seals bool
		err   error
	}
	for _, tt := range []struct {
		name   string
		change func(n *nodeRecord, h *hold)
		want   result
	}{
		{"closing", func(n *nodeRecord, h *hold) { n.State = flagClosing }, result{phase: Leaving, seals: true}},
		{"closing by another", func(n *nodeRecord, h *hold) { n.Owner, n.State, n.Wall = "them", flagClosing, h.until+1 }, result{phase: Losing, alarm: TakenOver}},
		{"closing by another whose clock is not past our window", func(n *nodeRecord, h *hold) { n.Owner, n.State, n.Wall = "them", flagClosing, h.until }, result{phase: Leaving, alarm: Cloned, seals: true}},
		{"held by us, by a clock past our window", func(n *nodeRecord, h *hold) { n.Wall, n.Until = h.until+1, h.until+9 }, result{phase: Leaving, alarm: Cloned, seals: true}},
		{"held, and shorter", func(n *nodeRecord, h *hold) { n.Until = h.until - 1 }, result{phase: Holding, alarm: RolledBack, err: ErrRolledBack}},
		{"held, and no shorter", func(n *nodeRecord, h *hold) { n.Until = h.until }, result{phase: Leaving, alarm: Cloned, seals: true}},
		{"free, and shorter", func(n *nodeRecord, h *hold) { n.State, n.Until = flagFree, h.until-1 }, result{phase: Leaving, alarm: Cloned, seals: true}},
		{"of another whose clock is past our window", func(n *nodeRecord, h *hold) { n.Owner, n.Wall = "them", h.until+1 }, result{phase: Losing, alarm: TakenOver}},
		{"of another whose clock is not past our window", func(n *nodeRecord, h *hold) { n.Owner, n.Wall = "them", h.until }, result{phase: Leaving, alarm: Cloned, seals: true}},
		{"of another, shorter than ours", func(n *nodeRecord, h *hold) { n.Owner, n.Wall, n.Until = "them", h.until, h.until-1 }, result{phase: Leaving, alarm: Cloned, seals: true}},
		{"repaired, and we are in what was set apart", func(n *nodeRecord, h *hold) {
			n.Owner, n.Until, n.From, n.Gap, n.Spoiled = "them", h.from-10, maybe{h.from-20, true}, span{}, span{h.from, h.from + 1}
		}, result{phase: Losing, alarm: TakenOver}},
		{"repaired, and we are behind what was set apart", func(n *nodeRecord, h *hold) {
			n.Owner, n.Until, n.From, n.Gap, n.Spoiled = "them", h.from-10, maybe{h.from-20, true}, span{}, span{h.from - 1, h.from}
		}, result{phase: Leaving, alarm: Cloned, seals: true}},
		{"repaired, and we are before what was set apart", func(n *nodeRecord, h *hold) {
			n.Owner, n.Until, n.From, n.Gap, n.Spoiled = "them", h.from-10, maybe{h.from-20, true}, span{}, span{h.from + 1, h.from + 9}
		}, result{phase: Leaving, alarm: Cloned, seals: true}},
		{"fenced", func(n *nodeRecord, h *hold) { n.Owner, n.State, n.Until = "", flagFree, h.until+99 }, result{phase: Losing}},
		{"damaged", nil, result{phase: Losing, err: ErrDamaged}},
		{"gone", nil, result{phase: Holding, alarm: RolledBack, err: ErrRolledBack}},
	} {
		for _, unknown := range []bool{false, true} {
			r := newRig(t, 4, nil)
			value := r.holding()
			r.renewing()
			h := r.m.hold
			renewed := h.renewed
			if unknown {
				r.answer(Event{Err: errNoAnswer})
			} else {
				r.answer(Event{})
			}
			until := h.until
			switch tt.name {
			case "damaged":
				value = []byte("{")
			case "gone":
				value = nil
			default:
				n := r.read(value)
				n.Nonce = "another"
				tt.change(&n, h)
				value = n.encode()
			}
			r.answer(Event{Values: [][]byte{value}})
			got := result{phase: r.m.Status().Phase, alarm: r.alarm(), seals: r.did(Seal) != nil}
			if err := r.m.Status().Err; tt.want.err != nil && errors.Is(err, tt.want.err) {
				got.err = tt.want.err
			}
			if got != tt.want {
				t.Errorf("%s, unknown %t: %+v, want %+v; it is %+v", tt.name, unknown, got, tt.want, r.m.Status())
			}
			if a := r.did(Alarm); a != nil {
				want := AlarmInfo{Kind: got.alarm}
				switch got.alarm {
				case Cloned:
					want = AlarmInfo{Kind: Cloned, Node: h.node, From: renewed, Until: until}
					if r.m.owner == "us" {
						t.Errorf("%s: it keeps its owner's name", tt.name)
					}
				case TakenOver:
					want = AlarmInfo{Kind: TakenOver, Node: h.node, From: r.used, Until: until}
				}
				if a.Alarm != want {
					t.Errorf("%s: alarm %+v, want %+v", tt.name, a.Alarm, want)
				}
			}
			switch {
			case got.alarm == RolledBack:
				if r.request != nil {
					t.Errorf("%s: it asks for %+v at once", tt.name, r.request)
				}
				continue
			case tt.name == "damaged":
				r.later(6000)
			}
			if got.phase == Losing {
				// It looks for another node ID at once, and uses the rest of
				// its window.
				if a := r.asks(Get); a.Key != "v1/s/config" || r.did(Seal) != nil {
					t.Errorf("%s: it asks for %+v", tt.name, a)
				}
				continue
			}
			// It seals, and gives back only what is its own.
			r.step(Event{Kind: Sealed})
			if tt.name == "closing" {
				a := r.asks(CAS)
				if n := r.read(a.Next); string(a.Old) != string(value) || n.State != flagFree || n.Until != r.used {
					t.Errorf("%s: it writes %s over %s", tt.name, a.Next, a.Old)
				}
			} else if r.request == nil || r.request.Kind == CAS {
				t.Errorf("%s: after the seal it asks for %+v", tt.name, r.request)
			}
		}
	}
}

// TestStaleReads: a store that refuses a write but shows the record that the
// write should have replaced is not asked as fast as it answers.
func TestStaleReads(t *testing.T) {
	for _, known := range []bool{true, false} {
		r := newRig(t, 4, nil)
		shows := r.holding()
		attempt := r.renewing()
		if !known {
			shows = attempt.Next
			r.answer(Event{Err: errNoAnswer})
			r.answer(Event{Values: [][]byte{shows}})
			r.later(1000)
			r.asks(CAS)
		}
		r.answer(Event{})
		r.answer(Event{Values: [][]byte{shows}})
		if r.request != nil || r.m.Status().Err == nil || r.m.notBefore <= r.mono || r.m.Status().Phase != Holding {
			t.Errorf("it asks for %+v, and is %+v", r.request, r.m.Status())
		}
		r.later(1000)
		if a := r.asks(CAS); string(a.Old) != string(shows) {
			t.Errorf("it writes over %s, want %s", a.Old, shows)
		}
	}
	// At the end of the wait, to the millisecond. Until then the store's error
	// stays.
	for _, in := range []int64{0, 1} {
		r := newRig(t, 4, nil)
		shows := r.holding()
		r.renewing()
		r.answer(Event{})
		r.m.notBefore, r.m.status.Err = r.mono+in, errNoAnswer
		r.answer(Event{Values: [][]byte{shows}})
		if stale := errors.Is(r.m.Status().Err, errStale); stale != (in == 0) {
			t.Errorf("a renewal, to wait %d ms: %v", in, r.m.Status().Err)
		}
		r = newRig(t, 4, nil)
		r.claiming()
		r.answer(Event{Err: errNoAnswer})
		r.m.notBefore = r.mono + in
		r.answer(Event{})
		if stale := errors.Is(r.m.Status().Err, errStale); stale != (in == 0) {
			t.Errorf("a claim, to wait %d ms: %v", in, r.m.Status().Err)
		}
	}
	// A read without an answer also counts as a failure.
	r := newRig(t, 4, nil)
	r.holding()
	r.renewing()
	r.answer(Event{})
	r.answer(Event{Err: errNoAnswer})
	if s := r.m.Status(); r.request != nil || s.Err != errNoAnswer || r.m.notBefore <= r.mono || !r.m.renewFailed {
		t.Errorf("no answer: it asks for %+v, and is %+v", r.request, s)
	}
	// The same with a claim.
	r = newRig(t, 4, nil)
	r.claiming()
	r.answer(Event{Err: errNoAnswer})
	r.answer(Event{})
	r.later(1000)
	r.asks(CAS)
	r.answer(Event{})
	r.answer(Event{})
	if r.request != nil || r.m.Status().Err == nil || r.m.notBefore <= r.mono {
		t.Errorf("a claim: it asks for %+v, and is %+v", r.request, r.m.Status())
	}
}

// TestReadBackForgives: reading a record ends a wait for the store, because it
// has answered.
func TestReadBackForgives(t *testing.T) {
	r := newRig(t, 4, nil)
	first := r.holding()
	r.renewing()
	for range 5 {
		r.answer(Event{Err: errNoAnswer})
		r.answer(Event{Values: [][]byte{first}})
		r.later(1000)
		r.asks(CAS)
	}
	if r.m.failures < 5 {
		t.Fatalf("%d failures", r.m.failures)
	}
	r.answer(Event{Err: errNoAnswer})
	n := r.read(first)
	n.Owner, n.Wall, n.Nonce = "them", r.m.hold.until+1, "another"
	r.answer(Event{Values: [][]byte{n.encode()}})
	if r.m.failures != 0 || r.request == nil {
		t.Errorf("%d failures in a row, and it asks for %+v", r.m.failures, r.request)
	}
}
