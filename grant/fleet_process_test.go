package grant

import (
	"errors"
	"time"

	"github.com/firnid/firn"
)

// A fleetProcess makes IDs, and behaves like a Keeper. It always wants IDs: it
// makes one whenever anything happens to it.
type fleetProcess struct {
	place  int
	m      *machine
	g      *firn.Generator
	mark   time.Time // exclusive end of what sealed generators made
	node   uint64
	offset int64 // of its clock, ms
	span   *fleetSpan
	last   firn.ID // of the term
	claim  *fleetClaim
	grants map[uint64]int64 // the latest mark applied, ms, of each number it had

	asked  int64 // µs: when the store last returned its lineage
	timer  int   // the current one
	expiry int   // the current one
	gone   bool
	ending bool
	ended  func() // when the node ID was given back
	first  func() // when the first ID was made
	since  int64  // µs: without IDs since then; -1 if it has them
	waits  int    // the step in which that began
}

// A fleetClaim is a write that the machine requested, and its result.
type fleetClaim struct {
	next    []byte
	applied bool
	before  int64 // the mark that it replaced
}

func (p *fleetProcess) granted(node int, until int64) {
	p.grants[uint64(node)] = max(p.grants[uint64(node)], until)
}

// clock is the process's clock in ms.
func (w *fleetWorld) clock(p *fleetProcess) int64 { return fleetBegins + w.Now/1000 + p.offset }

// mono returns a clock that never goes back.
func (w *fleetWorld) mono() int64 { return w.Now/1000 + 1 }

// start starts a process in a place of the fleet. first is called after its
// first ID; it may be nil.
func (w *fleetWorld) start(place int, first func()) {
	p := &fleetProcess{place: place, since: -1, asked: -fleetLineageFor, first: first, grants: make(map[uint64]int64, 1)}
	p.offset = (w.upTo(2*w.plan.Skew) - w.plan.Skew).Milliseconds()
	p.m = newMachine(Settings{Name: fleetName, random: w.Rand.Uint64, Host: "host", storeClock: true})
	w.running[place] = p
	w.toCome--
	w.stand(p)
	w.open(p)
}

// open is the first step of sequencer.Open: it looks up the sequencer. A
// process that fails to do so tries again.
func (w *fleetWorld) open(p *fleetProcess) {
	w.request(p, action{Kind: actionGet, Key: w.configKey}, false, w.Now+5_000_000, func(e event) {
		switch {
		case p.gone:
		case e.Err != nil:
			w.after(time.Second+w.upTo(time.Second), func() {
				if !p.gone {
					w.open(p)
				}
			})
		default:
			w.deliver(p, event{Kind: eventAttach})
		}
	})
}

// crash ends a process abruptly.
func (w *fleetWorld) crash(p *fleetProcess) {
	if p.gone {
		return
	}
	p.gone, p.g = true, nil
	w.waited(p)
}

// stop gives a process's node ID back and ends it, at the latest after ten
// seconds.
func (w *fleetWorld) stop(p *fleetProcess, then func()) {
	if p.gone {
		then()
		return
	}
	w.waited(p)
	p.ending = true
	p.ended = func() {
		if !p.gone {
			p.gone, p.g = true, nil
			then()
		}
	}
	w.after(10*time.Second, func() { p.ended() })
	w.deliver(p, event{Kind: eventRelease})
}

// stand records that a process has no IDs from now on.
func (w *fleetWorld) stand(p *fleetProcess) {
	if p.since >= 0 || p.ending || p.gone {
		return
	}
	p.since, p.waits = w.Now, len(w.report.Steps)-1
	w.without++
	w.step.WithoutMost = max(w.step.WithoutMost, w.without)
}

// waited records that it has IDs again.
func (w *fleetWorld) waited(p *fleetProcess) {
	if p.since < 0 {
		return
	}
	s := &w.report.Steps[p.waits]
	s.Waits = append(s.Waits, time.Duration(w.Now-p.since)*time.Microsecond)
	p.since = -1
	if w.without--; w.without == 0 {
		w.step.All = time.Duration(w.Now-w.from) * time.Microsecond
	}
}

func (p *fleetProcess) used() int64 {
	t := p.mark
	if p.g != nil {
		if u := p.g.Used(); u.After(t) {
			t = u
		}
	}
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// deliver passes an event to a process's machine.
func (w *fleetWorld) deliver(p *fleetProcess, e event) {
	if p.gone {
		return
	}
	e.Wall, e.Mono, e.Used = w.clock(p), w.mono(), p.used()
	for _, a := range p.m.step(e) {
		w.act(p, a)
	}
}

// act performs an action like a grant.Keeper.
func (w *fleetWorld) act(p *fleetProcess, a action) {
	switch {
	case a.isRequest():
		w.ask(p, a)
	case a.Kind == actionTimer:
		mine := w.Token()
		p.timer = mine
		w.At((a.At-1)*1000, func() {
			if p.timer == mine && !p.gone {
				w.draw(p)
				w.deliver(p, event{Kind: eventTick})
			}
		})
	case a.Kind == actionBegin:
		w.begin(p, a)
	case a.Kind == actionExtend:
		w.report.Renewed++
		if p.g == nil {
			return
		}
		if err := p.g.Extend(time.UnixMilli(a.Until)); err != nil {
			w.Fail("extend: %v", err)
		}
		w.hasUntil(p, a.Until)
	case a.Kind == actionSeal:
		if p.g != nil {
			if mark := p.g.Seal(); mark.After(p.mark) {
				p.mark = mark
			}
			p.g = nil
		}
		w.At(w.Now, func() { w.deliver(p, event{Kind: eventSealed}) })
	case a.Kind == actionAlarm:
		w.report.Alarms++
	case a.Kind == actionReport && p.ending:
		if a.Status.Phase == Idle {
			w.At(w.Now, p.ended)
		}
	case a.Kind == actionReport && p.since >= 0:
		// A call that waits for an ID checks again at every change, and records
		// it.
		w.At(w.Now, func() {
			if p.since >= 0 {
				w.deliver(p, event{Kind: eventDemand})
			}
		})
	}
}

// fleetLineageFor is that of a Keeper, in µs.
const fleetLineageFor = 1_000_000

// ask makes a request like a grant.Keeper: it asks for the lineage before a
// write, and before the configuration is read, unless it has just done so.
func (w *fleetWorld) ask(p *fleetProcess, a action) {
	if a.Kind == actionCAS && recordField(a.Next, `"state":`) == "held" {
		p.claim = &fleetClaim{next: a.Next}
	}
	limit := min(5000, w.window/6) * 1000
	answer := func(e event) {
		e.Kind = eventAnswered
		w.deliver(p, e)
		if p.since >= 0 && !p.gone {
			w.draw(p)
		}
	}
	if w.plan.Store.Blind || a.Kind != actionCAS && a.Key != w.configKey || w.Now-p.asked < fleetLineageFor {
		w.request(p, a, false, w.Now+limit, answer)
		return
	}
	deadline := w.Now + limit
	w.request(p, action{}, true, deadline, func(e event) {
		if e.Err == nil {
			p.asked = w.Now
		}
		switch {
		case p.gone:
		case w.Now >= deadline:
			answer(event{Err: ErrNotSent}) // the context is done
		default:
			w.request(p, a, false, w.Now+limit, answer)
		}
	})
}

// begin starts to use a grant, and checks that it is valid: written in the
// store by this process, and not below the mark that it replaced.
func (w *fleetWorld) begin(p *fleetProcess, a action) {
	w.report.Acquired++
	switch c := p.claim; {
	case c == nil || !c.applied:
		w.Fail("windows: a process begins node %d, and its claim was never applied", a.Node)
	case a.From < c.before:
		w.Fail("windows: a process begins node %d at %d, below the mark %d of the one before", a.Node, a.From, c.before)
	}
	g := firn.Grant{Node: a.Node, From: time.UnixMilli(a.From), Until: time.UnixMilli(a.Until)}
	var err error
	if p.g != nil {
		err = p.g.Switch(g)
	} else {
		if g.From.Before(p.mark) {
			g.From = p.mark
		}
		p.g, err = firn.NewGenerator(w.layout, g, &firn.Options{
			Now: func() time.Time { return time.UnixMilli(w.clock(p)) }, MaxAhead: w.layout.MaxAhead(),
		})
	}
	if err != nil {
		w.Fail("begin: %v", err)
		return
	}
	p.node, p.span, p.last = a.Node, new(fleetSpan), 0
	w.hasUntil(p, a.Until)
}

// hasUntil records when the window ends.
func (w *fleetWorld) hasUntil(p *fleetProcess, until int64) {
	mine := w.Token()
	p.expiry = mine
	w.At((until-fleetBegins-p.offset)*1000, func() {
		if p.expiry == mine && !p.gone {
			w.draw(p)
		}
	})
	if p.since >= 0 {
		w.draw(p)
	}
}

// draw makes an ID and checks it. If the window has none, the process is
// without IDs, and asks for another window.
func (w *fleetWorld) draw(p *fleetProcess) {
	if p.gone || p.ending {
		return
	}
	if p.g != nil {
		id, err := p.g.TryNext()
		if err == nil {
			w.took(p, id)
			return
		}
		if !errors.Is(err, firn.ErrGrantOver) {
			w.Fail("an ID: %v", err)
			return
		}
	}
	if p.since < 0 {
		w.stand(p)
		w.At(w.Now, func() {
			if p.since >= 0 {
				w.deliver(p, event{Kind: eventDemand})
			}
		})
	}
}

// took checks an ID.
func (w *fleetWorld) took(p *fleetProcess, id firn.ID) {
	w.ids = append(w.ids, id)
	parts, err := w.layout.Decompose(id)
	if err != nil {
		w.Fail("ID %v: %v", id, err)
		return
	}
	lo := parts.Time.UnixMilli()
	hi := lo + 1
	if parts.Node != p.node || id <= p.last {
		w.Fail("order: node %d makes %v after %v", p.node, id, p.last)
	}
	p.last = id
	if hi > p.grants[p.node] {
		w.Fail("until: an ID of node %d for %d, and granted was what is before %d", p.node, lo, p.grants[p.node])
	}
	if lead := lo - w.clock(p); lead > w.layout.MaxAhead().Milliseconds() {
		w.Fail("ahead: an ID of node %d is %d ms ahead of the clock", p.node, lead)
	}
	m := &w.store.marks[p.node]
	m.taken = max(m.taken, hi)
	s := p.span
	if s.hi == 0 {
		*s = fleetSpan{lo, hi}
		m.spans = append(m.spans, s)
	}
	s.lo, s.hi = min(s.lo, lo), max(s.hi, hi)
	for _, other := range m.spans[max(0, len(m.spans)-20):] {
		if other != s && other.lo < s.hi && s.lo < other.hi {
			w.Fail("windows: of node %d one process makes what is from %d to %d in a term, and another what is from %d to %d", p.node, s.lo, s.hi, other.lo, other.hi)
		}
	}
	w.waited(p)
	if first := p.first; first != nil {
		p.first = nil
		w.At(w.Now, first)
	}
}
