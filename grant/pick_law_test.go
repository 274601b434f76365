package grant

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// judged is the evaluation of a record according to docs/protocol.md: a rank
// below 0 means that it is not a candidate.
type judged struct {
	node         uint64
	rank         int
	mark, from   int64
	limit        int64
	gap, spoiled span
}

// judge evaluates a record, or nil without one, according to the tables under
// Pick, and returns when it may be claimed. The store's clock, if known, shows
// a time in [store, store+within]. If it was found to be off, it does not
// determine which windows have ended.
func judge(node uint64, n *nodeRecord, c Info, now, used int64, known, off bool, store, within int64) (j judged, usable int64) {
	j = judged{node: node, mark: never, limit: maxTime}
	maxAhead, window, floor, gapFrom := c.Config.MaxAhead.Milliseconds(), c.Config.Window.Milliseconds(), ms(c.fenceFloor), ms(c.Created)
	if known && gapFrom > store+within+10_000 { // the clock of its creator was wrong
		gapFrom = ms(c.Config.Layout.Epoch())
	}
	gapFrom = max(gapFrom, floor)
	if n != nil {
		j.mark, gapFrom = n.Until, n.Until
		j.gap, j.spoiled = n.Gap, n.Spoiled
		j.rank = 1
		if n.State != nodeFree {
			j.rank = 2
			if n.Until >= now || known && !off && n.Until >= store {
				j.rank = -1
			}
		}
	}
	j.from = max(now, j.mark, floor)
	gapTo := j.from
	if b := j.spoiled.from; j.spoiled.length() > 0 {
		if max(j.from, used) > b-c.Config.minWindow().Milliseconds() {
			j.from, gapTo, j.spoiled = max(j.from, j.spoiled.until), min(gapTo, b), span{}
		} else {
			j.limit = b
		}
	}
	usable = j.from - maxAhead
	if used != never { // a window written then ends MaxAhead plus its length ahead
		usable = max(usable, used-maxAhead-window+1)
	}
	if usable > now && j.rank >= 0 {
		j.rank = -2 // not yet
	}
	if known && j.gap.until <= store {
		j.gap = span{}
	}
	if (!known || gapTo > store+within+maxAhead+10_000) && gapTo-gapFrom > max(j.gap.until-j.gap.from, 0) {
		j.gap = span{gapFrom, gapTo}
	}
	return j, usable
}

// TestLookLaw: which node IDs are candidates, in which order, where their
// windows would begin and how far they may go, is as described in
// docs/protocol.md under Pick.
func TestLookLaw(t *testing.T) {
	for seed := range uint64(1500) {
		random := rand.New(rand.NewPCG(seed, 1))
		store := int64(rigTime)
		near := func() int64 { // of a clock, or just not
			by := pickOne(random, 0, 50, 100, 150, 10_000, 10_050, 6000, random.Int64N(20_000))
			return pickOne(random, rigTime, rigTime, store) + pickOne(random, by, -by) + pickOne[int64](random, -1, 0, 0, 1)
		}
		store = near()
		r := newRig(t, 4, func(c *Info) {
			c.Created = timeOf(near())
			if random.IntN(2) == 0 {
				c.fenceFloor = timeOf(near())
			}
		})
		m := r.m
		m.seen.lowestNode, m.seen.highestNode = random.Uint64N(3), 15-random.Uint64N(3)
		m.used = pickOne(random, never, never, near())
		known, off := random.IntN(2) == 0, random.IntN(4) == 0
		within := pickOne[int64](random, 0, 1, 50)
		if known {
			m.clocks = clocks{answered: true, store: store - 7, within: within, askedAt: m.mono - 7} // it was asked 7 ms ago
			if off {
				m.clocks.alarmed = AlarmStoreClockOff
			}
		} else {
			m.clocks = clocks{store: near(), within: within, askedAt: m.mono} // what it returned once
		}
		if random.IntN(3) == 0 {
			m.hold = &hold{nodeGrant: nodeGrant{node: random.Uint64N(16)}, lost: random.IntN(2) == 0}
		}

		var keys []string
		var values [][]byte
		want := sighting{free: never, pending: never}
		var best []judged
		others := 0
		for node := range uint64(16) {
			key := m.key(node)
			var n *nodeRecord
			var value []byte
			damaged := false
			switch random.IntN(8) {
			case 0: // no record
			case 1: // one that cannot be read
				value, damaged = []byte("{"), true
			default:
				n = &nodeRecord{
					Nonce: "n", Owner: pickOne(random, "us", "them", ""), Until: near(), Wall: near(),
					State: pickOne(random, nodeHeld, nodeClosing, nodeFree), Host: "h",
				}
				if from, to := near(), near(); random.IntN(2) == 0 && from < to && to <= n.Until {
					n.Gap = span{from, to}
				}
				if from, to := near(), near(); random.IntN(2) == 0 && n.Until <= from && from < to {
					n.Spoiled = span{from, to}
				}
				value = n.encode()
			}
			if random.IntN(8) == 0 {
				key = pickOne(random, "v1/s/config", "v1/t/n/01", fmt.Sprintf("v1/s/n/%03d", node), fmt.Sprintf("v1/s/n/%d", 100+node))
			}
			keys, values = append(keys, key), append(values, value)
			switch {
			case key != m.key(node), node < m.seen.lowestNode, node > m.seen.highestNode, m.hold != nil && !m.hold.lost && m.hold.node == node:
				continue
			case damaged:
				want.damage = ErrDamaged
				continue
			}
			held := n != nil && n.State != nodeFree
			if held && n.Owner != "us" {
				others++
			}
			if held && n.Until >= r.wall {
				want.ahead, want.nodes = append(want.ahead, n.Wall-r.wall), append(want.nodes, node)
			}
			j, at := judge(node, n, m.seen.info, r.wall, m.used, known, off, store, within)
			switch j.rank {
			case -1:
				end := n.Until
				if end < r.wall { // it has ended by our clock, but not by the store's
					end += r.wall - store
					want.byStore = want.byStore || r.wall-store-within > 10_000
				}
				if want.free == never || end < want.free {
					want.free = end
				}
			case -2:
				if want.pending == never || at < want.pending {
					want.pending = at
				}
			default:
				best = append(best, j)
			}
		}
		for len(values) > 0 && values[len(values)-1] == nil {
			values = values[:len(values)-1] // a store may leave them out
		}
		slices.SortStableFunc(best, func(a, b judged) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.mark, b.mark))
		})
		got := m.evaluate(keys, values)
		var gotBest []judged
		for _, c := range got.best {
			gotBest = append(gotBest, judged{c.node, c.rank, c.mark, c.from, c.limit, c.gap, c.spoiled})
			i := slices.Index(keys, c.key)
			if i < 0 || c.key != m.key(c.node) || i < len(values) && (string(c.old) != string(values[i]) || string(c.base) != string(values[i])) {
				t.Fatalf("seed %d: node %d is written over %q and %q", seed, c.node, c.old, c.base)
			}
			var replaced recordID
			if len(c.old) > 0 {
				n := r.read(c.old)
				replaced = recordID{n.Until, n.Nonce}
			}
			if c.replaced != replaced {
				t.Fatalf("seed %d: node %d is claimed over %q and says %+v", seed, c.node, c.old, c.replaced)
			}
		}
		if !slices.Equal(gotBest, best) {
			t.Fatalf("seed %d: candidates\n%+v, want\n%+v", seed, gotBest, best)
		}
		if got.free != want.free || got.pending != want.pending || !errors.Is(got.damage, want.damage) || (got.damage == nil) != (want.damage == nil) {
			t.Fatalf("seed %d: free %d, pending %d, bad %v; want %d, %d, %v", seed, got.free, got.pending, got.damage, want.free, want.pending, want.damage)
		}
		if got.byStore != want.byStore {
			t.Fatalf("seed %d: left alone by the store's clock: %t, want %t", seed, got.byStore, want.byStore)
		}
		if !slices.Equal(got.ahead, want.ahead) || !slices.Equal(got.nodes, want.nodes) || len(got.others) != others {
			t.Fatalf("seed %d: ahead %v of %v, %d others; want %v of %v, %d", seed, got.ahead, got.nodes, len(got.others), want.ahead, want.nodes, others)
		}
		if n := len(want.ahead); n > 0 {
			slices.Sort(want.ahead)
			if lower := want.ahead[(n+1)/2-1]; got.behind() != lower {
				t.Fatalf("seed %d: the clock is %d behind, want the lower median of %v", seed, got.behind(), want.ahead)
			}
		} else if got.behind() != 0 {
			t.Fatalf("seed %d: the clock is %d behind, and there is no other", seed, got.behind())
		}
	}
}

// chosen returns the node IDs that a random choice can return, in ascending
// order.
func (r *rig) chosen(choose func() uint64) []uint64 {
	seen := make(map[uint64]bool)
	for r.random = range uint64(64) {
		seen[choose()] = true
	}
	r.random = 0
	var all []uint64
	for node := range seen {
		all = append(all, node)
	}
	slices.Sort(all)
	return all
}

// TestChooseLaw: the best one or, after a refused claim, any that is about as
// good; node IDs without a record and those given back are equal.
func TestChooseLaw(t *testing.T) {
	r := newRig(t, 7, nil)
	for _, tt := range []struct {
		ranks []int
		want  int // how many of the first ones
	}{{[]int{0}, 1}, {[]int{0, 0, 1, 2}, 3}, {[]int{1, 1, 2}, 2}, {[]int{2, 2, 2}, 3}, {[]int{1, 2}, 1}, {[]int{0, 2, 2}, 1}, {[]int{0, 1}, 2}} {
		var best []candidate
		for i, rank := range tt.ranks {
			best = append(best, candidate{claim: claim{nodeGrant: nodeGrant{node: uint64(i)}}, rank: rank})
		}
		for _, crowded := range []bool{false, true} {
			r.m.search.crowded = crowded
			want := 1
			if crowded {
				want = tt.want
			}
			if got := r.chosen(func() uint64 { return r.m.choose(best).node }); len(got) != want || got[want-1] != uint64(want-1) {
				t.Errorf("of the ranks %v, crowded %t: any of %v, want the first %d", tt.ranks, crowded, got, want)
			}
		}
	}
}

// TestListedLaw: after a list of all records, the claim is for a node ID
// without a record, or one of the first eighth of the lowest rank, or one of
// the first 8.
func TestListedLaw(t *testing.T) {
	const size = 128
	for _, free := range []int{0, 1, 7, 8, 9, 64, 71, 72, 127, 128} {
		r := newRig(t, 7, nil)
		r.m.wanted, r.m.settings.AllowClockAhead = true, true // because the records are old
		e := event{}
		for node := range uint64(size) {
			// The least recently used is the last one.
			state := nodeHeld
			if node >= uint64(size-free) {
				state = nodeFree
			}
			e.Keys = append(e.Keys, r.key(node))
			e.Values = append(e.Values, r.record(func(n *nodeRecord) { n.State, n.Until = state, r.wall-100_000-int64(node) }))
		}
		list := func() uint64 {
			r.m.claim, r.m.out, r.m.search.rounds = nil, nil, 3
			r.m.handleList(e)
			if r.m.claim == nil || len(r.m.out) != 1 || r.m.out[0].Kind != actionCAS || r.m.pending != opClaim || r.m.search.rounds != 0 || r.m.search.droughts != 0 || r.m.status.Err != nil {
				t.Fatalf("%d are free, and it does %+v", free, r.m.out)
			}
			return r.m.claim.node
		}
		alike := free
		if free == 0 {
			alike = size // all expired
		}
		want := alike / 8
		if want < 8 {
			want = min(alike, 8)
		}
		got := r.chosen(list)
		if len(got) != want || got[0] != uint64(size-want) || got[want-1] != size-1 {
			t.Errorf("%d are free: any of %v, want the last %d", free, got, want)
		}
	}
}

// TestExhaustedLaw: how long a member waits if no node ID is free, and the text
// of the error.
func TestExhaustedLaw(t *testing.T) {
	for _, window := range []int64{100, 300, 2000, 6000, 8000, 8004, 60_000} {
		for _, free := range []int64{never, rigTime - 5, rigTime, rigTime + 48, rigTime + 49, rigTime + 50, rigTime + 500, rigTime + 1998, rigTime + 1999, rigTime + 2000, rigTime + 90_000} {
			for _, pending := range []int64{never, rigTime + 10, rigTime + 700} {
				for _, bad := range []error{nil, ErrDamaged} {
					r := newRig(t, 4, nil)
					r.m.seen.info.Config.Window, r.m.seen.lowestNode, r.m.seen.highestNode = time.Duration(window)*time.Millisecond, 3, 7
					r.m.failExhausted(sighting{free: free, pending: pending, damage: bad})
					first := free
					if pending != never && (free == never || pending < free) {
						first = pending
					}
					if bad != nil && first == never {
						if r.m.status.Err != bad || r.m.notBefore != r.mono+1000 {
							t.Errorf("nothing but damaged records: %v, and wait %d ms", r.m.status.Err, r.m.notBefore-r.mono)
						}
						continue
					}
					want := NodesExhaustedError{sequencer: "s", nodes: NodeRange{Lo: 3, Hi: 7}, Free: timeOf(first), Ahead: free == never && pending != never}
					if e, ok := r.m.status.Err.(*NodesExhaustedError); !ok || *e != want {
						t.Errorf("free %d, pending %d: %#v, want %#v", free, pending, r.m.status.Err, want)
					}
					wait := int64(2000)
					if first != never {
						wait = min(wait, max(first-rigTime+1, 50))
					}
					wait = min(wait, max(window/4, 50))
					if got := r.m.notBefore - r.mono; got != wait {
						t.Errorf("window %d, free %d, pending %d: wait %d ms, want %d", window, free, pending, got, wait)
					}
					r.random = 1<<64 - 1
					r.m.failExhausted(sighting{free: free, pending: pending})
					if got := r.m.notBefore - r.mono; got != wait+63 {
						t.Errorf("window %d, free %d, pending %d: wait %d ms at most, want %d", window, free, pending, got, wait+63)
					}
				}
			}
		}
	}
}

// TestDisputed: if all node IDs are left alone only because of the store's
// clock, and ours is ahead of it, the error reports that, and not that no node
// ID is free.
func TestDisputed(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.pickable()
	r.storeSays(20_000, 20_000)
	lapsed := r.record(func(n *nodeRecord) { n.State, n.Until, n.Wall = nodeHeld, r.wall-1000, r.wall-7000 })
	r.answer(event{Keys: a.Keys, Values: [][]byte{lapsed, lapsed}})
	if err := r.m.status.Err; !errors.Is(err, ErrClockAhead) || errors.Is(err, ErrNodesExhausted) {
		t.Errorf("%v", err)
	}
	// Once others agree with our clock, it picks again at once.
	r = newRig(t, 1, nil)
	a = r.pickable()
	r.storeSays(20_000, 20_000)
	c := &r.m.clocks
	c.comparing, c.comparingSince, c.readAt = true, r.m.mono, r.m.mono
	c.records, c.leads = make(map[string][]byte), map[string]lead{"x": {}, "y": {}}
	r.answer(event{Keys: a.Keys, Values: [][]byte{lapsed, lapsed}})
	if r.request == nil || r.request.Kind != actionGetMany {
		t.Errorf("it asks for %+v, and is %+v", r.request, r.m.status)
	}
}

// TestDroughts: lists of all records that find none free become less frequent.
func TestDroughts(t *testing.T) {
	for _, window := range []int64{100, 6000, 60_000, 31_622_400_000} {
		r := newRig(t, 1, func(c *Info) {
			c.Config.Window = time.Duration(window) * time.Millisecond
			c.LongestWindow = c.Config.Window
		})
		e := event{Keys: []string{r.key(0), r.key(1)}}
		for i := range e.Keys {
			e.Values = append(e.Values, r.record(func(n *nodeRecord) { n.State, n.Until, n.Wall = nodeHeld, r.wall+int64(i)+5, r.wall }))
		}
		for n := range 16 {
			r.m.search.rounds = 2
			r.m.handleList(e)
			want := min(int64(2000)<<min(n, 10), max(window/4, 2000))
			if got := r.m.search.listAfter - r.mono; got != want || r.m.search.listFree != r.wall+5 || r.m.search.rounds != 0 {
				t.Errorf("window %d, list %d: the next in %d ms, want %d; free at %d; round %d", window, n+1, got, want, r.m.search.listFree-r.wall, r.m.search.rounds)
			}
		}
		r.m.succeeded()
		r.m.handleList(e)
		if got := r.m.search.listAfter - r.mono; got != 2000 {
			t.Errorf("window %d: after a node ID was had, the next in %d ms, want 2000", window, got)
		}
	}
}

// TestRounds: 8, 32 and 128 records are read, and then all are listed, unless a
// recent list found none free and the first one will not be free yet.
func TestRounds(t *testing.T) {
	for _, tt := range []struct {
		name        string
		after, free int64 // since now
		none, lists bool
		errFree     int64
	}{
		{name: "never listed", after: -1, none: true, lists: true, errFree: 5},
		{name: "listed, and it is time", after: 0, free: 5, lists: true},
		{name: "listed just now", after: 1, free: 3, errFree: 3},
		{name: "listed just now, and the first is free next", after: 1, free: 0, errFree: 0},
		{name: "listed just now, and the first has ended", after: 1, free: -1, lists: true},
		{name: "listed just now, and nothing was said", after: 1, none: true, errFree: 5},
	} {
		r := newRig(t, 10, nil)
		r.m.wanted = true
		r.m.search.listAfter, r.m.search.listFree = r.mono+tt.after, r.wall+tt.free
		if tt.none {
			r.m.search.listFree = never
		}
		held := r.record(func(n *nodeRecord) { n.State, n.Until, n.Wall = nodeHeld, r.wall+5, r.wall })
		r.m.settings.random = rand.New(rand.NewPCG(1, 1)).Uint64
		r.m.pick()
		var sizes []int
		for r.m.pending == opPick {
			a := r.m.out[len(r.m.out)-1]
			sizes = append(sizes, len(a.Keys))
			e := event{Kind: eventAnswered, Keys: a.Keys}
			for range a.Keys {
				e.Values = append(e.Values, held)
			}
			r.m.pending = opNone
			r.m.handlePick(e)
		}
		if !slices.Equal(sizes, []int{8, 32, 128}) || (r.m.pending == opList) != tt.lists {
			t.Errorf("%s: it reads %v, and lists: %t", tt.name, sizes, r.m.pending == opList)
		}
		if tt.lists {
			if a := r.m.out[len(r.m.out)-1]; a.Kind != actionList || a.Key != "v1/s/n/" {
				t.Errorf("%s: %+v", tt.name, a)
			}
			continue
		}
		if e, ok := r.m.status.Err.(*NodesExhaustedError); !ok || !e.Free.Equal(timeOf(r.wall+tt.errFree)) || r.m.search.rounds != 0 {
			t.Errorf("%s: %v, round %d; want free at %v", tt.name, r.m.status.Err, r.m.search.rounds, timeOf(r.wall+tt.errFree))
		}
	}
	// A range that was read completely is not listed.
	for bits, rounds := range map[int]int{3: 0, 5: 1, 7: 2} {
		for more := range uint64(2) {
			r := newRig(t, bits, nil)
			r.m.search.rounds, r.m.seen.highestNode = rounds, r.m.seen.highestNode+more
			r.m.handlePick(event{})
			if stops := r.m.pending == opNone; stops != (more == 0) || stops && r.m.search.rounds != 0 {
				t.Errorf("all of 2^%d were read, of %d more: operation %d, round %d", bits, more, r.m.pending, r.m.search.rounds)
			}
		}
	}
}
