package sim

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/mutant"
)

// A Fault is a kind of fault.
type Fault int

// The kinds of faults.
const (
	PausedCall   Fault = iota // between taking an ID and returning it
	LateSeal                  // between deciding to seal and sealing
	Stopped                   // the whole process, for up to 5 minutes
	Crashed                   // memory lost, started again
	Released                  // given back in good order, and attached again
	ClockStep                 // up to a minute
	ClockSet                  // up to an hour
	ClockDrift                // of up to 200 ppm
	ClockSkew                 // up to two minutes, all the time
	Clock2050                 // for a while
	Partition                 // of one member from the store
	Outage                    // of the store
	SlowRequest               // up to a minute, and so beyond the timeout
	LostRequest               //
	LostAnswer                //
	LateCAS                   // applied after its sender has given up
	Restore                   // of the store from a backup, with a fence
	Clone                     // of a running process
	DetachedAll               // and attached
	DestroyedAll              // and created again
	faults
)

var faultNames = [faults]string{
	"paused call", "late seal", "stopped", "crashed", "released", "clock step", "clock set", "clock drift", "clock skew",
	"clock in 2050", "partition", "outage", "slow request", "lost request", "lost answer", "late CAS", "restore with fence",
	"clone", "detached all", "destroyed all",
}

// String is the fault in words.
func (f Fault) String() string { return faultNames[f] }

// Faults is the number of kinds.
const Faults = int(faults)

// A Result is what a run has shown.
type Result struct {
	Seed      uint64
	Hours     float64
	IDs       int
	Renewals  int
	Acquired  int
	Alarms    int
	Faults    [Faults]int
	Tries     int    // to make an ID while the store was reachable, the clock sane and nothing else amiss
	Failed    int    // of these
	Trace     uint64 // hash of all that happened
	Violation string // "" where all held
}

const (
	unit    = int64(1) // of the layout, in ms
	timeout = int64(5000)
)

// layout has few sequence bits, so that bursts run ahead of the clock, and few
// nodes, so that they change hands.
var layout = firn.MustParseLayout("bits=time:44.node:3.seq:4,unit=1ms,epoch=0")

// A world is a run.
type world struct {
	r    *rand.Rand
	now  int64 // true time in ms
	q    queue
	seq  int
	res  Result
	hash uint64 // of all that happened

	// byHand says that requests wait until a test answers them, and that nothing
	// happens by chance: see TestHistoric.
	byHand bool

	values  map[string][]byte
	rev     map[string]int64 // of keys, and revOf of values: for mutant.CompareRevision alone
	revOf   map[string]int64
	backup  map[string][]byte
	backRev map[string]int64
	life    int   // of the store: a restore begins another
	down    int64 // the store does not answer before
	closing int64 // members may not hold a number before, as it is detached or destroyed

	window  int64
	ahead   time.Duration
	members []*member
	wild    bool // clocks may do anything; a fence asks for sane ones

	focus Focus
	ended bool // detach or destroy has returned, and nobody was told to go on

	seen    map[firn.ID]bool
	spans   [8][]*span          // of each node, what was taken in each term
	taken   [8]int64            // exclusive end of all that was taken, of each node
	written map[string]*written // every record that anybody wanted to write, by its bytes
	granted map[ownership]int64 // the latest mark applied
	cloned  []cloning
}

// written is a record, and what became of it.
type written struct {
	record
	applied bool
	before  int64 // the mark that it replaced
	late    bool  // applied when it had ended
}

// An ownership is a member's time with a number.
type ownership struct {
	owner string
	node  uint64
}

// A span is what a member has taken in one term, from lo on and below hi.
type span struct {
	member int
	lo, hi int64
}

// A Focus makes some faults frequent, and others close to each other, so that what
// needs several of them happens soon. What must hold is the same.
type Focus struct {
	Faults []Fault // half of all are of these; none means that all are as frequent
	Window int64   // of the sequencer, in ms; 0 means one of several
	Every  int64   // the longest time between two faults, in ms; 0 means 4 minutes
	Step   int64   // the longest clock step, in ms, also where the store is restored; 0 means a minute, and not there
	Paused float64 // how many calls are paused; 0 means one of a thousand
	Slow   float64 // how many requests are slow; 0 means one of a hundred
	Delay  int64   // the longest time that a slow one takes, in ms; 0 means a minute
	Brief  bool    // a restore is fast, and its backup is of a moment before
}

// A cloning is what a clone may repeat.
type cloning struct {
	node   uint64
	lo, hi int64
}

// member is a process.
type member struct {
	id        int
	m         *grant.Machine
	g         *firn.Generator
	node      uint64
	span      *span // of the term
	late      bool  // the number was acquired when it had ended
	owner     string
	mark      time.Time
	born      int64
	offset    int64
	drift     float64
	driftAt   int64
	stopped   int64 // does nothing before
	cut       int64 // from the store, until
	shaky     int64 // a request was lost or slow
	disturbed int64 // clock or network were touched last
	request   int   // the request under way, 0 if none
	timer     int   // the timer that counts
	last      firn.ID
	attached  bool
	busy      bool
	asked     *grant.Action
	range_    [2]uint64

	waiting *grant.Action // the request under way, byHand
	answer  func(grant.Event)
}

type event struct {
	at  int64
	seq int
	do  func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

func (w *world) after(d int64, do func()) {
	w.seq++
	heap.Push(&w.q, event{w.now + max(d, 0), w.seq, do})
}

func (w *world) chance(p float64) bool { return w.r.Float64() < p }
func (w *world) upTo(n int64) int64    { return w.r.Int64N(n) + 1 }

func (w *world) fault(f Fault) { w.res.Faults[f]++ }

func (w *world) fail(format string, a ...any) {
	if w.res.Violation == "" {
		w.res.Violation = fmt.Sprintf(format, a...)
	}
}

func (w *world) trace(values ...int64) {
	for _, v := range values {
		w.hash = (w.hash ^ uint64(v)) * 0x100000001b3
		w.hash ^= w.hash >> 29
	}
}

const (
	processes = 6
	begins    = int64(1_000_000_000_000) // 2001
	name      = "s"
)

// Run does the run of a seed.
func Run(seed uint64, hours int) Result { return RunWith(seed, hours, Focus{}) }

// RunWith is Run with a focus.
func RunWith(seed uint64, hours int, focus Focus) Result {
	if focus.Every == 0 {
		focus.Every = 240_000
	}
	if focus.Paused == 0 {
		focus.Paused = 0.001
	}
	if focus.Slow == 0 {
		focus.Slow = 0.01
	}
	if focus.Delay == 0 {
		focus.Delay = 61_000
	}
	w := newWorld(seed, focus)
	w.wild = seed%2 == 0 && !focus.Brief
	w.res.Hours = float64(hours)
	w.window = []int64{5000, 30_000, 60_000, 600_000}[w.r.IntN(4)]
	if focus.Window != 0 {
		w.window = focus.Window
	}
	w.create()
	for i := range processes {
		p := &member{id: i, range_: [2]uint64{0, 7}}
		if i == 0 {
			p.range_ = [2]uint64{0, 0} // pinned
		}
		if i == 1 {
			p.range_ = [2]uint64{5, 7}
		}
		w.members = append(w.members, p)
		w.after(w.upTo(2000), func() { w.start(p) })
	}
	w.after(w.upTo(min(60_000, focus.Every)), w.disturb)
	end := w.now + int64(hours)*3_600_000
	for len(w.q) > 0 && w.res.Violation == "" {
		e := heap.Pop(&w.q).(event)
		if e.at > end {
			break
		}
		w.now = max(w.now, e.at)
		e.do()
	}
	if w.res.Violation != "" {
		w.res.Hours = float64(w.now-begins) / 3_600_000
	}
	w.res.Trace = w.hash
	return w.res
}

func newWorld(seed uint64, focus Focus) *world {
	w := &world{
		r: rand.New(rand.NewPCG(seed, 0x5eed)), now: begins,
		values: make(map[string][]byte), rev: make(map[string]int64), revOf: make(map[string]int64),
		seen: make(map[firn.ID]bool), written: make(map[string]*written), granted: make(map[ownership]int64),
		ahead: time.Second, focus: focus,
	}
	w.res.Seed = seed
	return w
}

// create creates the sequencer.
func (w *world) create() {
	c := grant.Config{Layout: layout, MaxAhead: w.ahead, Window: time.Duration(w.window) * time.Millisecond}
	if _, err := grant.Create(context.Background(), admin{w}, name, c, time.UnixMilli(w.now)); err != nil {
		w.fail("create: %v", err)
	}
}

// start starts a process anew.
func (w *world) start(p *member) {
	*p = member{id: p.id, range_: p.range_, born: w.now, disturbed: w.now, offset: p.offset, drift: p.drift, driftAt: p.driftAt, cut: p.cut, timer: p.timer, request: 0, attached: true, busy: true}
	if w.wild && w.chance(0.05) {
		w.fault(ClockSkew)
		p.offset = w.upTo(240_000) - 120_000
	}
	if w.wild && w.chance(0.2) {
		w.fault(ClockDrift)
		p.drift, p.driftAt = (w.r.Float64()-0.5)*4e-4, w.now
	}
	p.m = grant.NewMachine(grant.Settings{
		Name: name, Lo: p.range_[0], Hi: p.range_[1], Random: w.r.Uint64, AllowClockBehind: true, Host: fmt.Sprint(p.id),
	})
	born := p.born
	w.step(p, grant.Event{Kind: grant.Attach})
	if w.byHand {
		return
	}
	var use func()
	use = func() {
		if p.born != born {
			return
		}
		w.use(p)
		gap := w.upTo(10_000)
		if w.chance(0.01) {
			gap = w.upTo(4 * w.window) // idle
		}
		w.after(gap, use)
	}
	w.after(1, use)
}

// clock is a member's clock.
func (w *world) clock(p *member) int64 {
	return w.now + p.offset + int64(p.drift*float64(w.now-p.driftAt))
}

func (p *member) used() int64 {
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

// step passes an event to a member's machine, when the process runs.
func (w *world) step(p *member, e grant.Event) {
	born := p.born
	if p.stopped > w.now {
		w.after(p.stopped-w.now, func() {
			if p.born == born {
				w.step(p, e)
			}
		})
		return
	}
	e.Wall, e.Mono, e.Used = w.clock(p), w.now-begins+1, p.used()
	w.trace(w.now, int64(p.id), int64(e.Kind))
	for _, a := range p.m.Step(e) {
		w.act(p, a)
	}
}

// act does what a Keeper does.
func (w *world) act(p *member, a grant.Action) {
	born := p.born
	w.trace(int64(a.Kind), int64(a.Node), a.From, a.Until)
	for _, c := range []byte(a.Key) {
		w.trace(int64(c))
	}
	switch {
	case a.IsRequest():
		w.ask(p, a)
	case a.Kind == grant.Timer:
		w.seq++
		p.timer = w.seq
		mine := p.timer
		w.after(a.At-(w.now-begins+1), func() {
			if p.born == born && p.timer == mine {
				w.step(p, grant.Event{Kind: grant.Tick})
			}
		})
	case a.Kind == grant.Begin:
		w.begin(p, a)
	case a.Kind == grant.Extend:
		w.res.Renewals++
		until := a.Until
		if mutant.On(mutant.TickAtUntil) {
			until += unit
		}
		if p.g == nil {
			return
		}
		if mutant.On(mutant.CursorBack) {
			p.g, _ = firn.NewGenerator(layout, firn.Grant{Node: p.node, From: time.UnixMilli(w.clock(p)), Until: time.UnixMilli(until)}, w.options(p))
			return
		}
		if err := p.g.Extend(time.UnixMilli(until)); err != nil {
			w.fail("extend: %v", err)
		}
	case a.Kind == grant.Seal:
		seal := func() {
			if p.born != born {
				return
			}
			if p.g != nil {
				if mark := p.g.Seal(); mark.After(p.mark) {
					p.mark = mark
				}
				p.g = nil
			}
			w.step(p, grant.Event{Kind: grant.Sealed})
		}
		d := int64(0)
		if !w.byHand && w.chance(0.2) {
			w.fault(LateSeal)
			d = w.upTo(2000)
		}
		w.after(d, seal)
	case a.Kind == grant.Alarm:
		w.res.Alarms++
	}
}

func (w *world) options(p *member) *firn.Options {
	return &firn.Options{Now: func() time.Time { return time.UnixMilli(w.clock(p)) }, MaxAhead: w.ahead}
}

// begin takes a grant into use, and checks that it is one: written in the store
// by this member, and above the mark that it replaced.
func (w *world) begin(p *member, a grant.Action) {
	w.res.Acquired++
	if p.asked == nil {
		w.fail("member %d begins node %d and never asked for it", p.id, a.Node)
		return
	}
	claim := w.of(p.asked.Next)
	if !claim.applied {
		w.fail("windows: member %d begins node %d, and its claim was never applied", p.id, a.Node)
	} else if a.From < claim.before {
		w.fail("windows: member %d begins node %d at %d, below the mark %d of the one before", p.id, a.Node, a.From, claim.before)
	}
	if a.Node < p.range_[0] || a.Node > p.range_[1] {
		w.fail("range: member %d has node %d, and may have %v", p.id, a.Node, p.range_)
	}
	until := a.Until
	if mutant.On(mutant.TickAtUntil) {
		until += unit
	}
	g := firn.Grant{Node: a.Node, From: time.UnixMilli(a.From), Until: time.UnixMilli(until)}
	p.node, p.owner, p.span, p.late = a.Node, claim.Owner, nil, claim.late
	var err error
	if p.g != nil {
		err = p.g.Switch(g)
	} else {
		if g.From.Before(p.mark) && !mutant.On(mutant.StaleMemory) {
			g.From = p.mark
		}
		p.g, err = firn.NewGenerator(layout, g, w.options(p))
	}
	if err != nil {
		p.g = nil // an empty grant: the clock went far back
	}
}

// use makes some IDs.
func (w *world) use(p *member) {
	if p.stopped > w.now || !p.busy {
		return
	}
	n := int(w.upTo(6))
	if w.chance(0.001) {
		n = 3000 // a burst
	}
	fine := w.fine(p)
	for range n {
		if p.g == nil {
			if fine && w.free(p) {
				w.res.Tries++
				w.res.Failed++
			}
			w.step(p, grant.Event{Kind: grant.Demand})
			return
		}
		id, err := p.g.TryNext()
		if err == nil {
			w.take(p, id)
			if fine {
				w.res.Tries++
			}
			continue
		}
		if errors.Is(err, firn.ErrGrantOver) {
			// A call waits for the answer, so it fails only if none comes soon.
			w.step(p, grant.Event{Kind: grant.Demand})
			if fine {
				born := p.born
				w.after(3000, func() {
					if p.born != born || p.stopped > w.now || p.g == nil || !w.fine(p) {
						return
					}
					w.res.Tries++
					if id, err := p.g.TryNext(); err == nil {
						w.take(p, id)
					} else if errors.Is(err, firn.ErrGrantOver) && w.free(p) {
						w.res.Failed++
					}
				})
			}
		}
		return
	}
}

// fine reports whether a member should have its IDs: it is attached, and for a
// while nothing has come between it, its clock and the store.
func (w *world) fine(p *member) bool {
	return p.attached && w.closing < w.now-20_000 && w.down < w.now-20_000 && p.cut < w.now-20_000 && p.born < w.now-20_000 &&
		p.shaky < w.now-20_000 && p.disturbed < w.now-120_000
}

// free reports whether there is a number that a member might have.
func (w *world) free(p *member) bool {
	for node := p.range_[0]; node <= p.range_[1]; node++ {
		v, ok := w.values[key(node)]
		if r := w.of(v); !ok || r.State == "free" && r.Until <= w.clock(p) || r.Until < w.clock(p)-5000 || r.Owner == p.owner {
			return true
		}
	}
	return false
}

// take checks an ID that was taken; it is returned at once or after a pause.
func (w *world) take(p *member, id firn.ID) {
	parts, err := layout.Decompose(id)
	if err != nil {
		w.fail("ID %v: %v", id, err)
		return
	}
	end := parts.Time.UnixMilli() + unit
	if id>>7 < p.last>>7 || id>>7 == p.last>>7 && id&15 <= p.last&15 {
		w.fail("order: member %d makes %v after %v", p.id, id, p.last)
	}
	p.last = id
	if until := w.granted[ownership{p.owner, parts.Node}]; end > until && len(w.cloned) == 0 {
		w.fail("until: member %d makes an ID of node %d for %d, and was granted what is before %d", p.id, parts.Node, end-unit, until)
	}
	if end > w.taken[parts.Node] {
		w.taken[parts.Node] = end
	}
	w.note(p, parts.Node, end-unit, end)
	if w.ended && p.late {
		w.fail("ended: member %d makes an ID of node %d, acquired after detach or destroy had returned", p.id, parts.Node)
	}
	if !w.chance(w.focus.Paused) {
		w.give(p, id)
		return
	}
	w.fault(PausedCall)
	born := p.born
	w.after(w.upTo(200_000), func() {
		if p.born != born {
			return // it crashed before
		}
		if mutant.On(mutant.SlotAcrossTerms) && p.g != nil {
			parts.Node = p.node
			id, _ = layout.Compose(parts)
		}
		if !w.tookIt(p, id) {
			w.fail("windows: member %d gives %v, of node %d at %d, and never had that number then", p.id, id, parts.Node, end-unit)
		}
		w.give(p, id)
	})
}

// note notes that a member has taken what is from lo on and below hi of a number, and
// sees that nobody else has taken anything between what it takes in this term.
func (w *world) note(p *member, node uint64, lo, hi int64) {
	if p.span == nil {
		p.span = &span{member: p.id, lo: lo, hi: hi}
		w.spans[node] = append(w.spans[node], p.span)
	}
	p.span.lo, p.span.hi = min(p.span.lo, lo), max(p.span.hi, hi)
	if len(w.cloned) > 0 {
		return
	}
	all := w.spans[node]
	for _, s := range all[max(0, len(all)-20):] {
		if s != p.span && s.lo < p.span.hi && p.span.lo < s.hi {
			w.fail("windows: member %d takes what is from %d to %d of node %d in one term, and member %d what is from %d to %d",
				p.id, p.span.lo, p.span.hi, node, s.member, s.lo, s.hi)
		}
	}
}

// tookIt reports whether a member has had the number of an ID at the ID's time.
func (w *world) tookIt(p *member, id firn.ID) bool {
	parts, _ := layout.Decompose(id)
	at := parts.Time.UnixMilli()
	return slices.ContainsFunc(w.spans[parts.Node], func(s *span) bool {
		return (s.member == p.id || len(w.cloned) > 0) && s.lo <= at && at < s.hi
	})
}

// give hands an ID out.
func (w *world) give(p *member, id firn.ID) {
	w.res.IDs++
	if w.seen[id] && !w.mayRepeat(id) {
		parts, _ := layout.Decompose(id)
		w.fail("repeated: member %d gives %v again, of node %d at %d", p.id, id, parts.Node, parts.Time.UnixMilli())
	}
	w.seen[id] = true
}

func (w *world) mayRepeat(id firn.ID) bool {
	parts, _ := layout.Decompose(id)
	t := parts.Time.UnixMilli()
	for _, c := range w.cloned {
		if parts.Node == c.node && t >= c.lo && t < c.hi {
			return true
		}
	}
	return false
}

// prefix is what the keys of records begin with; one digit follows.
const prefix = "v1/" + name + "/n/"

func key(node uint64) string { return prefix + string('0'+rune(node)) }

// record is what the oracles read in a node's record.
type record struct {
	Owner string
	Until int64
	State string
}

// field is what a record has after a name, up to the next comma. A record is of
// the protocol's own making, so there is none in a value, nor is a name.
func field(value []byte, name string) string {
	i := bytes.Index(value, []byte(name))
	if i < 0 {
		return ""
	}
	rest := value[i+len(name):]
	if end := bytes.IndexAny(rest, ",}"); end >= 0 {
		rest = rest[:end]
	}
	return string(bytes.Trim(rest, `"`))
}

// of is what is known of a record. It is read once.
func (w *world) of(value []byte) *written {
	r := w.written[string(value)]
	if r == nil {
		r = &written{record: record{Owner: field(value, `"owner":`), State: field(value, `"state":`)}}
		if len(value) > 0 {
			var err error
			if r.Until, err = strconv.ParseInt(field(value, `"until":`), 10, 64); err != nil {
				w.fail("record %s: %v", value, err)
			}
		}
		w.written[string(value)] = r
	}
	return r
}

// ask sends a request to the store.
func (w *world) ask(p *member, a grant.Action) {
	w.seq++
	token, born, life := w.seq, p.born, w.life
	p.request = token
	if a.Kind == grant.CAS && w.of(a.Next).State == "held" {
		p.asked = &a // before a Begin, the last one is the claim
	}
	answer := func(e grant.Event) {
		if p.born == born && p.request == token {
			p.request = 0
			e.Kind = grant.Answered
			w.step(p, e)
		}
	}
	if w.byHand {
		p.waiting, p.answer = &a, answer
		return
	}
	w.after(min(timeout, w.window/6), func() { answer(grant.Event{Err: context.DeadlineExceeded}) })
	there, back := w.upTo(20), w.upTo(20)
	if w.chance(w.focus.Slow) {
		w.fault(SlowRequest)
		there, p.shaky = w.upTo(w.focus.Delay), w.now
	}
	if w.chance(0.02) {
		w.fault(LostRequest)
		p.shaky = w.now
		return
	}
	lost := w.chance(0.02)
	w.after(there, func() {
		if w.life != life || w.down > w.now || p.cut > w.now && p.born == born {
			return
		}
		if a.Kind == grant.CAS && (p.request != token || p.born != born) {
			w.fault(LateCAS)
		}
		e := w.execute(a)
		if lost {
			w.fault(LostAnswer)
			p.shaky = w.now
			return
		}
		w.after(back, func() { answer(e) })
	})
}

// execute does a request at the store, at this moment.
func (w *world) execute(a grant.Action) (e grant.Event) {
	switch a.Kind {
	case grant.Get:
		e.Values = [][]byte{w.values[a.Key]}
	case grant.GetMany:
		e.Keys = a.Keys
		for _, k := range a.Keys {
			e.Values = append(e.Values, w.values[k])
		}
	case grant.List:
		_ = admin{w}.List(context.Background(), a.Key, func(k string, v []byte) bool {
			e.Keys, e.Values = append(e.Keys, k), append(e.Values, v)
			return true
		})
	case grant.CAS:
		e.Applied = w.cas(a.Key, a.Old, a.Next)
	}
	return e
}

// cas is the store's linearization point, where the windows are checked.
func (w *world) cas(k string, old, next []byte) bool {
	now := w.values[k]
	same := bytes.Equal(now, old)
	switch {
	case mutant.On(mutant.CompareRevision) && old != nil && now != nil:
		same = w.revOf[string(old)] == w.rev[k]
	case (mutant.On(mutant.BlindRenewal) || mutant.On(mutant.ReleaseForeign)) && string(old) == "*":
		same = true // that is how these two say that they do not compare
	}
	if !same {
		return false
	}
	if mutant.Enabled {
		w.rev[k]++
		w.revOf[string(next)] = w.rev[k]
	}
	w.values[k] = next
	if strings.HasPrefix(k, prefix) {
		before, after := w.of(now), w.of(next)
		after.applied, after.before = true, before.Until
		if w.ended && after.State == "held" {
			after.late = true
			if before.State == "held" {
				w.fail("ended: the window of %s is renewed, and detach or destroy had returned", k)
			}
		}
		node := uint64(k[len(k)-1] - '0')
		id := ownership{after.Owner, node}
		w.granted[id] = max(w.granted[id], after.Until)
		// What was taken of this number, by whomever, lies below its mark.
		if after.Until < w.taken[node] && len(w.cloned) == 0 && w.life == 0 {
			w.fail("windows: the mark of node %d becomes %d, and IDs were made up to %d", node, after.Until, w.taken[node])
		}
	}
	return true
}

// disturb does something bad, and comes again.
func (w *world) disturb() {
	w.after(w.upTo(w.focus.Every), w.disturb)
	p := w.members[w.r.IntN(len(w.members))]
	if p.m == nil {
		return
	}
	ctx, done := context.WithCancel(context.Background())
	done() // one step at a time: what waits is called again
	o := &grant.AdminOptions{Now: func() time.Time { return time.UnixMilli(w.now) }}
	f := Fault(w.r.IntN(int(faults)))
	if of := w.focus.Faults; len(of) > 0 && w.chance(0.5) {
		f = of[w.r.IntN(len(of))]
	}
	switch f {
	case Stopped:
		w.fault(f)
		p.stopped = w.now + w.upTo(300_000)
		p.disturbed = p.stopped
	case Crashed:
		w.fault(f)
		p.born = -w.now // whatever was for it finds nobody
		p.g, p.busy, p.attached = nil, false, false
		p.stopped = 0
		w.after(w.upTo(60_000), func() { w.start(p) })
		p.m = nil
	case Released:
		if !p.attached {
			return
		}
		w.fault(f)
		p.attached, p.disturbed = false, w.now
		born := p.born
		w.step(p, grant.Event{Kind: grant.Release})
		w.after(w.upTo(30_000), func() {
			if p.born == born {
				p.attached, p.disturbed = true, w.now
				w.step(p, grant.Event{Kind: grant.Attach})
			}
		})
	case ClockStep, ClockSet, Clock2050:
		if w.focus.Step != 0 && f == ClockStep {
			w.fault(f)
			p.offset, p.disturbed = w.upTo(2*w.focus.Step)-w.focus.Step, w.now
			return
		}
		if !w.wild || f == Clock2050 && (p.id < 2 || w.res.Faults[f] > 1) {
			return // a number that was used in 2050 is of no use to others before
		}
		w.fault(f)
		p.disturbed = w.now
		switch f {
		case ClockStep:
			p.offset += w.upTo(120_000) - 60_000
		case ClockSet:
			p.offset += w.upTo(7_200_000) - 3_600_000
		default:
			was := p.offset
			p.offset = 1_546_300_800_000
			born := p.born
			w.after(w.upTo(60_000), func() {
				if p.born == born {
					p.offset, p.disturbed = was, w.now
				}
			})
		}
		if w.chance(0.5) {
			w.after(w.upTo(300_000), func() { p.offset, p.drift, p.disturbed = 0, 0, w.now })
		}
	case Partition:
		w.fault(f)
		p.cut = w.now + w.upTo(180_000)
	case Outage:
		w.fault(f)
		w.down = w.now + w.upTo(120_000)
	case Restore:
		if w.wild {
			return
		}
		if w.backup == nil || w.chance(0.3) && !w.focus.Brief {
			if w.focus.Brief { // the restore comes soon
				w.after(w.upTo(3*w.window), func() { w.restore(o) })
			}
			w.backup, w.backRev = maps.Clone(w.values), maps.Clone(w.rev)
			return
		}
		if !w.focus.Brief {
			w.restore(o)
		}
	case Clone:
		w.clone(p)
	case DetachedAll, DestroyedAll:
		for k, v := range w.values {
			if strings.Contains(k, "/n/") && w.of(v).Until > w.now+2*w.window+2000 {
				return // a clock in 2050 wrote it: it would wait until then
			}
		}
		if w.closing > w.now {
			return
		}
		w.fault(f)
		w.closing = w.now + 1<<60
		var empty func()
		empty = func() {
			call := grant.DetachAll
			if f == DestroyedAll {
				call = grant.Destroy
			}
			info, err := call(ctx, admin{w}, name, o)
			switch {
			case errors.Is(err, context.Canceled):
				w.after(w.window/4, empty)
				return
			case errors.Is(err, grant.ErrDestroyed):
				return // another does it
			case err != nil:
				w.fail("%v: %v", f, err)
				return
			case f == DetachedAll:
				w.after(w.upTo(10_000), func() { w.ended = false; _, _ = grant.AttachAll(ctx, admin{w}, name) })
			default:
				w.after(w.upTo(10_000), func() {
					w.ended = false
					_, _ = grant.Create(ctx, admin{w}, name, info.Config, time.UnixMilli(w.now))
				})
			}
			w.ended = true
			w.closing = w.now + 20_000
		}
		empty()
	}
}

// restore puts the backup in the store's place, and fences it. Clients are cut off
// before, and come back after.
func (w *world) restore(o *grant.AdminOptions) {
	w.fault(Restore)
	w.life++
	w.ended = false // as it may not have been when the backup was made
	w.values, w.rev, w.backup = w.backup, w.backRev, nil
	if w.down = w.now + w.upTo(30_000); w.focus.Brief {
		w.down = w.now + w.upTo(200)
	}
	if !mutant.On(mutant.NoFence) {
		if _, err := grant.Fence(context.Background(), admin{w}, name, &grant.FenceOptions{Now: o.Now}); err != nil {
			w.fail("fence: %v", err)
		}
	}
	for _, p := range w.members {
		p.disturbed = w.now + 4*w.window + 30_000
	}
}

// clone copies a running process over another one.
func (w *world) clone(p *member) {
	if p.id != 2 || p.g == nil || p.stopped > w.now || w.res.Seed%4 != 1 || len(w.cloned) > 0 {
		return
	}
	other := w.members[3]
	if other.m == nil || other.id == p.id {
		return
	}
	w.fault(Clone)
	status := p.m.Status()
	hi := status.Until
	if p.request != 0 {
		hi += 2 * w.window // a renewal may be under way, and be adopted by both
	}
	w.cloned = append(w.cloned, cloning{p.node, p.g.Used().UnixMilli() - unit, hi})
	born := w.now<<8 | 1
	*other = *p
	other.id, other.born, other.request = 3, born, 0
	other.m = p.m.Clone()
	other.g, _ = firn.NewGenerator(layout, firn.Grant{Node: p.node, From: p.g.Used(), Until: time.UnixMilli(status.Until)}, w.options(other))
	if p.request != 0 {
		other.request = -1
		w.after(timeout, func() {
			if other.born == born && other.request == -1 {
				other.request = 0
				w.step(other, grant.Event{Kind: grant.Answered, Err: context.DeadlineExceeded})
			}
		})
	} else {
		w.step(other, grant.Event{Kind: grant.Tick})
	}
	var use func()
	use = func() {
		if other.born == born {
			w.use(other)
			w.after(w.upTo(1000), use)
		}
	}
	w.after(1, use)
}

// admin is the store as the operator has it: at once, and without faults.
type admin struct{ w *world }

func (s admin) Get(_ context.Context, key string) ([]byte, error) { return s.w.values[key], nil }

func (s admin) CAS(_ context.Context, key string, old, next []byte) (bool, error) {
	return s.w.cas(key, old, next), nil
}

func (s admin) List(_ context.Context, prefix string, yield func(string, []byte) bool) error {
	for _, k := range slices.Sorted(maps.Keys(s.w.values)) {
		if strings.HasPrefix(k, prefix) && !yield(k, s.w.values[k]) {
			break
		}
	}
	return nil
}

func (s admin) Close() error { return nil }
