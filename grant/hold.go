package grant

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/mutant"
)

// due reports whether the window is to be renewed: a write must be confirmed,
// less than the margin is left of the window and it is in use, or a caller
// waits. The mark must grow by enough to be worth a write.
func (m *Machine) due() bool {
	h := m.hold
	if h.seen != nil {
		return true
	}
	left := h.until - max(m.wall, m.used)
	return (m.demand || left < h.margin && m.used > h.renewed) && m.growth() >= m.leastGrowth()
}

// overdue reports whether the member needs a renewal, or another number in
// place of one that it lost.
func (m *Machine) overdue() bool { return m.hold != nil && (m.hold.lost || m.due()) }

// growth is by how much a renewal would raise the mark now.
func (m *Machine) growth() int64 { return min(m.end(m.hold.until), m.hold.limit) - m.hold.until }

// leastGrowth is the least growth that a renewal is written for.
func (m *Machine) leastGrowth() int64 { return max(m.window()/12, 1) }

// ends reports whether the window cannot be extended when it is to be: it ends
// where a span begins that may be used already. Another number is taken then.
func (m *Machine) ends() bool {
	h := m.hold
	return h.limit-h.until < m.leastGrowth() && h.limit != maxMark && h.until-max(m.wall, m.used) < h.margin
}

// open reports whether something of the window may be left, by the clock as it
// is or as it went on from the last write.
func (m *Machine) open() bool { return m.hold.until > m.wall || m.hold.untilAt > m.mono }

// early reports whether a window that begins at from is of no use for a while,
// as the clock was set back since it was chosen. Another number may be had at
// once.
func (m *Machine) early(from int64) bool {
	return from > m.wall+m.sequencer.MaxAhead+stepMost && from >= m.used
}

// newMargin chooses when to renew: at a third of the window used, give or take
// a fifth of that.
func (m *Machine) newMargin() int64 {
	third := m.window() / 3
	fifth := third / 5
	used := third - fifth + int64(m.set.Random()%uint64(2*fifth+1))
	return m.window() - used
}

// end is the end of a window that is written now, over a mark. It lies at most
// MaxAhead and a window ahead of the clock, however far ahead the generator is:
// what a fence does rests on that.
func (m *Machine) end(mark int64) int64 {
	at := max(m.wall, m.used)
	if !mutant.On(mutant.MarkUncapped) {
		at = min(at, m.wall+m.sequencer.MaxAhead)
	}
	return min(max(mark, at+m.window()), maxMark)
}

// renew writes a later end into the record. Where a read has shown an attempt
// whose result was unknown, it is written over that, which settles it.
func (m *Machine) renew() {
	h := m.hold
	mark, old := h.until, h.record
	if h.seen != nil {
		mark, old = h.seenTo, h.seen
	}
	until := min(m.end(mark), h.limit)
	if until-h.until > 2*m.window() && !m.probed {
		if m.asksTime() {
			m.request(opTime, Action{Kind: Time})
			return
		}
		m.request(opProbe, Action{Kind: GetMany, Keys: m.someKeys(picks)})
		return
	}
	m.probed = false
	h.next, h.nextTo = m.node(flagHeld, until, h.gap, h.spoiled), until
	if mutant.On(mutant.BlindRenewal) {
		old = []byte("*")
	}
	m.request(opRenew, Action{Kind: CAS, Key: h.key, Old: old, Next: h.next})
}

// node is a new record of the member, with the spans of the one that it
// replaces.
func (m *Machine) node(state string, until int64, gap, spoiled span) []byte {
	r := nodeRecord{
		Version: m.sequencer.Version, Nonce: m.token(), Owner: m.owner, Until: until,
		Wall: m.wall, State: state, Host: m.set.Host, Gap: gap, Spoiled: spoiled,
	}
	if r.held() {
		// A write that settles another, from before the clock was set back, has that
		// one's end, and so its clock: a fence takes what lies between for a window.
		r.Wall = max(r.Wall, until-m.sequencer.MaxAhead-m.window())
	}
	return r.encode()
}

// leave seals the generator, gives the number back and forgets it.
func (m *Machine) leave() {
	h := m.hold
	if !h.sealed {
		if mutant.On(mutant.SealLate) && !h.lost {
			h.next = m.node(flagFree, m.mark(), h.gap, h.spoiled)
		}
		h.sealing = true
		m.do(Action{Kind: Seal, Node: h.node})
		return
	}
	switch {
	case h.lost && !mutant.On(mutant.ReleaseForeign):
		m.forget(false, nil) // it is another's
		return
	case m.frozen:
		m.forget(false, ErrRolledBack)
		return
	case h.release >= releaseTry:
		m.forget(false, m.status.Err)
		return
	}
	h.release++
	if !mutant.On(mutant.SealLate) || h.next == nil {
		h.next = m.node(flagFree, m.mark(), h.gap, h.spoiled)
	}
	old := h.record
	if mutant.On(mutant.ReleaseForeign) {
		old = []byte("*")
	}
	m.request(opRelease, Action{Kind: CAS, Key: h.key, Old: old, Next: h.next})
}

// mark is the end of what was used, for a release: not below where the grant
// began, because what is before was another's, nor above where it ends.
func (m *Machine) mark() int64 { return min(max(m.hold.from, m.used), m.hold.until) }

// forget ends the use of a number; nothing of it is ever looked at again. If it
// was not given back and is not another's, the error says why.
func (m *Machine) forget(gaveBack bool, err error) {
	if m.gaveBack = gaveBack; !m.attached {
		m.kept = err
	}
	m.hold = nil
	m.failures = 0
	m.advance()
}

// begin takes a claim into use.
func (m *Machine) begin() {
	c := m.claim
	m.claim = nil
	from := max(c.from, m.used) // the process's own order
	m.hold = &hold{
		node: c.node, key: c.key, record: c.next, from: c.from, until: c.until, untilAt: m.mono + c.until - m.wall,
		limit: c.limit, gap: c.gap, spoiled: c.spoiled, renewed: max(m.used, c.from), margin: m.newMargin(),
	}
	m.prefer = int64(c.node)
	if mutant.On(mutant.StaleMemory) {
		from = min(c.from, m.wall)
	}
	m.settled()
	m.use(from)
}

// use has the number used from a time on. Where the process has used times
// beyond the end of the window already, as its clock was set back since, it
// holds the number and waits until the window reaches them.
func (m *Machine) use(from int64) {
	h := m.hold
	if h.waiting = from >= h.until; h.waiting {
		return
	}
	m.do(Action{Kind: Begin, Node: h.node, From: from, Until: h.until})
}

// settled notes that the store answered well.
func (m *Machine) settled() {
	m.failures, m.notBefore, m.demand, m.isRefused = 0, 0, false, false
	m.crowded, m.refusals, m.droughts, m.listAfter = false, 0, 0, 0
	m.status.Err = nil
}

// probe compares the clock with what other records say before a renewal that
// raises the mark by much: the clock has jumped, or the window lapsed long ago.
func (m *Machine) probe(e Event) {
	if e.Err != nil {
		m.fail(e.Err, 0)
		return
	}
	if err := m.clockBehind(m.look(e.Keys, e.Values)); err != nil {
		m.fail(err, 1000)
		return
	}
	m.probed = true
}

// setBack says why a number that is held is of no use yet.
func (m *Machine) setBack() error {
	from := max(m.hold.from, m.used)
	return &setBackError{name: m.set.Name, ClockError: firn.ClockError{
		Now: timeOf(m.wall), Last: timeOf(from), Wait: time.Duration(max(from-m.wall-m.sequencer.MaxAhead, 1)) * time.Millisecond,
	}}
}

// A setBackError is a *firn.ClockError of a member that makes no IDs yet.
type setBackError struct {
	firn.ClockError
	name string
}

func (e *setBackError) Error() string {
	if e.Now.UnixMilli() >= maxMark {
		return fmt.Sprintf("grant: sequencer %s: this machine's clock shows %s or later, which no record can hold: set the clock", e.name, e.Now.Format(timeFormat))
	}
	return fmt.Sprintf("grant: sequencer %s: this process made IDs for times up to %s, and its clock was set back since: it makes no more until then; set the clock, or restart the process",
		e.name, e.Last.Format(timeFormat))
}

func (e *setBackError) Unwrap() error { return &e.ClockError }

// renewed continues after a renewal. Where its result is unknown, or it was
// refused, the record is read, to know what to write next.
func (m *Machine) renewed(op operation, e Event, value func() []byte) {
	h := m.hold
	if op == opRenew {
		switch {
		case e.Err == nil && e.Applied, e.Err != nil && mutant.On(mutant.TimeoutIsSuccess):
			m.adopt(h.next, h.nextTo)
		case errors.Is(e.Err, ErrNotSent):
			m.fail(e.Err, 0)
		case e.Err != nil:
			h.attempts = remember(h.attempts, h.next)
			m.fail(e.Err, 0)
			m.request(opRenewCheck, Action{Kind: Get, Key: h.key})
		default:
			m.request(opRenewCheck, Action{Kind: Get, Key: h.key})
		}
		return
	}
	if e.Err != nil {
		m.fail(e.Err, 0) // the next renewal is written over what was known before
		return
	}
	v := value()
	if from := cmp.Or(string(h.seen), string(h.record)); string(v) == from && m.mono >= m.notBefore {
		m.fail(errStale, 0) // or this would go on as fast as the store answers
	}
	m.readBack(v)
}

var errStale = errors.New("grant: the store refused a write, and shows the very record that the write was to replace: its reads are behind")

// remember adds a write of unknown result to others.
func remember(attempts [][]byte, next []byte) [][]byte {
	if attempts = append(attempts, next); len(attempts) > attemptsKept {
		attempts = attempts[1:]
	}
	return attempts
}

// contains reports whether one of some records has these very bytes.
func contains(records [][]byte, value []byte) bool {
	return slices.ContainsFunc(records, func(r []byte) bool { return bytes.Equal(r, value) })
}

// adopt takes a renewal that was applied.
func (m *Machine) adopt(record []byte, until int64) {
	h := m.hold
	for _, old := range [][]byte{h.record, h.seen} {
		if old != nil {
			h.old = append(h.old, old)
		}
	}
	h.old = h.old[max(len(h.old)-oldKept, 0):]
	h.record, h.attempts, h.seen = record, nil, nil
	h.renewed, h.margin = m.used, m.newMargin()
	if m.configAt-m.mono < configEvery/2 {
		m.configAt = m.mono // the driver has just asked where the store is in its history
	}
	grown := until > h.until
	if grown {
		h.until, h.untilAt = until, m.mono+until-m.wall
	}
	m.settled()
	switch {
	case h.sealed || h.sealing:
	case h.waiting:
		m.use(max(h.from, m.used))
	case grown:
		m.do(Action{Kind: Extend, Node: h.node, Until: until})
	}
}

// readBack judges what a read shows of the member's record after a write of it
// was refused, or its result not known. The value may not be durable: it may be
// gone after a failover of the store. So it decides what is written next, and
// whether to stop, but never that a write was applied.
func (m *Machine) readBack(value []byte) {
	h := m.hold
	if bytes.Equal(value, h.record) {
		h.seen = nil
		return // not applied, as far as is known; a new attempt follows a little later
	}
	if contains(h.attempts, value) {
		r, _ := decodeNode(h.key, value) // our own
		if mutant.On(mutant.AdoptOnRead) {
			m.adopt(value, r.Until)
			return
		}
		h.seen, h.seenTo = value, r.Until
		return
	}
	if value == nil || contains(h.old, value) {
		m.freeze() // records are never removed, and their bytes never come back
		return
	}
	m.failures, m.notBefore = 0, 0
	r, err := decodeNode(h.key, value)
	switch {
	case err != nil:
		h.lost = true
		m.fail(err, 0)
	case r.Owner == "":
		h.lost = true // fenced; what is left of the window lies below the floor
	case r.Owner != m.owner && (r.Wall > h.until || r.Spoiled[0] <= h.from && h.from < r.Spoiled[1]):
		// Our window was over by the clock of another, or a repair has set it apart.
		h.lost = true
		m.alarm(AlarmInfo{Kind: TakenOver, Node: h.node, From: m.used, Until: h.until})
	case r.Owner == m.owner && r.State == flagClosing:
		h.record, h.closing = value, true
	case r.Owner == m.owner && r.State == flagHeld && r.Until < h.until:
		if mutant.On(mutant.ShrunkRecord) {
			h.record = value
			return
		}
		m.freeze() // a window never shrinks: this is an old record
	default:
		// Our own name, and a nonce we never wrote; or a successor that began
		// before our window ended, because somebody with our name gave the
		// number back.
		m.alarm(AlarmInfo{Kind: Cloned, Node: h.node, From: h.renewed, Until: h.until})
		m.owner = m.token()
		h.lost, h.closing = true, true // so that it is sealed, and not given back
	}
}

// fenced is what a new floor of the sequencer means for the number in use: its
// record is rewritten, so it cannot be extended. A window that ends below the
// floor is used to its end. One that ends above it is sealed, as it was not
// known to the fence: the next owner of the number may begin at the floor.
func (m *Machine) fenced(floor int64) {
	h := m.hold
	if mutant.On(mutant.FloorOnly) {
		return // the floor is of the store alone
	}
	h.lost = true
	if h.until > floor && !h.sealed && !mutant.On(mutant.FenceUnheard) {
		h.closing = true
		m.alarm(AlarmInfo{Kind: Fenced, Node: h.node, From: max(floor, h.from), Until: h.until})
	}
}

// released goes on after a release.
func (m *Machine) released(op operation, e Event, value func() []byte) {
	h := m.hold
	if op == opRelease {
		switch {
		case e.Err == nil && e.Applied:
			m.settled()
			m.forget(true, nil)
		case errors.Is(e.Err, ErrNotSent):
			m.fail(e.Err, 0)
		default:
			m.request(opReleaseCheck, Action{Kind: Get, Key: h.key})
		}
		return
	}
	switch v := value(); {
	case e.Err != nil:
		m.fail(e.Err, 0)
	case bytes.Equal(v, h.record):
		m.fail(errors.New("grant: the release was not applied"), 0)
	case bytes.Equal(v, h.next):
		m.forget(true, nil)
	default:
		// A renewal that came late, or the mark of a cluster-wide detach, is still
		// ours to lower.
		if contains(h.attempts, v) {
			h.record = v
			return
		}
		if r, err := decodeNode(h.key, v); err == nil && r.Owner == m.owner && r.State == flagClosing {
			h.record = v
			return
		}
		h.lost = true
	}
}
