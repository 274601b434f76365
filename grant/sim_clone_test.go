package grant

import (
	"context"
	"maps"
	"slices"

	"github.com/firnid/firn"
)

// clone copies a running process over another one.
func (w *world) clone(p *member) {
	if p.id != 2 || p.g == nil || p.stopped > w.Now || w.res.Seed%4 != 1 || len(w.cloned) > 0 {
		return
	}
	other := w.members[3]
	if other.m == nil {
		return
	}
	w.fault(clone)
	status := p.m.status
	hi := status.Until.UnixMilli() * simMS
	if p.request != 0 {
		hi += 2 * w.longest // a renewal may be in progress, and be adopted by both
	}
	w.cloned = append(w.cloned, cloning{p.t.history, p.used().UnixMicro() - p.f.unit, hi})
	other.process = p.process
	other.life, other.request = w.Token(), 0
	other.m = p.m.clone()
	other.tools = tools{ahead: p.ahead}
	t := *p.t
	t.span = nil
	other.t = &t
	other.g, _ = firn.NewGenerator(p.f.layout, firn.Grant{Node: p.t.node, From: p.g.Used(), Until: status.Until}, w.options(other))
	if p.request != 0 {
		other.request = -1
		w.alive(other, simTimeout, func() {
			if other.request == -1 {
				other.request = 0
				w.step(other, event{Kind: eventAnswered, Err: context.DeadlineExceeded})
			}
		})
	} else {
		w.step(other, event{Kind: eventTick})
	}
	w.alive(other, 1, func() { w.copyWorks(other) })
}

// copyWorks makes the copy of a process make IDs, usually.
func (w *world) copyWorks(p *member) {
	w.use(p)
	w.alive(p, w.upTo(second), func() { w.copyWorks(p) })
}

// clone returns a machine in the same state that shares nothing with m, like a
// copy of a running virtual machine.
func (m *machine) clone() *machine {
	c := *m
	c.out = nil
	if m.hold != nil {
		h := *m.hold
		h.attempts, h.earlier = slices.Clone(h.attempts), slices.Clone(h.earlier)
		c.hold = &h
	}
	if m.claim != nil {
		claim := *m.claim
		claim.attempts = slices.Clone(claim.attempts)
		c.claim = &claim
	}
	c.clocks.records, c.clocks.leads = maps.Clone(m.clocks.records), maps.Clone(m.clocks.leads)
	return &c
}
