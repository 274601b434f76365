package grant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn"
)

// A member is a process, or its successors in the same place: after a crash,
// another process starts.
type member struct {
	id            int
	pinned, upper bool       // may take one node ID; those of the upper part
	loops         bool       // its clock is a year ahead, and it does not live long
	only          *[2]uint64 // the node IDs that it may take, if byHand

	process
}

// A process is everything that ends with a crash. Times are those of the world,
// and never stands for none.
type process struct {
	life  int   // identifies the process: events for another one are ignored
	began int64 // when it started

	m *machine
	g *firn.Generator // nil without a grant
	f *format         // of g
	t *term           // what g uses

	mark   time.Time // what sealed generators have used
	asked  *action   // the last claim or renewal
	owner  string    // of the last claim
	late   bool      // the node ID was acquired after the sequencer had ended
	last   uint64    // the last slot taken
	lastOf *format
	wanted bool
	nodes  [2]uint64 // the range that it may take, both inclusive

	// The clock, against true time.
	offset  int64
	drift   float64
	driftAt int64
	grain   int64 // 0 means the finest

	stopped   int64 // suspended until then
	cut       int64 // cut off from the store until then
	shaky     int64 // when a request was last lost or slow
	disturbed int64 // when clock or network were last disturbed, or will be in order again

	request   int   // the request in progress, 0 if none
	timer     int   // the current timer
	shown     int64 // the last revision that the store returned
	settled   int64 // the greatest revision that was followed by an applied write
	settledAt int64 // when that was returned
	revision  int64 // the greatest of these that the store has returned since
	revised   int64 // when it did
	floor     int64 // the latest floor that it has read, in ms
	floorRead int64 // when it did

	tools // what a program makes IDs with, besides the generator

	waiting *action // the request in progress, if byHand
	answer  func(event)
}

// newMember returns a place without a process.
func newMember(id int) *member { return &member{id: id, process: process{cut: noTime}} }

// end ends a process. Its successor has the same clock, network and place.
func (w *world) end(p *member) {
	p.process = process{
		life: w.Token(), began: w.Now, offset: p.offset, drift: p.drift, driftAt: p.driftAt, cut: p.cut, timer: p.timer,
		stopped: noTime, shaky: noTime, disturbed: w.Now, revised: noTime, floor: noTime, floorRead: noTime,
	}
}

// start starts a new process, once it can read the configuration.
func (w *world) start(p *member) {
	w.end(p)
	if !w.byHand && (w.store.down > w.Now || p.cut > w.Now || w.unfenced && !w.open) {
		w.alive(p, second+w.upTo(second), func() { w.start(p) })
		return
	}
	p.wanted = true
	switch {
	case p.loops:
		w.fault(clockYear)
		p.offset = year
	case w.wild && w.Chance(0.05):
		w.fault(clockSkew)
		p.offset = w.upTo(4*minute) - 2*minute
	case w.skewed && !w.byHand:
		w.fault(clockSkew)
		p.offset = w.upTo(8*second) - 4*second
	}
	if w.wild && w.Chance(0.2) {
		w.fault(clockDrift)
		p.drift, p.driftAt = (w.Rand.Float64()-0.5)*4e-4, w.Now
	}
	if !w.byHand && (w.focus.Coarse || w.Chance(0.1)) {
		w.fault(clockCoarse)
		p.grain = second
	}
	f := formatFor(w.config.Layout)
	p.nodes = [2]uint64{0, f.nodes() - 1}
	if p.pinned {
		p.nodes[1] = 0
	}
	if p.upper {
		p.nodes[0] = f.nodes() * 5 / 8
	}
	if p.only != nil {
		p.nodes = *p.only
	}
	set := settings{name: simName, random: w.Rand.Uint64, host: fmt.Sprint(p.id), storeClock: w.shape.clock}
	set.Nodes = &NodeRange{Lo: p.nodes[0], Hi: p.nodes[1]}
	set.AllowClockBehind = w.byHand || w.Chance(0.7)
	set.AllowClockAhead = !w.besieged && (p.loops || w.Chance(0.3))
	if !w.byHand && w.Chance(0.7) {
		config := w.config // as package sequencer does
		set.config = &config
	}
	p.m = newMachine(set)
	w.step(p, event{Kind: eventJoin})
	if w.byHand {
		return
	}
	w.alive(p, 1, func() { w.work(p) })
}

// work makes a process make IDs from time to time.
func (w *world) work(p *member) {
	w.use(p)
	gap := w.upTo(w.focus.Busy)
	if w.Chance(0.01) {
		gap = w.upTo(4 * w.window()) // idle
	}
	w.alive(p, gap, func() { w.work(p) })
}

// crash ends a process abruptly, and starts another a little later.
func (w *world) crash(p *member, later int64) {
	w.end(p)
	w.alive(p, later, func() { w.start(p) })
}

// loop restarts a process repeatedly.
func (w *world) loop(p *member) {
	w.start(p)
	w.After(w.upTo(20*second), func() {
		w.fault(crashed)
		w.end(p)
		w.After(w.upTo(5*second), func() { w.loop(p) })
	})
}

// alive runs do after a while, unless the process has ended by then. A
// suspended process runs it when it continues.
func (w *world) alive(p *member, d int64, do func()) {
	life := p.life
	w.After(d, func() {
		switch {
		case p.life != life:
		case p.stopped > w.Now:
			w.alive(p, p.stopped-w.Now, do)
		default:
			do()
		}
	})
}

// clock returns a member's clock.
func (w *world) clock(p *member) int64 {
	t := w.Now + p.offset + int64(p.drift*float64(w.Now-p.driftAt))
	if p.grain > 0 {
		t = floorDiv(t, p.grain) * p.grain
	}
	return t
}

// mono returns the time since the world began, by a clock that never goes back.
func (w *world) mono() time.Duration { return time.Duration(w.Now-w.begins) * time.Microsecond }

// used returns what a Holder returns as Used.
func (p *member) used() time.Time {
	t := p.mark
	if p.g != nil {
		if u := p.g.Used(); u.After(t) {
			t = u
		}
	}
	return t
}

// step passes an event to a member's machine, if the process runs.
func (w *world) step(p *member, e event) {
	if p.stopped > w.Now {
		w.alive(p, 0, func() { w.step(p, e) })
		return
	}
	w.Trace(w.Now, int64(p.id), int64(e.Kind))
	for _, a := range p.m.step(e.withTimes(time.UnixMicro(w.clock(p)), w.mono(), p.used())) {
		w.act(p, a)
	}
}

// act performs an action like a Keeper.
func (w *world) act(p *member, a action) {
	w.Trace(int64(a.Kind), int64(a.Node), a.From, a.Until)
	for _, c := range []byte(a.Key) {
		w.Trace(int64(c))
	}
	switch {
	case a.isRequest():
		w.ask(p, a)
	case a.Kind == actionTimer:
		p.timer = w.Token()
		mine := p.timer
		w.alive(p, a.At*simMS-w.mono().Microseconds(), func() {
			if p.timer == mine {
				w.step(p, event{Kind: eventTick})
			}
		})
	case a.Kind == actionBegin:
		w.begin(p, a)
	case a.Kind == actionExtend:
		w.extend(p, a)
	case a.Kind == actionSeal:
		d := int64(0)
		if !w.byHand && w.Chance(0.2) {
			w.fault(lateSeal)
			d = w.upTo(2 * second)
		}
		w.alive(p, d, func() {
			w.seal(p)
			w.step(p, event{Kind: eventSealed})
		})
	case a.Kind == actionAlarm:
		w.alarm(p, a.Alarm)
	case a.Kind == actionReport && errors.Is(a.Status.Err, ErrMismatch):
		// Its configuration belongs to an earlier life of the sequencer, so an
		// operator restarts it.
		late := w.upTo(2 * minute)
		p.disturbed = max(p.disturbed, w.Now+late)
		w.alive(p, late, func() { w.crash(p, w.upTo(second)) })
	}
}

// alarm does what operators do after an alarm.
func (w *world) alarm(p *member, i raisedAlarm) {
	w.res.Alarms++
	stops := i.Kind == AlarmStoreWentBack || i.Kind == AlarmWindowsOverlapped
	if stops && i.Until > i.From && w.store.restored == noTime && len(w.cloned) == 0 && w.stale < w.Now {
		w.Fail("frozen: member %d takes a takeover of node %d for a store that went back", p.id, i.Node)
	}
	if stops && !w.byHand {
		at := w.Now
		w.After(w.upTo(minute), func() {
			if w.fenced < at {
				w.fence()
			}
		})
	}
}

// begin starts to use a grant, and checks that it is valid: written in the
// store by this member, and above the mark that it replaced.
func (w *world) begin(p *member, a action) {
	w.res.Acquired++
	w.checkBegin(p, a)
	info, _ := p.m.lastInfo()
	g := a.grant()
	var err error
	if p.g != nil {
		err = p.g.Switch(g)
	} else {
		if g.From.Before(p.mark) {
			g.From = p.mark
		}
		p.f = formatFor(info.Config.Layout)
		p.ahead = info.Config.MaxAhead
		p.g, err = firn.NewGenerator(p.f.layout, g, w.options(p))
	}
	if err != nil {
		w.seal(p) // an empty grant: the clock went far back
	}
}

// formatOr returns the format of a process's generator, or the world's.
func (p *member) formatOr(w *world) *format {
	if p.f != nil {
		return p.f
	}
	return w.format
}

func (w *world) options(p *member) *firn.Options {
	return &firn.Options{Now: func() time.Time { return time.UnixMicro(w.clock(p)) }, MaxAhead: p.ahead}
}

// extend extends a member's window.
func (w *world) extend(p *member, a action) {
	w.res.Renewals++
	until := a.end()
	if p.g == nil {
		return
	}
	if err := p.g.Extend(until); err != nil {
		w.Fail("extend: %v", err)
	}
}

// seal ends the use of a member's grant.
func (w *world) seal(p *member) {
	if p.g == nil {
		return
	}
	if mark := p.g.Seal(); mark.After(p.mark) {
		p.mark = mark
	}
	p.retire()
	p.g = nil
}

// ask sends a request to the store.
func (w *world) ask(p *member, a action) {
	token, life, epoch := w.Token(), p.life, w.store.epoch
	p.request = token
	if a.Kind == actionCAS {
		x := w.of(a.Next)
		x.clock = floorDiv(w.clock(p), simMS)
		if x.State == "held" {
			if p.asked != nil && p.asked.Key == a.Key && !w.of(p.asked.Next).applied {
				// An attempt with an unknown result is repeated unchanged.
				x.clock = max(x.clock, w.of(p.asked.Next).clock)
			}
			p.asked = &a // before an actionBegin, the last request is the claim
		}
	}
	answer := func(e event) {
		if p.life == life && p.request == token {
			p.request = 0
			e.Kind = eventAnswered
			w.heard(p, a, e)
			over := w.overlaps(p, a, e)
			w.step(p, e)
			if over {
				w.checkStopped(p)
			}
		}
	}
	if w.byHand {
		p.waiting, p.answer = &a, answer
		return
	}
	w.After(min(simTimeout, w.window()/6), func() { answer(event{Err: context.DeadlineExceeded}) })
	there, back := w.upTo(20*simMS), w.upTo(20*simMS)
	if w.Chance(w.focus.Slow) {
		w.fault(slowRequest)
		there, p.shaky = w.upTo(w.focus.Delay), w.Now
	}
	if w.Chance(0.02) {
		w.fault(lostRequest)
		p.shaky = w.Now
		return
	}
	lost := w.Chance(0.02)
	w.After(there, func() {
		if w.store.epoch != epoch || w.store.down > w.Now || p.cut > w.Now && p.life == life {
			return
		}
		if e, ok := w.whereIsIt(p, a); !ok {
			if p.life == life && p.request == token && e.Kind == eventWentBack {
				w.step(p, e)
			}
			w.After(back, func() { answer(event{Err: ErrNotSent}) })
			return
		}
		shown, at := p.shown, p.revised
		if a.Kind == actionCAS && (p.request != token || p.life != life) {
			w.fault(lateCAS)
		}
		e, answered := w.store.do(a, p)
		if !answered {
			return
		}
		if lost {
			w.fault(lostAnswer)
			p.shaky = w.Now
			return
		}
		w.After(back, func() {
			for i := 1; len(e.Keys) > 2 && a.Kind == actionGetMany && i < len(e.Keys); i += 2 {
				e.Values[i] = w.store.values[e.Keys[i]] // a store may read each at another moment
			}
			if e.Applied && p.request == token && p.life == life && shown > p.settled {
				p.settled, p.settledAt = shown, at
			}
			answer(e)
		})
	})
}

// whereIsIt asks the store for its lineage, in the situations in which a Keeper
// does. ok is false if the request must not be made; the event contains the
// reason.
func (w *world) whereIsIt(p *member, a action) (e event, ok bool) {
	switch {
	case !w.lineage || a.Kind != actionCAS && !readsConfig(a):
		return e, true
	case p.revised != noTime && w.Now-p.revised < second:
		return e, true // it has just answered that
	case w.Chance(0.01):
		w.fault(lineageFailed)
		p.shaky = w.Now
		return e, false
	}
	now := w.store.revision
	back := now < p.revision
	switch {
	case back:
		if w.store.restored < p.settledAt {
			w.Fail("frozen: member %d takes a failover for a restore: the revision is %d, and was %d", p.id, now, p.revision)
		}
		p.settled, p.revision = noTime, noTime
		e.Kind = eventWentBack
		if w.Chance(0.9) {
			e.Values = [][]byte{w.store.values[simConfigKey]} // read in the same step
			p.hear(w.floor(), w.Now)
		}
	case now < p.settled:
		p.settled = p.revision
	default:
		p.revision = p.settled
	}
	p.shown, p.revised = now, w.Now
	return e, !back
}

// readsConfig reports whether a request reads the configuration.
func readsConfig(a action) bool {
	return a.Key == simConfigKey || slices.Contains(a.Keys, simConfigKey)
}

// fine reports whether a member should get its IDs: it is attached, its clock
// is right, and for a while there were no disturbances between it, its clock
// and the store.
func (w *world) fine(p *member) bool {
	const a = 20 * second
	clock := w.clock(p)
	switch {
	case !p.wanted || p.loops:
		return false
	case max(w.closing, w.store.down, p.cut, p.began, p.shaky) >= w.Now-a || p.disturbed >= w.Now-2*minute:
		return false
	case clock/simMS < w.floor()+60_000:
		return false // node IDs cannot be used yet
	case clock < w.Now-9*second || clock > w.Now+9*second || p.used().UnixMicro() > clock+2*w.window():
		return false // or it was wrong, and the process has used future times
	case w.clockOff != 0 && (w.wild || p.nodes[0] == p.nodes[1]):
		return false // it does not see enough clocks to know that the store's is wrong
	}
	return true
}

// free reports whether a member might get a node ID.
func (w *world) free(p *member) bool {
	if w.besieged {
		return true // there are more node IDs than members
	}
	f := formatFor(w.config.Layout)
	now := w.clock(p) / simMS
	for node := p.nodes[0]; node <= p.nodes[1]; node++ {
		v, ok := w.store.values[f.key(node)]
		if r := w.of(v); !ok || r.State == "free" && r.Until <= now || r.Until < now-5000 || p.owner != "" && r.Owner == p.owner {
			return true
		}
	}
	return false
}
