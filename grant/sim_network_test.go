package grant

import (
	"slices"

	"github.com/firnid/firn"
)

// A network is the set of servers, and what the store knows about them: the
// records of members, which outlive them. A server without a node ID asks
// another one, by the rules of server/internal/service/forwarding: a hop names the intended
// member and the store, and any other member refuses it.
type network struct {
	hosts   []host  // by address
	entries []entry // the records
	last    int     // the last member
}

// A host is what answers at an address: a member, a server of another store
// with a sequencer of the same name, or nothing.
type host struct {
	p       *member
	life    int
	foreign *firn.Generator
	of      *format
}

// An entry is a member's record.
type entry struct {
	member  int
	address int
	at      int64
}

// entryLife is how long a record is valid.
const entryLife = 30 * second

// listen gives a process an address, which another one may have just had.
func (w *world) listen(p *member) {
	n := &w.net
	n.last++
	p.self = n.last
	var idle []int
	for i, h := range n.hosts {
		if h == (host{}) {
			idle = append(idle, i)
		}
	}
	if len(idle) > 0 {
		p.address = idle[w.Rand.IntN(len(idle))]
	} else {
		p.address = len(n.hosts)
		n.hosts = append(n.hosts, host{})
	}
	n.hosts[p.address] = host{p: p, life: p.life}
	w.announce(p)
}

// announce writes a process's record.
func (w *world) announce(p *member) {
	if p.self == 0 || p.cut > w.Now || w.store.down > w.Now {
		return
	}
	w.net.entries = slices.DeleteFunc(w.net.entries, func(e entry) bool { return e.member == p.self || e.at < w.Now-entryLife })
	w.net.entries = append(w.net.entries, entry{p.self, p.address, w.Now})
}

// hangUp ends a process's server. A server of another store may take its
// address.
func (w *world) hangUp(p *member) {
	if p.self == 0 {
		return
	}
	address := p.address
	w.net.hosts[address] = host{}
	if !w.Chance(0.3) {
		return
	}
	f := formatFor(w.config.Layout)
	g, err := firn.NewGenerator(f.layout, firn.StaticGrant(uint64(w.Rand.IntN(int(f.nodes())))), &firn.Options{Now: w.time})
	if err != nil {
		w.Fail("foreign server: %v", err)
		return
	}
	w.net.hosts[address] = host{foreign: g, of: f}
	w.After(w.upTo(minute), func() { w.net.hosts[address] = host{} })
}

// forward makes a process ask others for IDs.
func (w *world) forward(p *member) {
	var all []entry
	for _, e := range w.net.entries {
		if e.member != p.self && e.at >= w.Now-entryLife {
			all = append(all, e)
		}
	}
	w.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	const targets = 3
	w.hop(p, all[:min(targets, len(all))], int(w.upTo(100)))
}

// hop asks the first of some servers, and then the others if that fails.
func (w *world) hop(p *member, all []entry, n int) {
	if len(all) == 0 {
		return
	}
	to := all[0]
	next := func() { w.alive(p, w.upTo(10*simMS), func() { w.hop(p, all[1:], n) }) }
	w.After(w.upTo(10*simMS), func() {
		h := w.net.hosts[to.address]
		switch {
		case h.foreign != nil:
			w.fault(foreignAddress)
			next() // no record of this store names it
		case h.p == nil || h.p.life != h.life:
			next()
		default:
			q := h.p
			w.alive(q, 0, func() { w.answerHop(p, q, to, n, next) })
		}
	})
}

// answerHop makes a member make IDs for another one. It does not ask a third.
func (w *world) answerHop(p, q *member, to entry, n int, next func()) {
	if q.self != to.member {
		w.fault(reusedAddress)
	}
	if q.g == nil {
		next()
		return
	}
	b, err := q.g.NextBatch(done, n)
	if err != nil {
		next()
		return
	}
	x := w.takeBatch(q, b, n)
	back := w.upTo(20 * simMS)
	if w.Chance(w.focus.Slow) {
		w.fault(slowRequest)
		back = w.upTo(w.focus.Delay)
	}
	w.alive(p, back, func() {
		w.called(callForward)
		w.giveTaken(p, x)
	})
}
