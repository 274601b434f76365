package grant

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// begins answers the second read of the configuration, and expects the claim to
// be used.
func (r *rig) begins(claim action) {
	r.t.Helper()
	r.asks(actionGetMany)
	r.answer(event{Values: [][]byte{claim.Next, r.m.config}})
	n := r.read(claim.Next)
	if b := r.did(actionBegin); b == nil || b.Until != n.Until || r.m.Status().Phase != Holding {
		r.t.Fatalf("it does not begin: %+v", r.out)
	}
}

// startsAnew expects the machine to hold and claim nothing, and to read the
// configuration, after a wait or at once.
func (r *rig) startsAnew(what string, waits bool) {
	r.t.Helper()
	if r.m.claim != nil || r.m.hold != nil {
		r.t.Fatalf("%s: it has %+v, %+v", what, r.m.claim, r.m.hold)
	}
	if waits {
		if r.request != nil || r.m.notBefore <= r.mono || r.m.Status().Err == nil {
			r.t.Fatalf("%s: it neither waits nor says why: %+v, %+v", what, r.request, r.m.Status())
		}
		r.later(6000)
	}
	if a := r.asks(actionGet); a.Key != "v1/s/config" {
		r.t.Fatalf("%s: it reads %s", what, a.Key)
	}
}

// drops expects a claim to be given back: over a value, to where it began.
func (r *rig) drops(what, over string, from int64) {
	r.t.Helper()
	a := r.asks(actionCAS)
	if n := r.read(a.Next); string(a.Old) != over || n.State != flagFree || n.Until != from || n.Owner != "us" || r.did(actionBegin) != nil {
		r.t.Fatalf("%s: it writes %s over %s, want it free until %d over %s", what, a.Next, a.Old, from, over)
	}
	r.answer(event{Err: errNoAnswer}) // this changes nothing
	if r.m.claim != nil || r.m.hold != nil {
		r.t.Fatalf("%s: it continues with %+v, %+v", what, r.m.claim, r.m.hold)
	}
}

// TestClaimWrites: what a claim writes, and which record it replaces.
func TestClaimWrites(t *testing.T) {
	for _, tt := range []struct {
		name       string
		mark, used int64 // since now; a mark of never means no record
		spoiled    span
		from, to   int64
	}{
		{"a new number", never, never, span{}, 0, 6000},
		{"one given back long ago", -50_000, never, span{}, 0, 6000},
		{"one given back ahead of the clock", 40, never, span{}, 40, 6040},
		{"after much was used", never, 30, span{}, 0, 6030},
		{"after more was used than may be", never, 5000, span{}, 0, 6050},
		{"one with a span that was used", -10, never, span{5999, 7000}, 0, 5999},
		{"one with a span that was used just now", -10, never, span{99, 100}, 100, 6100},
		{"one with a span that this process has used to", -10, 900, span{999, 1000}, 1000, 7000},
	} {
		r := newRig(t, 1, nil)
		r.used = never
		if tt.used != never {
			r.used = r.wall + tt.used
		}
		r.m.sequencer.MaxAhead, r.m.hi = 50, 0
		var record []byte
		if tt.mark != never {
			record = r.record(func(n *nodeRecord) {
				n.Until = r.wall + tt.mark
				if tt.spoiled != (span{}) {
					n.Spoiled = span{r.wall + tt.spoiled[0], r.wall + tt.spoiled[1]}
				}
			})
		}
		read := r.pickable()
		e := event{Keys: read.Keys}
		for range read.Keys {
			e.Values = append(e.Values, record)
		}
		if tt.from > 50 { // not yet ahead, so chance decides nothing
			r.answer(e)
			if r.m.claim != nil {
				t.Errorf("%s: it is claimed", tt.name)
			}
			continue
		}
		r.answer(e)
		a := r.asks(actionCAS)
		n := r.read(a.Next)
		if string(a.Old) != string(record) || n.Until != r.wall+tt.to || n.State != flagHeld || n.Owner != "us" || n.Wall != r.wall || n.Host != "h" || len(n.Nonce) != 32 {
			t.Errorf("%s: %+v over %s, want until %d", tt.name, n, a.Old, tt.to)
		}
		r.answer(event{Applied: true})
		r.begins(a)
		if b := r.did(actionBegin); b.From != max(r.wall+tt.from, r.used) {
			t.Errorf("%s: it begins at %d, want %d, and not before what was used", tt.name, b.From-r.wall, tt.from)
		}
		// The node ID in use takes over the record and the limit of the claim.
		h := r.m.hold
		if h.gap != n.Gap || h.spoiled != n.Spoiled || h.from != r.wall+tt.from || h.renewed != max(r.used, h.from) || r.m.prefer != int64(h.node) {
			t.Errorf("%s: %+v", tt.name, h)
		}
		if limit := tt.spoiled[0]; limit != 0 && h.limit != r.wall+limit {
			t.Errorf("%s: it may go until %d", tt.name, h.limit-r.wall)
		}
	}
}

// TestClaimRefused: another member was faster. The machine picks again at once,
// but no longer the node ID that all want.
func TestClaimRefused(t *testing.T) {
	r := newRig(t, 4, nil)
	r.claiming()
	r.m.failures = 3
	r.answer(event{})
	r.asks(actionGetMany)
	if r.m.claim != nil || !r.m.crowded || r.m.failures != 0 {
		t.Errorf("claim %+v, crowded %t, %d failures", r.m.claim, r.m.crowded, r.m.failures)
	}
	// After 16 refusals in a row, it waits.
	r = newRig(t, 4, nil)
	r.claiming()
	for n := 1; ; n++ {
		r.answer(event{})
		if r.request == nil {
			if n != 17 || r.m.notBefore <= r.mono || r.m.Status().Err == nil {
				t.Errorf("after %d refused claims: %+v", n, r.m.Status())
			}
			break
		}
		a := r.asks(actionGetMany)
		r.answer(event{Keys: a.Keys, Values: make([][]byte, len(a.Keys))})
		r.asks(actionCAS)
	}
}

// TestClaimNotSent: nothing was written, so the machine starts over later.
func TestClaimNotSent(t *testing.T) {
	r := newRig(t, 4, nil)
	r.claiming()
	r.answer(event{Err: ErrNotSent})
	r.startsAnew("not sent", true)
}

// TestClaimUnknown: a claim with an unknown result is settled by another write,
// over the record that a read shows, with the same beginning.
func TestClaimUnknown(t *testing.T) {
	unknown := func() (*rig, action) {
		r := newRig(t, 4, nil)
		r.used = r.wall + 40
		a := r.claiming()
		r.answer(event{Err: errNoAnswer})
		if get := r.asks(actionGet); get.Key != a.Key || !errors.Is(r.m.Status().Err, errNoAnswer) {
			t.Fatalf("it reads %q; it is %+v", get.Key, r.m.Status())
		}
		return r, a
	}
	for name, shows := range map[string]func(action) []byte{
		"as it was":  func(action) []byte { return nil },
		"as written": func(a action) []byte { return a.Next },
	} {
		r, first := unknown()
		began := r.wall
		value := shows(first)
		r.answer(event{Values: [][]byte{value}})
		if r.request != nil || r.did(actionBegin) != nil {
			t.Fatalf("%s: it does not wait: %+v", name, r.request)
		}
		r.wall -= 1020 // the clock goes back
		r.later(1000)
		again := r.asks(actionCAS)
		if n := r.read(again.Next); string(again.Old) != string(value) || n.Until < r.read(first.Next).Until || string(again.Next) == string(first.Next) {
			t.Errorf("%s: it writes %+v over %s", name, n, again.Old)
		}
		// The second result is unknown as well, and then the write is applied.
		r.answer(event{Err: errNoAnswer})
		r.asks(actionGet)
		r.answer(event{Values: [][]byte{again.Next}})
		r.later(1000)
		third := r.asks(actionCAS)
		if string(third.Old) != string(again.Next) {
			t.Errorf("%s: the third is over %s", name, third.Old)
		}
		r.answer(event{Applied: true})
		r.begins(third)
		if b := r.did(actionBegin); b.From != max(began, r.used) && b.From != began {
			t.Errorf("%s: it begins at %d", name, b.From-began)
		}

		// After a refusal, the record is read again: an earlier attempt may be
		// stored.
		r, first = unknown()
		value = shows(first)
		r.answer(event{Values: [][]byte{value}})
		r.later(1000)
		r.asks(actionCAS)
		r.answer(event{})
		r.asks(actionGet)
		r.answer(event{Values: [][]byte{first.Next}})
		r.later(1000)
		if a := r.asks(actionCAS); string(a.Old) != string(first.Next) {
			t.Errorf("%s: refused, and it writes over %s", name, a.Old)
		}
		// After an attempt that was not sent, it is read again as well.
		r.answer(event{Err: ErrNotSent})
		if r.request != nil || r.m.claim == nil {
			t.Errorf("%s: not sent: %+v, %+v", name, r.request, r.m.claim)
		}
		r.later(1000)
		if a := r.asks(actionGet); a.Key != first.Key {
			t.Errorf("%s: not sent, and it reads %s", name, a.Key)
		}

		// If no node ID is wanted any more.
		r, first = unknown()
		value = shows(first)
		r.answer(event{Values: [][]byte{value}})
		r.step(event{Kind: eventRelease})
		if value == nil {
			if r.request != nil || r.m.claim != nil || r.m.Status().Phase != Idle {
				t.Errorf("%s, not wanted: %+v, %+v", name, r.request, r.m.Status())
			}
		} else {
			if r.m.Status().Phase != Leaving {
				t.Errorf("%s, not wanted: %+v", name, r.m.Status())
			}
			r.drops(name+", not wanted", string(value), rigTime)
		}

		// If its window ended before it was settled.
		for _, by := range []int64{5999, 6000} {
			r, first = unknown()
			value = shows(first)
			r.answer(event{Values: [][]byte{value}})
			r.later(by)
			switch {
			case by < 6000:
				if n := r.read(r.asks(actionCAS).Next); n.State != flagHeld {
					t.Errorf("%s, in time: %+v", name, n)
				}
			case value == nil:
				r.startsAnew(name+", too late", false)
			default:
				r.drops(name+", too late", string(value), rigTime)
			}
		}
	}

	// The read gets no answer: it is repeated later or, if the claim is no
	// longer wanted, never.
	r, first := unknown()
	r.answer(event{Err: errNoAnswer})
	if r.request != nil || r.m.notBefore <= r.mono || r.m.claim == nil {
		t.Errorf("no answer: %+v", r.request)
	}
	r.later(1000)
	if a := r.asks(actionGet); a.Key != first.Key {
		t.Errorf("it reads %s", a.Key)
	}
	r.step(event{Kind: eventRelease})
	r.answer(event{Err: errNoAnswer})
	if r.m.claim != nil || r.m.Status().Phase != Idle {
		t.Errorf("not wanted: %+v", r.m.Status())
	}

	// The record belongs to another member.
	for _, later := range []int64{0, 6000} { // compared with the time to wait
		r, _ = unknown()
		r.wall, r.mono = r.wall+later, r.mono+later
		r.answer(event{Values: [][]byte{r.record(nil)}})
		r.startsAnew("another's", true)
	}

	// No longer wanted, but the first of two attempts is stored.
	r, first = unknown()
	r.answer(event{})
	r.later(1000)
	r.asks(actionCAS)
	r.answer(event{Err: errNoAnswer})
	r.asks(actionGet)
	r.answer(event{Values: [][]byte{first.Next}})
	r.step(event{Kind: eventRelease})
	r.drops("the first of two", string(first.Next), rigTime)
}

// TestClaimRecheck: an applied claim is used only if it is still stored, and if
// the configuration is the same, byte for byte; otherwise it is given back to
// where it began.
func TestClaimRecheck(t *testing.T) {
	applied := func() (*rig, action) {
		r := newRig(t, 4, nil)
		a := r.claiming()
		r.answer(event{Applied: true})
		if again := r.asks(actionGetMany); !slices.Equal(again.Keys, []string{a.Key, "v1/s/config"}) {
			t.Fatalf("it reads %v", again.Keys)
		}
		return r, a
	}
	r, a := applied()
	r.begins(a)

	for name, e := range map[string]event{
		"no answer": {Err: errNoAnswer}, "no answer, and values": {Err: errNoAnswer, Values: [][]byte{a.Next, r.m.config}}, "one value": {Values: [][]byte{a.Next}}, "no values": {}, "three values": {Values: [][]byte{a.Next, r.m.config, nil}},
	} {
		r, a := applied()
		if len(e.Values) > 0 {
			e.Values = append([][]byte{a.Next, r.m.config, nil}[:0:0], [][]byte{a.Next, r.m.config, nil}[:len(e.Values)]...)
		}
		r.answer(e)
		if r.request != nil || r.m.notBefore <= r.mono || r.m.Status().Err == nil || r.did(actionBegin) != nil {
			t.Fatalf("%s: %+v, %+v", name, r.request, r.m.Status())
		}
		r.later(1000)
		r.begins(a) // it has asked again

		// Too late, or not wanted: it is given back.
		r, a = applied()
		r.wall, r.mono = r.wall+5999, r.mono+5999
		r.answer(e)
		if r.request != nil {
			t.Errorf("%s, in time: %+v", name, r.request)
		}
		r, a = applied()
		r.wall, r.mono = r.wall+6000, r.mono+6000
		r.answer(e)
		r.drops(name+", too late", string(a.Next), rigTime)
		r, a = applied()
		r.step(event{Kind: eventRelease})
		r.answer(e)
		r.drops(name+", not wanted", string(a.Next), rigTime)
	}

	r, a = applied()
	r.answer(event{Values: [][]byte{r.record(nil), r.m.config}})
	if err := r.m.Status().Err; err == nil {
		t.Error("the claim is gone, and there is no error")
	}
	r.drops("gone", string(a.Next), rigTime)

	r, a = applied()
	c := r.m.sequencer
	c.Nonce = "changed and changed back"
	r.answer(event{Values: [][]byte{a.Next, c.encode()}})
	r.drops("another configuration", string(a.Next), rigTime)
	if r.request == nil || r.request.Key != "v1/s/config" {
		t.Errorf("then it asks for %+v", r.request)
	}

	r, a = applied()
	r.step(event{Kind: eventRelease})
	r.answer(event{Values: [][]byte{a.Next, r.m.config}})
	r.drops("not wanted", string(a.Next), rigTime)
	if s := r.m.Status(); s.Phase != Idle {
		t.Errorf("then it is %+v", s)
	}

	// A claim that began ahead of the clock is given back to its beginning.
	r = newRig(t, 4, func(c *configRecord) { c.Floor = rigTime + 50 })
	a = r.claiming()
	r.answer(event{Applied: true})
	r.step(event{Kind: eventRelease})
	r.answer(event{Values: [][]byte{a.Next, r.m.config}})
	r.drops("ahead of the clock", string(a.Next), rigTime+50)
}

// TestClaimFrozen: if the store is found to have gone back, nothing of a claim
// is used, whatever the store answers.
func TestClaimFrozen(t *testing.T) {
	for name, to := range map[string]func(*rig) event{
		"the claim": func(r *rig) event { r.claiming(); return event{Applied: true} },
		"the read": func(r *rig) event {
			a := r.claiming()
			r.answer(event{Err: errNoAnswer})
			return event{Values: [][]byte{a.Next}}
		},
		"the second look": func(r *rig) event {
			a := r.claiming()
			r.answer(event{Applied: true})
			return event{Values: [][]byte{a.Next, r.m.config}}
		},
	} {
		r := newRig(t, 4, nil)
		e := to(r)
		r.step(event{Kind: eventWentBack})
		if r.alarm() != alarmRolledBack || r.m.claim != nil {
			t.Errorf("%s: %+v", name, r.out)
		}
		r.answer(e)
		if r.did(actionBegin) != nil || r.request != nil || r.m.hold != nil || !errors.Is(r.m.Status().Err, ErrRolledBack) {
			t.Errorf("%s: %+v, %+v", name, r.out, r.m.Status())
		}
	}
}

// TestPickErrors: after an error of the store in any read of a pick, the
// machine waits and starts over.
func TestPickErrors(t *testing.T) {
	r := newRig(t, 4, nil)
	r.tokens()
	r.step(event{Kind: eventAttach})
	r.answer(event{Err: errNoAnswer})
	r.startsAnew("the configuration", true)
	r.answer(event{Values: [][]byte{r.m.config}})
	r.asks(actionGetMany)
	r.answer(event{Err: errNoAnswer})
	r.startsAnew("some records", true)

	r = newRig(t, 8, nil)
	r.tokens()
	list := func() {
		r.m.rounds, r.m.op = 2, opPick
		r.request = &action{Kind: actionGetMany}
		e := event{Keys: []string{r.key(3)}, Values: [][]byte{r.record(func(n *nodeRecord) { n.State, n.Until, n.Wall = flagHeld, r.wall+99, r.wall })}}
		r.answer(e)
		r.asks(actionList)
	}
	r.m.attached = true
	list()
	r.answer(event{Err: errNoAnswer})
	if r.m.rounds != 0 {
		t.Errorf("round %d", r.m.rounds)
	}
	r.startsAnew("all records", true)
}

// TestListedAbsent: a node ID without a record is claimed if the floor is near
// enough, whatever the records of others show about clocks.
func TestListedAbsent(t *testing.T) {
	for _, ahead := range []int64{-50_000, 0, 50, 51} {
		for _, other := range []bool{false, true} {
			r := newRig(t, 1, func(c *configRecord) { c.Floor = rigTime + ahead })
			r.tokens()
			r.m.attached, r.m.op = true, opList
			r.request = &action{Kind: actionList}
			e := event{Keys: []string{r.key(0)}, Values: [][]byte{r.record(func(n *nodeRecord) {
				n.State, n.Until, n.Wall = flagHeld, r.wall+9000, r.wall
				if other { // its clock is right, so ours is not
					n.Wall = r.wall + 10_001
				}
			})}}
			r.answer(e)
			switch {
			case other:
				if r.request != nil || !errors.Is(r.m.Status().Err, ErrClockBehind) || r.m.notBefore != r.mono+1000 {
					t.Errorf("floor %d ahead, a clock behind: %+v, %+v", ahead, r.request, r.m.Status())
				}
			case ahead > 50:
				var e *ExhaustedError
				if r.request != nil || !errors.As(r.m.Status().Err, &e) || !e.Free.Equal(timeOf(r.wall+1)) {
					t.Errorf("floor %d ahead: %+v, %+v", ahead, r.request, r.m.Status())
				}
			default:
				a := r.asks(actionCAS)
				n := r.read(a.Next)
				from := max(r.wall, rigTime+ahead)
				want := nodeRecord{
					Nonce: n.Nonce, Owner: "us", Until: from + 6000, Wall: r.wall, State: flagHeld, Host: "h", From: maybe{from, true},
					Gap: span{max(rigTime-1_000_000, rigTime+ahead), from},
				}
				if want.Gap.length() == 0 {
					want.Gap = span{}
				}
				if a.Key != r.key(1) || r.m.claim.node != 1 || len(a.Old) != 0 || n != want {
					t.Errorf("floor %d ahead: %s %+v over %q, want %+v", ahead, a.Key, n, a.Old, want)
				}
			}
		}
	}
	// If all have a record and none may be taken, a clock that is far behind is
	// reported.
	r := newRig(t, 1, nil)
	r.tokens()
	r.m.attached, r.m.op = true, opList
	r.request = &action{Kind: actionList}
	held := r.record(func(n *nodeRecord) { n.State, n.Until, n.Wall = flagHeld, r.wall+90_000, r.wall+10_001 })
	r.answer(event{Keys: []string{r.key(0), r.key(1)}, Values: [][]byte{held, held}})
	var behind *clockBehindError
	if !errors.As(r.m.Status().Err, &behind) || behind.Behind != 10_001*time.Millisecond || !slices.Equal(behind.Nodes, []uint64{0, 1}) || r.m.notBefore != r.mono+1000 {
		t.Errorf("%v, wait %d", r.m.Status().Err, r.m.notBefore-r.mono)
	}
	if r.m.droughts != 0 {
		t.Error("it counts as a list that found none")
	}
	// And also if some may be taken.
	r.m.op, r.request = opList, &action{Kind: actionList}
	r.answer(event{Keys: []string{r.key(0), r.key(1)}, Values: [][]byte{held, r.record(nil)}})
	if !errors.As(r.m.Status().Err, &behind) || r.request != nil {
		t.Errorf("%v, %+v", r.m.Status().Err, r.request)
	}
}
