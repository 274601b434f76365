package firn_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
)

func FuzzParseLayout(f *testing.F) {
	for _, text := range []string{
		"", "default", "hazelcast,node-bits=10,seq-bits=12,epoch=2020-01-01T00:00:00Z", "snowcast,nodes=300,epoch=0",
		"lable,mode=time-sequential,cluster=3", "flake-idgen,epoch=1300000000000", "boundary", "uuidv7", "ulid", "xid", "ksuid",
		"bits=time:41.node:10.seq:12,unit=1ms,epoch=1767225600000",
		"bits=time~:42.seq:6.node:3.const:1=1.node:8.const:4=0xf,unit=1.5s",
		"bits=rand:128.time:64", "bits=time:62.seq:62", "bits=node:64.time:1", "bits=time:0.time:1.const:0=0",
		"default,default", "default,epoch=", "default,epoch=9999-12-31T23:59:59.999Z", "bits=time:48,unit=24h,epoch=-62135596800000",
		"bits=time:55.seq:7,unit=1s", "bits=time:64.seq:62,unit=1ns", "hazelcast,node-bits=62,seq-bits=0",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := firn.ParseLayout(text)
		if err != nil {
			var fault *firn.ParseError
			if !errors.As(err, &fault) || fault.What != "layout" || l != (firn.Layout{}) {
				t.Errorf("ParseLayout(%q) = %+v, %v, want the zero Layout and a *ParseError", text, l, err)
			}
			return
		}
		checkLayoutText(t, l)
		m := modelOf(t, l)
		checkOrdered(t, m)
		r := rand.New(rand.NewPCG(uint64(len(text)), 0))
		for _, tick := range []uint64{0, 1 & m.most("time"), m.most("time")} {
			checkCompose(t, m, tick, m.most("node"), m.most("seq"), r)
			checkCompose(t, m, tick, 0, 0, r)
		}
		checkRangeErrors(t, m)
		g, err := newAny(l, firn.StaticGrant(0), nil)
		if l.ReadOnly() && err == nil || !l.ReadOnly() && err != nil && m.width("time")+m.width("seq") < 63 {
			t.Errorf("NewGenerator(%s) = %v, %v", l, g, err)
		}
	})
}

// exactly returns the layout with ticks that begin at sequence number 0.
func exactly(l firn.Layout) firn.Layout {
	text, _, _ := strings.Cut(l.String(), ",even=")
	return firn.MustParseLayout(text + ",even=0")
}

// scriptLayouts are the layouts for runScript: few IDs per tick, short times,
// and all kinds of order.
var scriptLayouts = []string{
	"bits=time:41.node:5.seq:3",
	"hazelcast,seq-bits=2,node-bits=4",
	"bits=time:12.seq:2.node:3",
	"lable",
	"snowcast",
	"bits=time:8.node:2.seq:1,unit=10ms",
	"bits=time:20",
	"bits=time:20.seq:4",
	"uuidv7",
	"ulid",
	"bits=seq:2.time~:18.node:3",
	"bits=node:4.time:58.seq:5",
	"bits=node:4.time:60.seq:5",
	"boundary",
	"bits=time:30.node:3.seq:4,unit=333333ns",
	"bits=time:33.node:3.seq:4,unit=7ns",
	"bits=time:40.rand:10.seq:4.node:6",
	"mastodon",
	"js53",
	"sonyflake",
	"bits=time:16.const:7=5.seq:3,unit=1s,epoch=-1",
	"bits=time:1.node:1.seq:1",
	"bits=time:40.seq:8.node:60", // the sequence carries into the upper half
}

// runScript reads a script of bytes for the clock and for calls, and compares
// every result with the model's. It also checks the promises themselves: no ID
// twice, IDs in order, and none below the result of Seal for an earlier
// generator of the same node.
func runScript(t *testing.T, l firn.Layout, script []byte) {
	t.Helper()
	read := func() byte {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return b
	}
	m := modelOf(t, l)
	aheads := []time.Duration{0, l.Unit() / 2, l.Unit(), 3 * l.Unit(), 7*l.Unit() + l.Unit()/2, 1000 * l.Unit(), 1<<63 - 1, 1}
	o := firn.Options{MaxAhead: aheads[int(read())%len(aheads)], MaxLag: time.Duration(read()) * l.Unit()}
	starts := []uint64{0, 1, 5, 1000, m.most("time") - 3, m.most("time"), 1 << 40, 1 << 57}
	now := m.timeOf(min(starts[int(read())%len(starts)], m.most("time")))
	o.Now = func() time.Time { return now }

	// The end of each node's IDs, and the end when the last generator was
	// sealed. A new grant of a node begins above that.
	made, used := make(map[uint64]time.Time), make(map[uint64]time.Time)

	var s *slotModel
	tickNow := func() uint64 { tick, _ := m.tickAt(now); return s.clamp(tick) }
	// near returns a time close to the clock, the next slot, the end of the
	// grant or the layout's ends.
	near := func() time.Time {
		bases := []uint64{tickNow(), s.next >> m.width("seq"), s.limit >> m.width("seq"), 0, s.endTick}
		kind, by := read(), read()
		if kind == 255 { // so far away that 64 bits cannot count fine ticks until then
			return time.Date(1_000_000, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		tick := bases[int(kind)%len(bases)]
		at := m.timeOf(tick)
		return at.Add(time.Duration(int8(by))*l.Unit() + l.Unit()*time.Duration(kind>>6)/4)
	}
	grant := func() firn.Grant {
		kind := read()
		g := firn.Grant{Node: uint64(kind>>2) & m.most("node")}
		if kind&1 != 0 {
			g.From = near()
		}
		if kind&2 != 0 {
			g.Until = near()
		}
		if end := used[g.Node]; g.From.Before(end) {
			g.From = end
		}
		return g
	}
	badGrant := func(g firn.Grant) bool {
		return !g.From.IsZero() && !g.Until.IsZero() && !g.From.Before(g.Until)
	}
	s = newSlotModel(m, firn.Grant{}, o)
	first := grant()
	for badGrant(first) {
		first.Until = time.Time{}
	}
	s = newSlotModel(m, first, o)
	g := mustAny(t, l, first, &o)

	seen := make(map[wideID]bool)
	var last uint64     // the end of the greatest slot so far
	var greatest wideID // if later IDs are greater
	random := wideOfBig(m.randomBits())
	take := func(what string, id wideID) {
		p := decompose(t, l, id)
		if l.Ordered() && !greatest.less(id) {
			t.Fatalf("%s of %s, which is Ordered, made %v after %v", what, l, id, greatest)
		}
		greatest = id
		id = wideID{id.hi &^ random.hi, id.lo &^ random.lo}
		slot := s.slotOf(t, id)
		if id == (wideID{}) || seen[id] || slot < last {
			t.Fatalf("%s of %s at %v made %v: it is zero, was made before, or is below slot %d, which comes next", what, l, now, id, last)
		}
		seen[id], last = true, slot+1
		if end := p.Time.Add(l.Unit()); end.After(made[p.Node]) {
			made[p.Node] = end
		}
	}
	call := func(k taker, n int) outcome {
		want, b := callAndCheck(t, g, s, k, n, now)
		if slots := want.slots(); want.err != nil && len(slots) > 0 {
			last = slots[len(slots)-1] + 1 // these IDs are lost
		}
		for _, id := range b.ids {
			take(k.name, id)
		}
		return want
	}
	// A script that makes more IDs than these covers nothing new, and takes
	// long.
	for len(script) > 0 && len(seen) < 3000 && !t.Failed() {
		switch op := read(); op % 14 {
		case 0: // the clock advances a little
			now = now.Add(l.Unit() * time.Duration(read()) / 16)
		case 1: // or goes back
			now = now.Add(-l.Unit() * time.Duration(read()) / 16)
		case 2, 3:
			now = near()
		case 4: // far ahead
			now = now.Add(l.Unit() << (read() % 20))
		case 5: // a burst, until it is refused
			for range read() {
				if call(tryNext, 1).err != nil || t.Failed() {
					break
				}
			}
		case 6:
			call(reserve, 1+int(read())<<(read()%5))
		case 7:
			call(fill, 1+int(read()))
		case 8:
			call(next, 1)
		case 9:
			n := int(read()) - 5
			if _, _, err := g.take(t.Context(), "NextBatch", min(n, 0)); err == nil {
				t.Errorf("NextBatch(%d) of %s: no error", min(n, 0), l)
			}
			switch {
			case n < 1:
			case op < 128 || op > 240:
				call(batch, n)
			default:
				// After the wait that its error names, it returns the batch; or
				// after a second one, if the clock then passes what was used.
				o := call(tryBatch, n)
				for try := 0; errors.Is(o.err, firn.ErrExhausted) && s.ahead < 1<<60 && o.wait < 1000*l.Unit(); try++ {
					if try == 2 {
						t.Fatalf("TryNextBatch(%d) of %s is refused after two waits, for %v", n, l, o.wait)
					}
					now = now.Add(o.wait)
					o = call(tryBatch, n)
				}
			}
		case 10:
			until := near()
			if op >= 128 && op < 160 {
				until = time.Time{}
			}
			err := g.Extend(until)
			limit := s.end(until)
			if (err != nil) != (limit < s.limit) {
				t.Errorf("Extend(%v) of %s: %v, but the limit was tick %d, and this is %d", until, l, err, s.limit>>m.width("seq"), limit>>m.width("seq"))
			}
			s.limit = max(s.limit, limit)
		case 11:
			next := grant()
			err := g.Switch(next)
			if (err != nil) != badGrant(next) {
				t.Errorf("Switch(%+v) of %s: %v", next, l, err)
			}
			if err == nil {
				s.switchTo(next)
			}
			if next.Node = m.most("node") + 1; next.Node != 0 {
				var fault *firn.RangeError
				if err := g.Switch(next); !errors.As(err, &fault) && !badGrant(next) {
					t.Errorf("Switch(%+v) of %s: %v, want a *RangeError", next, l, err)
				}
			}
		case 12: // the generator ends, and another one takes over its node ID
			until := g.Seal()
			node := s.node
			if again := g.Seal(); !again.Equal(until) {
				t.Errorf("Seal() of %s = %v, and the second time %v", l, until, again)
			}
			s.sealed = true
			call(tryNext, 1)
			for _, err := range []error{g.Extend(time.Time{}), g.Switch(firn.Grant{})} {
				if !errors.Is(err, firn.ErrSealed) {
					t.Errorf("Extend or Switch after Seal: %v, want ErrSealed", err)
				}
			}
			if until.Before(made[node]) {
				t.Fatalf("Seal() of %s = %v, but node %d made IDs until %v", l, until, node, made[node])
			}
			maps.Copy(used, made)
			if until.IsZero() {
				return // a static generator that has made no ID has no mark
			}
			used[node] = until
			first = firn.Grant{Node: node, From: until}
			s = newSlotModel(m, first, o)
			g = mustAny(t, l, first, &o)
			last, greatest = 0, wideID{}
		case 13:
			got, lead := g.Stats(), time.Duration(0)
			if s.reached() > 0 {
				lead = s.timeOf((s.reached() - 1) >> m.width("seq")).Sub(now)
			}
			if got.IDs != s.made || got.Lead != lead {
				t.Errorf("Stats() of %s at %v: %d IDs, lead %v, want %d, %v", l, now, got.IDs, got.Lead, s.made, lead)
			}
		}
		if got, want := g.Used(), s.usedUntil(); !got.Equal(want) {
			t.Errorf("Used() of %s = %v, want %v", l, got, want)
		}
	}
}

// checkError compares an error with the expected one. A call that may wait had
// a canceled context.
func checkError(t *testing.T, s *slotModel, what string, want outcome, err error, now time.Time, waits bool) {
	t.Helper()
	fail := func() {
		t.Helper()
		t.Errorf("%s of %s at %v, MaxAhead %v, next slot %d, limit %d: %v, want %+v", what, s.layout, now, s.ahead, s.next, s.limit, err, want)
	}
	if want.err == nil {
		if err != nil {
			fail()
		}
		return
	}
	if waits && (errors.Is(want.err, firn.ErrExhausted) || want.err == errBack && want.back <= s.lag) {
		// The error also contains what the call waited for.
		if !errors.Is(err, context.Canceled) {
			fail()
			return
		}
	} else if errors.Is(err, context.Canceled) {
		fail() // it should not have tried to wait
		return
	}
	var wait *firn.WaitError
	var clock *firn.ClockError
	switch {
	case errors.Is(want.err, firn.ErrExhausted):
		if !errors.As(err, &wait) || wait.Wait != want.wait || !errors.Is(err, firn.ErrExhausted) {
			fail()
		}
	case errors.Is(want.err, firn.ErrBeforeEpoch):
		if !errors.As(err, &clock) || clock.Wait != want.wait || !errors.Is(err, firn.ErrBeforeEpoch) {
			fail()
		}
	case want.err == errBack:
		if !errors.As(err, &clock) || clock.Wait != want.wait || !clock.Now.Equal(now) ||
			!clock.Last.Equal(s.timeOf((s.reached()-1)>>s.width("seq"))) || errors.Is(err, firn.ErrBeforeEpoch) {
			fail()
		}
	case !errors.Is(err, want.err) || errors.Is(err, firn.ErrExhausted):
		fail()
	}
}

// callAndCheck makes a call and compares its result with the model's. If it
// would have to wait, it fails instead.
func callAndCheck(t *testing.T, g anyGenerator, s *slotModel, k taker, n int, now time.Time,
) (want outcome, b anyBatch) {
	t.Helper()
	want = k.model(s, now, uint64(n))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b, hold, err := g.take(ctx, k.name, n)
	checkError(t, s, k.name, want, err, now, k.waits)
	slots := want.slots()
	switch {
	case want.err != nil || err != nil:
		if b.len != 0 || len(b.ids) != 0 {
			t.Errorf("%s of %s: %d IDs, %v, with the error %v", k.name, s.layout, b.len, b.ids, err)
		}
		return want, anyBatch{}
	case b.len != len(slots) || len(b.ids) != b.len:
		t.Fatalf("%s of %s: %d IDs, of which All yields %d, want %d", k.name, s.layout, b.len, len(b.ids), len(slots))
	case hold != want.hold:
		t.Errorf("%s(%d) of %s at %v: hold %v, want %v", k.name, n, s.layout, now, hold, want.hold)
	}
	for i, id := range b.ids {
		if w := s.idOf(slots[i], id); id != w {
			t.Errorf("%s of %s at %v: ID %d = %v, want %v", k.name, s.layout, now, i, id, w)
			return want, b
		}
		// The time of an ID that is not reserved is neither beyond MaxAhead
		// nor behind the clock.
		at := decompose(t, s.layout, id).Time
		beyond := s.ahead < 1<<60 && at.After(now.Add(s.ahead))
		if k.name != reserve.name && (beyond || !at.Add(s.layout.Unit()).After(now)) {
			t.Errorf("%s of %s at %v, MaxAhead %v: the ID's time is %v", k.name, s.layout, now, s.ahead, at)
		}
	}
	if k.batch {
		checkRuns(t, s.bitModel, b)
	}
	return want, b
}

// FuzzGeneratorClock searches for a script of clock changes and calls after
// which a generator breaks a promise or differs from the model.
func FuzzGeneratorClock(f *testing.F) {
	f.Add([]byte{0, 3, 0, 3, 1, 0, 5, 30, 0, 16, 5, 30, 1, 200, 5, 3, 6, 10, 2, 11, 5, 1, 3, 12, 5, 30})
	f.Add([]byte{2, 0, 0, 4, 3, 0, 1, 2, 3, 5, 255, 4, 9, 5, 255, 10, 2, 5, 5, 255})
	f.Add([]byte{6, 1, 1, 0, 0, 5, 9, 0, 8, 5, 9, 9, 200, 13, 7, 100, 0, 255, 7, 3, 8})
	f.Add([]byte{15, 0, 0, 3, 255, 0, 5, 9, 2, 255, 0, 5, 9, 10, 255, 0, 2, 0, 0, 11, 1, 255, 0, 5, 9, 12, 5, 9})
	f.Add(slices.Repeat([]byte{5, 7, 0, 9, 11, 6, 1, 3, 12, 1, 2, 9, 40}, 8))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 || len(script) > 500 {
			return // long scripts cover nothing that shorter ones do not
		}
		runScript(t, firn.MustParseLayout(scriptLayouts[int(script[0])%len(scriptLayouts)]), script[1:])
	})
}
