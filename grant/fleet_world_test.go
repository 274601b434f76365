package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn"
)

const fleetBegins = int64(1_795_132_800_000) // ms: 2026-11-20

// A fleet is a large number of processes that share one sequencer and one
// store. The store takes its time for every request, first come first served. A
// fleet counts what the store is asked in every second, and how long who has no
// IDs. A world has few processes, all kinds of faults, and the oracles; here it
// is the other way round, and only the IDs are compared.
type fleet struct {
	kernel // Now is in µs since fleetBegins

	plan   plan
	layout firn.Layout
	config string      // its key
	keys   []string    // of the records of all node IDs
	step   *stepReport // in progress
	from   int64       // when it began

	values  map[string][]byte
	busy    int64 // the store is busy with earlier requests until then
	down    bool
	seconds map[int64]*perSecond

	running                   []*fleetProcess // the newest one for each place
	without                   int             // processes without IDs
	toCome                    int             // future replacements
	ids                       []firn.ID
	acquired, renewed, alarms int
}

// A perSecond is the load of the store in a second.
type perSecond struct{ reads, writes float64 }

// newFleet returns a fleet without processes, and its sequencer.
func newFleet(p plan) *fleet {
	w := &fleet{
		kernel: newKernel(1, 0xf1ee7, 0), plan: p, config: configKey(simName), values: make(map[string][]byte), seconds: make(map[int64]*perSecond),
		layout:  firn.MustParseLayout(fmt.Sprintf("bits=time:41.node:%d.seq:%d,unit=1ms,epoch=2020-01-01T00:00:00Z", p.NodeBits, 22-p.NodeBits)),
		running: make([]*fleetProcess, p.Processes),
	}
	for n := range w.layout.MaxNode() + 1 {
		w.keys = append(w.keys, nodeKey(simName, n, w.layout.MaxNode()))
	}
	r := newInfo(simName, testConfig(w.layout.String(), p.Window))
	r.Created, r.nonce = timeOf(fleetBegins), newToken(random)
	w.values[w.config] = r.encode()
	return w
}

// after schedules do for d from now.
func (w *fleet) after(d time.Duration, do func()) { w.After(d.Microseconds(), do) }

// upTo returns a random duration.
func (w *fleet) upTo(d time.Duration) time.Duration {
	return time.Duration(w.Rand.Int64N(int64(d) + 1))
}

// do does a step.
func (w *fleet) do(s step) *stepReport {
	w.step = &stepReport{Name: s.Name, WithoutMost: w.without}
	w.from = w.Now
	switch {
	case s.Starts:
		w.toCome += len(w.running)
		for place := range w.running {
			w.start(place)
		}
	case s.Replaces:
		w.replaceAll(s.Lasts)
	case s.Outage:
		w.down = true
		w.after(s.Lasts, func() { w.down = false })
	}
	end := w.Now + s.Lasts.Microseconds()
	for w.Next(end) {
	}
	for s.Settles && w.without+w.toCome > 0 && w.Next(end+time.Hour.Microseconds()) {
	}
	end = (max(w.Now, end) + 999_999) / 1e6 * 1e6 // each second belongs to one step
	for w.Next(end) {
	}
	w.Now = end

	r := w.step
	r.Lasted = time.Duration(w.Now-w.from) * time.Microsecond
	for second := w.from / 1e6; second < w.Now/1e6; second++ {
		if n := w.seconds[second]; n != nil {
			r.Reads = rate{r.Reads.Mean + n.reads/r.Lasted.Seconds(), max(r.Reads.Peak, n.reads)}
			r.Writes = rate{r.Writes.Mean + n.writes/r.Lasted.Seconds(), max(r.Writes.Peak, n.writes)}
		}
	}
	return r
}

// replaceAll replaces every process, in any order, at even intervals.
func (w *fleet) replaceAll(over time.Duration) {
	w.toCome += len(w.running)
	for i, place := range w.Rand.Perm(len(w.running)) {
		w.after(over/time.Duration(len(w.running))*time.Duration(i), func() {
			next := func() { w.after(2*time.Second, func() { w.start(place) }) }
			if p := w.running[place]; w.Chance(0.02) {
				w.end(p, next)
			} else {
				w.stop(p, next)
			}
		})
	}
}

// request asks the store, and calls answer with the result, once: with
// context.DeadlineExceeded at the deadline if that is earlier. Without an
// action, it asks for the lineage.
func (w *fleet) request(a action, deadline int64, answer func(event)) {
	late := func() {
		w.step.Late++
		w.At(deadline, func() { answer(event{Err: context.DeadlineExceeded}) })
	}
	w.At(w.Now+w.way(), func() {
		if w.down {
			w.step.Missed++
			w.At(min(deadline, w.Now+w.way()), func() { answer(event{Err: ErrNotSent}) })
			return
		}
		turn := max(w.busy, w.Now)
		w.step.Queue = max(w.step.Queue, time.Duration(turn-w.Now)*time.Microsecond)
		if turn >= deadline {
			late()
			return
		}
		e, cost := w.execute(a)
		w.busy = turn + cost.Microseconds()
		if back := w.busy + w.way(); back < deadline {
			w.At(back, func() { answer(e) })
		} else {
			late()
		}
	})
}

// way returns how long a request or an answer takes.
func (w *fleet) way() int64 {
	most := w.plan.Store.Way.Microseconds()
	return most/2 + w.Rand.Int64N(most+1)
}

// execute handles a request at the store, at this moment.
func (w *fleet) execute(a action) (e event, cost time.Duration) {
	second := w.seconds[w.Now/1e6]
	if second == nil {
		second = new(perSecond)
		w.seconds[w.Now/1e6] = second
	}
	if a.Kind == actionCAS {
		second.writes++
		if e.Applied = bytes.Equal(w.values[a.Key], a.Old); e.Applied {
			w.values[a.Key] = a.Next
		} else {
			w.step.Refused++
		}
		return e, w.plan.Store.Write
	}
	second.reads++
	switch a.Kind {
	case actionGet:
		e.Keys = []string{a.Key}
	case actionGetMany:
		e.Keys = a.Keys
	case actionList:
		w.step.Lists++
		for _, key := range w.keys {
			if w.values[key] != nil {
				e.Keys = append(e.Keys, key)
			}
		}
	case actionTime:
		e.Time, e.Within = fleetBegins+w.Now/1000, 1000 // in seconds, like an HTTP server
	}
	for _, key := range e.Keys {
		e.Values = append(e.Values, w.values[key])
	}
	return e, w.plan.Store.Read + time.Duration(len(e.Keys))*w.plan.Store.Key
}

// A fleetProcess makes IDs, and behaves like a Keeper. It always wants IDs: it
// makes one whenever anything happens to it.
type fleetProcess struct {
	m      *machine
	g      *firn.Generator
	mark   time.Time     // exclusive end of what sealed generators made
	offset time.Duration // of its clock

	asked int64 // µs: when the store last returned its lineage
	timer int   // the current one
	until int   // the current timer for the end of its window
	gone  bool
	ended func()      // when the node ID was given back; nil unless the process ends
	since int64       // µs: without IDs since then; -1 if it has them
	waits *stepReport // the step in which that began
}

func (w *fleet) clock(p *fleetProcess) time.Time {
	return time.UnixMilli(fleetBegins).Add(time.Duration(w.Now)*time.Microsecond + p.offset)
}

// start starts a process in a place of the fleet. Its clock is wrong by up to
// 20 ms.
func (w *fleet) start(place int) {
	p := &fleetProcess{since: -1, asked: -fleetLineageValid, offset: w.upTo(40*time.Millisecond).Truncate(time.Millisecond) - 20*time.Millisecond}
	p.m = newMachine(settings{name: simName, random: w.Rand.Uint64, host: "host", storeClock: true})
	w.running[place] = p
	w.toCome--
	w.stand(p)
	w.open(p)
}

// open is the first step of sequencer.Open: it looks up the sequencer. A
// process that fails to do so tries again.
func (w *fleet) open(p *fleetProcess) {
	w.request(action{Kind: actionGet, Key: w.config}, w.Now+5_000_000, func(e event) {
		switch {
		case p.gone:
		case e.Err != nil:
			w.after(time.Second+w.upTo(time.Second), func() { w.open(p) })
		default:
			w.deliver(p, event{Kind: eventJoin})
		}
	})
}

// end ends a process abruptly.
func (w *fleet) end(p *fleetProcess, then func()) {
	if !p.gone {
		w.waited(p)
		p.gone, p.g = true, nil
		then()
	}
}

// stop gives a process's node ID back and ends it, at the latest after ten
// seconds.
func (w *fleet) stop(p *fleetProcess, then func()) {
	w.waited(p)
	p.ended = func() { w.end(p, then) }
	w.after(10*time.Second, p.ended)
	w.deliver(p, event{Kind: eventLeave})
}

// stand records that a process has no IDs from now on.
func (w *fleet) stand(p *fleetProcess) {
	if p.since < 0 && p.ended == nil {
		p.since, p.waits = w.Now, w.step
		w.without++
		w.step.WithoutMost = max(w.step.WithoutMost, w.without)
	}
}

// waited records that it has IDs again, or needs none.
func (w *fleet) waited(p *fleetProcess) {
	if p.since < 0 {
		return
	}
	p.waits.Waits = append(p.waits.Waits, time.Duration(w.Now-p.since)*time.Microsecond)
	p.since = -1
	if w.without--; w.without == 0 {
		w.step.All = time.Duration(w.Now-w.from) * time.Microsecond
	}
}

// deliver passes an event to a process's machine.
func (w *fleet) deliver(p *fleetProcess, e event) {
	if p.gone {
		return
	}
	used := p.mark
	if p.g != nil {
		used = p.g.Used()
	}
	for _, a := range p.m.step(e.withTimes(w.clock(p), time.Duration(w.Now)*time.Microsecond, used)) {
		w.act(p, a)
	}
}

// demand asks for a window if the process still has none.
func (w *fleet) demand(p *fleetProcess) {
	w.At(w.Now, func() {
		if p.since >= 0 {
			w.deliver(p, event{Kind: eventDemand})
		}
	})
}

// act performs an action like a Keeper.
func (w *fleet) act(p *fleetProcess, a action) {
	switch {
	case a.isRequest():
		w.ask(p, a)
	case a.Kind == actionTimer:
		mine := w.Token()
		p.timer = mine
		w.At((a.At-1)*1000, func() {
			if p.timer == mine {
				w.draw(p)
				w.deliver(p, event{Kind: eventTick})
			}
		})
	case a.Kind == actionBegin:
		w.acquired++
		var err error
		if g := a.grant(); p.g != nil {
			err = p.g.Switch(g)
		} else {
			p.g, err = firn.NewGenerator(w.layout, g, &firn.Options{Now: func() time.Time { return w.clock(p) }, MaxAhead: w.layout.DefaultMaxAhead()})
		}
		w.window(p, a, err)
	case a.Kind == actionExtend:
		w.renewed++
		w.window(p, a, p.g.Extend(a.end()))
	case a.Kind == actionSeal:
		p.mark, p.g = p.g.Seal(), nil
		w.At(w.Now, func() { w.deliver(p, event{Kind: eventSealed}) })
	case a.Kind == actionAlarm:
		w.alarms++
	case a.Kind == actionReport && p.ended != nil:
		if a.Status.Phase == Idle {
			w.At(w.Now, p.ended)
		}
	case a.Kind == actionReport:
		w.demand(p) // a call that waits checks again at every change
	}
}

// fleetLineageValid is lineageValid in µs.
const fleetLineageValid = int64(lineageValid / time.Microsecond)

// ask makes a request like a Keeper: it asks for the lineage before a write,
// and before the configuration is read, unless it has just done so.
func (w *fleet) ask(p *fleetProcess, a action) {
	limit := min(5*time.Second, w.plan.Window/6).Microseconds()
	answer := func(e event) {
		e.Kind = eventAnswered
		w.deliver(p, e)
		if p.since >= 0 {
			w.draw(p)
		}
	}
	if a.Kind != actionCAS && a.Key != w.config || w.Now-p.asked < fleetLineageValid {
		w.request(a, w.Now+limit, answer)
		return
	}
	w.request(action{}, w.Now+limit, func(e event) {
		if e.Err != nil {
			answer(event{Err: ErrNotSent})
			return
		}
		p.asked = w.Now
		w.request(a, w.Now+limit, answer)
	})
}

// window makes a process take IDs of a window that it has now, and notice its
// end.
func (w *fleet) window(p *fleetProcess, a action, err error) {
	if err != nil {
		w.Fail("node ID %d: %v", a.Node, err)
	}
	mine := w.Token()
	p.until = mine
	w.At(w.Now+a.end().Sub(w.clock(p)).Microseconds(), func() {
		if p.until == mine {
			w.draw(p)
		}
	})
	if p.since >= 0 {
		w.draw(p)
	}
}

// draw makes an ID. If the window has none, the process is without IDs, and
// asks for another window.
func (w *fleet) draw(p *fleetProcess) {
	if p.gone || p.ended != nil {
		return
	}
	if p.g != nil {
		switch id, err := p.g.TryNext(); {
		case err == nil:
			w.ids = append(w.ids, id)
			w.waited(p)
			return
		case !errors.Is(err, firn.ErrGrantOver):
			w.Fail("an ID: %v", err)
		}
	}
	if p.since < 0 {
		w.stand(p)
		w.demand(p)
	}
}
