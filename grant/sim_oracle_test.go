package grant

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/firnid/firn"
)

// records is the knowledge of the oracles: the result of every write, and
// everything taken and returned. Members do not have it.
type records struct {
	histories map[string]*nodeHistory // by key
	written   map[string]*written     // every record that a member tried to write, by its bytes
	cloned    []cloning
	floorOf   *byte // the configuration whose floor is floorIs
	floorIs   int64
	stale     int64 // until then, reads may come from an old primary
	repeats   int64 // IDs before it may repeat, because the store went back without a fence
}

func newRecords() records {
	return records{histories: make(map[string]*nodeHistory), written: make(map[string]*written), stale: noTime, repeats: noTime}
}

// noTime is a time before all others, and the mark of a node ID without a
// record.
const noTime = math.MinInt64

// A nodeHistory is the oracles' knowledge of a node ID.
type nodeHistory struct {
	key      string
	spans    []*simSpan          // what was taken, in each term
	taken    int64               // exclusive end of everything taken
	granted  map[string]*granted // by owner
	most     int64               // the latest mark ever granted, in ms
	given    map[*format]*slots
	repaired bool         // times before those of the last terms may be taken
	excused  []interval64 // what may be taken and returned twice
	below    *int64       // everything before it may be, too
}

// An interval64 is the times from lo on and below hi, in µs.
type interval64 struct{ lo, hi int64 }

func (n *nodeHistory) excuses(t int64) bool {
	return t < *n.below || slices.ContainsFunc(n.excused, func(i interval64) bool { return i.lo <= t && t < i.hi })
}

// A granted is what an owner was granted.
type granted struct{ until int64 } // in ms

func (w *world) nodeHistory(key string) *nodeHistory {
	n := w.histories[key]
	if n == nil {
		n = &nodeHistory{below: &w.repeats, key: key, taken: noTime, most: noTime, granted: make(map[string]*granted), given: make(map[*format]*slots)}
		w.histories[key] = n
	}
	return n
}

func (n *nodeHistory) grant(owner string) *granted {
	g := n.granted[owner]
	if g == nil {
		g = &granted{noTime}
		n.granted[owner] = g
	}
	return g
}

// A term is what a generator uses from begin to seal, or to the next begin.
type term struct {
	node    uint64
	history *nodeHistory
	from    int64 // in µs
	began   int64 // when it began
	granted *granted
	span    *simSpan
}

// A simSpan is what a member has taken in one term, from lo on and below hi.
type simSpan struct {
	member int
	lo, hi int64
}

// A piece is IDs: the slots [lo, hi) of a node ID.
type piece struct {
	n      *nodeHistory
	f      *format
	lo, hi uint64
}

func (x piece) begins() int64 { return x.f.time(x.lo) }
func (x piece) ends() int64   { return x.f.time(x.hi-1) + x.f.unit }

// A cloning is what a clone may repeat.
type cloning struct {
	n      *nodeHistory
	lo, hi int64
}

// A written is a record and the result of writing it.
type written struct {
	record
	applied bool
	base    int64 // the mark that its owner's claim replaced
	floor   int64 // of the sequencer, when it was applied
	late    bool  // applied after the sequencer had ended
	began   int64 // where the grant of its owner began, in ms
	clock   int64 // its writer's clock, in ms, when the write was requested
}

// A record is what the oracles read in a node's record. Times are in ms.
type record struct {
	Owner   string
	Until   int64
	State   string
	Spoiled [2]int64 // no window reaches into it
}

// of returns the knowledge about a record, which is parsed once.
func (w *world) of(value []byte) *written {
	x := w.written[string(value)]
	if x == nil {
		x = &written{record: record{Until: noTime}, base: noTime, floor: noTime}
		if len(value) > 0 {
			x.Owner, x.State = recordField(value, `"owner":`), recordField(value, `"state":`)
			x.Until = w.integer(value, `"until":`)
			if i := bytes.Index(value, []byte(`"spoiled":[`)); i >= 0 {
				if n, err := fmt.Sscanf(string(value[i:]), `"spoiled":[%d,%d]`, &x.Spoiled[0], &x.Spoiled[1]); n != 2 {
					w.Fail("record %s: %v", value, err)
				}
			}
		}
		w.written[string(value)] = x
	}
	return x
}

func (w *world) integer(value []byte, name string) int64 {
	n, err := strconv.ParseInt(recordField(value, name), 10, 64)
	if err != nil {
		w.Fail("record %s: %v", value, err)
	}
	return n
}

// floor returns the floor of the sequencer, in ms.
func (w *world) floor() int64 {
	value := w.store.values[simConfigKey]
	if len(value) == 0 {
		return noTime
	}
	if &value[0] != w.floorOf {
		w.floorOf, w.floorIs = &value[0], floorIn(value)
	}
	return w.floorIs
}

// floorIn returns the floor in a configuration, or never.
func floorIn(config []byte) int64 {
	n, err := strconv.ParseInt(recordField(config, `"floor":`), 10, 64)
	if err != nil {
		return noTime
	}
	return n
}

// held reports whether its owner may use the node ID.
func (r record) held() bool { return r.State == "held" || r.State == "closing" }

// applied records and checks an applied write: this is where windows are made.
func (w *world) applied(k string, before, next []byte, by *member) {
	if !strings.HasPrefix(k, simPrefix) {
		return
	}
	n := w.nodeHistory(k)
	was, is := w.of(before), w.of(next)
	is.applied, is.base = true, was.Until
	same := was.held() && was.Owner == is.Owner
	if same {
		is.base, is.began = was.base, was.began
		if is.Until < was.base {
			w.Fail("windows: the mark of %s becomes %d, below %d, where the grant of its owner began", k, is.Until, was.base)
		}
	} else if is.held() {
		is.floor, is.began = w.floor(), w.integer(next, `"from":`)
	}
	if is.State == "held" && (w.ended || !same && recordField(w.store.values[simConfigKey], `"state":`) != "attached") {
		is.late = true
		if w.ended && was.State == "held" && !was.late { // a late claim may settle itself, and is then dropped
			w.Fail("ended: the window of %s is renewed, and detach or destroy had returned", k)
		}
	}
	n.repaired = n.repaired || is.Spoiled != [2]int64{}
	g := n.grant(is.Owner)
	g.until = max(g.until, is.Until)
	if is.held() {
		n.most = max(n.most, is.Until)
	}
	if most := is.clock + w.longest/simMS; by != nil && is.held() && is.Until > max(was.Until, most) {
		w.Fail("cap: member %d raises the mark of %s from %d to %d, and its clock and a window end at %d", by.id, k, was.Until, is.Until, most)
	}
	if n.taken > is.Until*simMS && len(w.cloned) == 0 && !w.unfenced {
		w.checkMark(n, is.record, w.floor())
	}
}

// checkMark checks that everything taken of a node ID, by any member, lies
// below its mark or the floor, or where no window will ever be.
func (w *world) checkMark(n *nodeHistory, r record, floor int64) {
	for _, s := range n.spans {
		if s.hi > max(r.Until, floor)*simMS && (s.lo < r.Spoiled[0]*simMS || s.hi > r.Spoiled[1]*simMS) && !n.excuses(s.hi-1) {
			w.Fail("windows: the mark of %s becomes %d, and member %d has taken what is from %d to %d µs", n.key, r.Until, s.member, s.lo, s.hi)
		}
	}
}

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

// checkBegin checks that a grant is valid before it is used: written in the
// store by this member, and above the mark that it replaced.
func (w *world) checkBegin(p *member, a action) {
	if p.asked == nil {
		w.Fail("windows: member %d begins node %d and never asked for it", p.id, a.Node)
		return
	}
	claim := w.of(p.asked.Next)
	switch {
	case !claim.applied:
		w.Fail("windows: member %d begins node %d, and its claim was never applied", p.id, a.Node)
	case a.From < claim.base:
		w.Fail("windows: member %d begins node %d at %d, below the mark %d of the one before", p.id, a.Node, a.From, claim.base)
	case a.From < claim.floor:
		w.Fail("floor: member %d begins node %d at %d, below the floor %d", p.id, a.Node, a.From, claim.floor)
	case a.Node < p.nodes[0] || a.Node > p.nodes[1]:
		w.Fail("range: member %d has node %d, and may have %v", p.id, a.Node, p.nodes)
	}
	n := w.nodeHistory(p.asked.Key)
	p.owner, p.late = claim.Owner, claim.late
	p.t = &term{node: a.Node, history: n, from: a.From * simMS, began: w.Now, granted: n.grant(claim.Owner)}
}

// took checks the IDs from first to last, which a member has just taken.
func (w *world) took(p *member, first, last firn.ID, count int) piece {
	node, lo := p.f.split(first)
	other, hi := p.f.split(last)
	hi++
	x := piece{p.t.history, p.f, lo, hi}
	if node != other || node != p.t.node || hi-lo != uint64(count) {
		w.Fail("batch: member %d takes %d IDs from %v to %v, with node %d", p.id, count, first, last, p.t.node)
	}
	if p.lastOf == p.f && lo <= p.last {
		w.Fail("order: member %d takes %v, and was at %d before", p.id, first, p.last)
	}
	p.last, p.lastOf = hi-1, p.f
	if len(w.cloned) == 0 {
		if until := p.t.granted.until; x.ends() > until*simMS {
			w.Fail("until: member %d makes an ID of node %d for %d µs, and was granted what is before %d", p.id, node, x.ends()-p.f.unit, until)
		}
		w.checkHeard(p, x)
		if x.begins() < p.t.from {
			w.Fail("from: member %d makes an ID of node %d for %d µs, and was granted what begins at %d µs", p.id, node, x.begins(), p.t.from)
		}
	}
	x.n.taken = max(x.n.taken, x.ends())
	w.note(p, x)
	if w.ended && p.late {
		w.Fail("ended: member %d makes an ID of node %d, acquired after detach or destroy had returned", p.id, node)
	}
	return x
}

// note records what a member has taken, and checks that no other member has
// taken anything between what this one takes in this term.
func (w *world) note(p *member, x piece) {
	t := p.t
	lo, hi := x.begins(), x.ends()
	if t.span == nil {
		t.span = &simSpan{member: p.id, lo: lo, hi: hi}
		x.n.spans = append(x.n.spans, t.span)
	}
	t.span.lo, t.span.hi = min(t.span.lo, lo), max(t.span.hi, hi)
	if len(w.cloned) > 0 {
		return
	}
	all := x.n.spans
	if !x.n.repaired {
		all = all[max(0, len(all)-20):]
	}
	for _, s := range all {
		if s != t.span && s.lo < t.span.hi && t.span.lo < s.hi && !x.n.excuses(max(s.lo, t.span.lo)) {
			w.Fail("windows: member %d takes what is from %d to %d µs of %s in one term, and member %d what is from %d to %d",
				p.id, t.span.lo, t.span.hi, x.n.key, s.member, s.lo, s.hi)
		}
	}
}

// tookIt reports whether a member of this sequencer has taken the piece.
func (w *world) tookIt(x piece) bool {
	return slices.ContainsFunc(x.n.spans, func(s *simSpan) bool { return s.lo <= x.begins() && x.ends() <= s.hi })
}

// give hands IDs out.
func (w *world) give(p *member, x piece) {
	if n := int(x.hi - x.lo); n > 1000 {
		w.res.Reserved += n
	} else {
		w.res.IDs += n
	}
	given := x.n.given[x.f]
	if given == nil {
		given = new(slots)
		x.n.given[x.f] = given
	}
	if again, twice := given.add(x.lo, x.hi); twice && !w.mayRepeat(piece{x.n, x.f, again, again + 1}) {
		w.Fail("repeated: member %d gives slot %d of %s again, at %d µs", p.id, again, x.n.key, x.f.time(again))
	}
}

func (w *world) mayRepeat(x piece) bool {
	t := x.begins()
	for _, c := range w.cloned {
		if x.n == c.n && t >= c.lo && t < c.hi {
			return true
		}
	}
	return x.n.excuses(t)
}

// checkFence checks that nothing granted before a fence ends above what may be
// granted after it. If the fence did not know the longest window, what lies
// above may be granted again: members that learn of it stop.
func (w *world) checkFence(knew bool) {
	if w.wild || w.besieged {
		return // it requires correct clocks
	}
	floor := w.floor()
	for _, key := range slices.Sorted(maps.Keys(w.histories)) {
		n := w.histories[key]
		bound := max(floor, w.of(w.store.values[key]).Until)
		switch {
		case n.most <= bound:
		case knew:
			w.Fail("fence: %s was granted up to %d, and after the fence begins at %d", key, n.most, bound)
		default:
			n.excused = append(n.excused, interval64{bound * simMS, n.most * simMS})
		}
	}
}

// heard records what a member has read of the configuration.
func (w *world) heard(p *member, a action, e event) {
	if e.Err != nil || !readsConfig(a) {
		return
	}
	p.hear(floorIn(e.Values[len(e.Values)-1]), w.Now)
}

// hear records a floor that a process has read.
func (p *process) hear(floor, now int64) {
	if floor > p.floor {
		p.floor, p.floorRead = floor, now
	}
}

// overlaps reports whether a member that holds a node ID reads, instead of its
// own record, one whose owner's grant began inside its window, and no fence.
func (w *world) overlaps(p *member, a action, e event) bool {
	s := p.m.status
	if e.Err != nil || a.Kind != actionGetMany || len(a.Keys) != 2 || !readsConfig(a) || s.Phase != Holding || p.stopped > w.Now || a.Keys[0] != p.formatOr(w).key(s.Node) {
		return false
	}
	info, _ := p.m.lastInfo()
	x := w.of(e.Values[0])
	known := int64(noTime)
	if !info.Floor.IsZero() {
		known = info.Floor.UnixMilli()
	}
	return x.applied && x.Owner != "" && x.Owner != s.Owner && x.began < s.Until.UnixMilli() && x.Spoiled == [2]int64{} && floorIn(e.Values[1]) == known
}

// checkStopped checks that a member has sealed, and claims nothing.
func (w *world) checkStopped(p *member) {
	if s := p.m.status; s.Phase == Holding || s.Phase == Losing || !errors.Is(s.Err, ErrStoreWentBack) {
		w.Fail("overlap: member %d reads that another's window begins in its own, and is %+v", p.id, s)
	}
}

// checkHeard checks that a member, once it has learned of a fence or might
// have, uses nothing above the floor that it held before.
func (w *world) checkHeard(p *member, x piece) {
	cut := max(p.cut, p.stopped, p.shaky, w.store.down, w.stale)
	switch above := func(floor int64) bool { return x.ends() > floor*simMS }; {
	case cut > w.Now-10*second:
	case p.floor != noTime && p.t.began < p.floorRead && p.floorRead < w.Now-5*second && above(p.floor):
		w.Fail("unheard: member %d makes an ID of node %d for %d µs, above the floor %d that it read %d s ago",
			p.id, p.t.node, x.ends(), p.floor, (w.Now-p.floorRead)/second)
	case w.wild || w.unfenced || w.fenced == noTime || w.store.standby != nil:
	case p.t.began < w.fenced && max(w.fenced, cut) < w.Now-45*second && above(w.floor()):
		w.Fail("unheard: member %d makes an ID of node %d for %d µs, above the floor %d of a fence that was %d s ago",
			p.id, p.t.node, x.ends(), w.floor(), (w.Now-w.fenced)/second)
	}
}

// stalled checks that members got their IDs.
func (w *world) stalled() {
	if r := w.res; r.Failed > 100 && r.Failed > r.Tries/4 {
		w.Fail("stalled: %d of %d IDs that were wanted while nothing was amiss were not had", r.Failed, r.Tries)
	}
	if r := w.res; r.BesiegedFailed > 100 && r.BesiegedFailed > r.BesiegedTries/20 {
		w.Fail("stalled: beside a host whose clock is a year ahead, %d of %d IDs were not had", r.BesiegedFailed, r.BesiegedTries)
	}
}
