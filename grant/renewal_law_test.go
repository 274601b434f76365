package grant

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReadBackLaw: how a member evaluates each record that can be in place of
// its own, after a refused renewal, and what it reports. Another owner's window
// that begins below the end of its own proves that the store went back, or that
// a copy gave the node ID back.
func TestReadBackLaw(t *testing.T) {
	type result struct {
		phase       Phase
		alarm       Alarm
		from, until int64 // of the alarm, since the grant began
		seals       bool
		err         error
	}
	const end = 6000 // the member's window, since the grant began; it was used up to 2000 and renewed once, at 1000
	by := func(from, until int64, at recordID) func(n *nodeRecord) {
		return func(n *nodeRecord) {
			n.Owner, n.From, n.Until, n.Replaced = "them", optionalTime{rigTime + from, true}, rigTime+until, at
		}
	}
	after := recordID{rigTime + 1500, "unknown"} // as a copy may leave it
	var (
		losing   = result{phase: Losing}
		taken    = result{phase: Losing, alarm: AlarmTakenOver, from: 3000, until: end + 1000}
		cloned   = result{phase: Leaving, alarm: AlarmCloned, from: 1000, until: end + 1000, seals: true}
		frozen   = result{phase: Holding, alarm: AlarmStoreWentBack, err: ErrStoreWentBack}
		wentBack = func(from int64) result {
			return result{Leaving, AlarmStoreWentBack, from, end + 1000, true, ErrStoreWentBack}
		}
		doubt = func(from int64) result {
			return result{Leaving, AlarmWindowsOverlapped, from, end + 1000, true, errOverlap}
		}
	)
	for _, tt := range []struct {
		name   string
		change func(n *nodeRecord) // of the record before; nil: the record is gone
		floor  int64               // a new one, since the grant began; 0: none
		want   result
	}{
		{"gone", nil, 0, frozen},
		{"gone, and fenced", nil, end + 9000, losing},
		{"damaged", func(n *nodeRecord) { n.Nonce = "" }, 0, result{phase: Losing, err: ErrDamaged}},
		{"an earlier one", func(n *nodeRecord) { n.Nonce = "" }, 0, frozen},
		{"an earlier one, and fenced", func(n *nodeRecord) { n.Nonce = "" }, end + 9000, losing},

		{"ours, closing", func(n *nodeRecord) { n.State = nodeClosing }, 0, result{phase: Leaving, seals: true}},
		{"ours, closing and shorter", func(n *nodeRecord) { n.State, n.Until = nodeClosing, n.Until-1 }, 0, result{phase: Leaving, alarm: AlarmStoreWentBack, seals: true, err: ErrStoreWentBack}},
		{"ours, held and shorter", func(n *nodeRecord) { n.Until-- }, 0, frozen},
		{"ours, held and no shorter", func(n *nodeRecord) {}, 0, cloned},
		{"ours, held and longer", func(n *nodeRecord) { n.Until += 9; n.Wall = n.Until + 1 }, 0, cloned},
		{"ours, and fenced since", func(n *nodeRecord) {}, end + 9000, cloned},
		{"ours, closing, of a later grant of a copy", func(n *nodeRecord) { n.From.time++; n.State = nodeClosing }, 0, cloned},
		{"ours, of a later grant of a copy", func(n *nodeRecord) { n.From.time++; n.Until-- }, 0, cloned},
		{"ours, of an earlier grant", func(n *nodeRecord) { n.From.time--; n.Until = rigTime }, 0, wentBack(0)},
		{"ours, given back by a copy", func(n *nodeRecord) { n.State, n.Until = nodeFree, rigTime+1000 }, 0, cloned},
		{"ours, given back below what was used before", func(n *nodeRecord) { n.State, n.Until = nodeFree, rigTime+999 }, 0, wentBack(999)},

		{"of another, behind our window", by(end+1000, end+9000, after), 0, taken},
		{"of another, behind our window, given back", func(n *nodeRecord) { by(end+1000, end+1000, after)(n); n.State = nodeFree }, 0, taken},
		{"of another, closing", func(n *nodeRecord) { by(end+1000, end+9000, after)(n); n.State = nodeClosing }, 0, taken},
		{"of another, and its clock is not past our window", func(n *nodeRecord) { by(end+1000, end+9000, after)(n); n.Wall = rigTime }, 0, taken},
		{"of another, and its clock is past our window", func(n *nodeRecord) { by(end+999, end+9000, after)(n); n.Wall = n.Until }, 0, doubt(end + 999)},
		{"of another, after a copy gave it back", by(1500, end+9000, after), 0, doubt(1500)},
		{"of another, given back", func(n *nodeRecord) { by(1500, 2000, after)(n); n.State = nodeFree }, 0, doubt(1500)},
		{"of another, over our last record but one", by(end, end+9000, recordID{rigTime + end, "first"}), 0, wentBack(end)},
		{"of another, over what we claimed", by(1500, end+9000, recordID{rigTime + 1500, "base"}), 0, wentBack(1500)},
		{"of another, over what was there before", by(1500, end+9000, recordID{rigTime + 999, "unknown"}), 0, wentBack(1500)},
		{"of another, over no record", by(1500, end+9000, recordID{}), 0, wentBack(1500)},
		{"of another, given back below what was used before", func(n *nodeRecord) { by(500, 999, after)(n); n.State = nodeFree }, 0, wentBack(500)},
		{"of another, without its beginning", func(n *nodeRecord) { by(0, end+9000, after)(n); n.From = optionalTime{} }, 0, doubt(0)},
		{"of another, and fenced since", by(1500, end+9000, after), end + 9000, result{phase: Leaving, alarm: AlarmFencedSpan, from: 1500, until: end + 1000, seals: true}},
		{"of another, and fenced within our window", by(1500, end+9000, after), 1000, result{phase: Leaving, alarm: AlarmFencedSpan, from: 1000, until: end + 1000, seals: true}},
		{"of another, behind the floor of a fence", by(end+9000, end+9000, after), end + 9000, losing},

		{"repaired, and we are in what was set apart", func(n *nodeRecord) {
			by(-20, -10, after)(n)
			n.Gap, n.Spoiled = span{}, span{rigTime, rigTime + end + 1000}
		}, 0, taken},
		{"repaired, and we are not all in it", func(n *nodeRecord) {
			by(-20, -10, after)(n)
			n.Gap, n.Spoiled = span{}, span{rigTime, rigTime + end + 999}
		}, 0, wentBack(-20)},
		{"repaired, and we are before it", func(n *nodeRecord) {
			by(-20, -10, after)(n)
			n.Gap, n.Spoiled = span{}, span{rigTime + 1, rigTime + end + 1000}
		}, 0, wentBack(-20)},

		{"fenced", func(n *nodeRecord) { n.takeAway(0); n.Until = rigTime + end + 9000 }, end + 9000, losing},
		{"fenced below the end of our window", func(n *nodeRecord) { n.takeAway(0); n.Until = rigTime + end }, end, result{phase: Leaving, alarm: AlarmFencedSpan, from: end, until: end + 1000, seals: true}},
		{"repaired above our window", func(n *nodeRecord) { n.takeAway(0) }, 0, losing},
		{"without an owner, from before our grant", func(n *nodeRecord) { n.takeAway(0); n.Until = rigTime }, 0, wentBack(0)},
	} {
		for _, unknown := range []bool{false, true} {
			r := newRig(t, 4, nil)
			first := r.holding()
			r.wall, r.mono, r.used = r.wall+1000, r.mono+1000, r.wall+1000
			r.step(event{Kind: eventDemand})
			renewal := r.asks(actionCAS)
			r.used += 500 // while the renewal was in progress
			r.answer(event{Applied: true})
			h := r.m.hold
			old := r.read(first)
			old.Nonce = "first"
			h.earlier, h.replaced = [][]byte{old.encode()}, recordID{rigTime, "base"}
			r.renewing()
			if unknown {
				r.answer(event{Err: errNoAnswer})
			} else {
				r.answer(event{})
			}
			if got := r.asks(actionGetMany).Keys; !slices.Equal(got, []string{h.key, "v1/s/config"}) {
				t.Fatalf("%s: it reads %v", tt.name, got)
			}
			var value []byte
			if tt.change != nil {
				n := r.read(renewal.Next)
				n.Nonce = "another"
				tt.change(&n)
				value = n.encode()
			}
			if strings.Contains(tt.name, "an earlier one") {
				value = h.earlier[0]
			}
			c := r.m.seen.info
			if tt.floor != 0 {
				c.fenceFloor, c.nonce = timeOf(rigTime+tt.floor), "fenced"
			}
			r.answer(event{Values: [][]byte{value, c.encode()}})
			got := result{phase: r.m.status.Phase, alarm: r.alarm(), seals: r.did(actionSeal) != nil}
			if a := r.did(actionAlarm); a != nil && a.Alarm.Until != 0 {
				got.from, got.until = a.Alarm.From-rigTime, a.Alarm.Until-rigTime
				if a.Alarm.Node != h.node {
					t.Errorf("%s: alarm %+v", tt.name, a.Alarm)
				}
			}
			if n := len(slices.DeleteFunc(slices.Clone(r.out), func(a action) bool { return a.Kind != actionAlarm })); n > 1 {
				t.Errorf("%s: %d alarms", tt.name, n)
			}
			if err := r.m.status.Err; tt.want.err != nil && errors.Is(err, tt.want.err) {
				got.err = tt.want.err
			}
			if got != tt.want {
				t.Errorf("%s, unknown %t: %+v, want %+v; it is %+v", tt.name, unknown, got, tt.want, r.m.status)
			}
			if renamed := r.m.owner != "us"; renamed != (got.alarm == AlarmCloned || got.until != 0 && errors.Is(got.err, ErrStoreWentBack)) {
				t.Errorf("%s: its owner is %s", tt.name, r.m.owner)
			}
			if r.m.freezing.frozen != errors.Is(got.err, ErrStoreWentBack) {
				t.Errorf("%s: frozen %t", tt.name, r.m.freezing.frozen)
			}
			switch {
			case r.m.freezing.frozen && !got.seals:
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
				if a := r.asks(actionGet); a.Key != "v1/s/config" || r.did(actionSeal) != nil {
					t.Errorf("%s: it asks for %+v", tt.name, a)
				}
				continue
			}
			// It seals, and gives back only what is its own.
			r.step(event{Kind: eventSealed})
			switch {
			case tt.name == "ours, closing":
				a := r.asks(actionCAS)
				if n := r.read(a.Next); string(a.Old) != string(value) || n.State != nodeFree || n.Until != r.used {
					t.Errorf("%s: it writes %s over %s", tt.name, a.Next, a.Old)
				}
			case r.m.freezing.frozen:
				if s := r.m.status; r.request != nil || s.Phase != Joining || !errors.Is(s.Err, got.err) {
					t.Errorf("%s: after the seal it asks for %+v, and is %+v", tt.name, r.request, s)
				}
			case r.request == nil || r.request.Kind == actionCAS:
				t.Errorf("%s: after the seal it asks for %+v", tt.name, r.request)
			}
		}
	}
}

// TestRenewalAtMargin: the timer ends when the margin is left, and then the
// window is renewed.
func TestRenewalAtMargin(t *testing.T) {
	r := newRig(t, 4, nil)
	r.holding()
	r.used = r.wall + 1
	r.later(r.did(actionTimer).At - r.mono)
	r.asks(actionCAS)
}

// TestFencedSealsAtOnce: a member that learns of a fence below the end of its
// window stops, however long it has to wait for another node ID, and whatever
// else was read.
func TestFencedSealsAtOnce(t *testing.T) {
	for _, lost := range []bool{false, true} { // and wants another node ID
		for _, state := range []State{Attached, Detaching, Destroyed} {
			r := newRig(t, 4, func(c *Info) { c.Config.Window, c.LongestWindow = 10*time.Minute, 10*time.Minute })
			r.holding()
			r.m.hold.lost = lost
			r.later(configEvery)
			if a := r.asks(actionGet); a.Key != configKey("s") {
				t.Fatalf("it reads %s", a.Key)
			}
			c := r.m.seen.info
			c.State, c.fenceFloor, c.Incarnation, c.nonce = state, timeOf(r.wall), c.Incarnation+1, "fenced"
			r.answer(event{Values: [][]byte{c.encode()}})
			if r.did(actionSeal) == nil {
				t.Errorf("lost %t, the sequencer is fenced and %v, and the generator is not sealed", lost, state)
			}
		}
	}
}

// TestShortWindowLaw: a window that ends where a spoiled span begins is held
// from its start, however short it is. Another node ID is wanted when about a
// third of it is used.
func TestShortWindowLaw(t *testing.T) {
	const late = 20 // ms until the claim is confirmed
	for _, length := range []int64{100, 1000, 3000, 4000, 5000, 6000} {
		r := newRig(t, 4, nil)
		r.m.settings.Nodes = &NodeRange{3, 3}
		pick := r.pickable()
		spoiled := span{r.wall + length, r.wall + length + 9000}
		r.answer(event{Keys: pick.Keys, Values: [][]byte{r.record(func(n *nodeRecord) { n.Spoiled = spoiled })}})
		claim := r.asks(actionCAS)
		r.wall, r.mono = r.wall+late, r.mono+late
		r.answer(event{Applied: true})
		r.answer(event{Values: [][]byte{claim.Next, r.m.seen.infoBytes}})
		if b := r.did(actionBegin); b == nil || b.Until != spoiled.from || r.m.status.Phase != Holding || r.request != nil {
			t.Errorf("a window of %d ms: begins with %+v, then %+v and %+v, want it held to the end", length, b, r.m.status, r.request)
			continue
		}
		if r.later((length - late) / 5); r.m.status.Phase != Holding {
			t.Errorf("a window of %d ms: after a fifth: %+v, want it held", length, r.m.status)
			continue
		}
		if r.later((length - late) / 4); r.m.status.Phase != Losing || r.asks(actionGet).Key != "v1/s/config" {
			t.Errorf("a window of %d ms: after 9/20: %+v, want another node ID", length, r.m.status)
		}
	}
}
