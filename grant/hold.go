package grant

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/firnid/firn"
)

// due reports whether to renew the window: a write must be confirmed, or less
// than the margin is left of a window in use, or a caller waits. The mark must
// also grow enough to be worth a write.
func (m *machine) due() bool {
	h := m.hold
	if h.seen != nil {
		return true
	}
	left := h.until - max(m.wall, m.used)
	return (m.demand || left < h.margin && m.used > h.renewed) && m.growth() >= m.leastGrowth()
}

// overdue reports whether the member needs a renewal, or another node ID in
// place of one that it lost.
func (m *machine) overdue() bool { return m.hold != nil && (m.hold.lost || m.due()) }

// growth returns by how much a renewal would raise the mark now.
func (m *machine) growth() int64 { return min(m.end(m.hold.until), m.hold.limit) - m.hold.until }

// leastGrowth returns the smallest growth that is worth a renewal.
func (m *machine) leastGrowth() int64 { return max(m.window()/12, 1) }

// ends reports whether the window cannot be extended when it should be, because
// it ends where a span begins that may already be used. Then another node ID is
// taken.
func (m *machine) ends() bool {
	h := m.hold
	return h.limit-h.until < m.leastGrowth() && h.limit != maxMark && h.until-max(m.wall, m.used) < h.margin
}

// open reports whether some of the window may be left, either by the current
// clock or by elapsed time since the last write.
func (m *machine) open() bool { return m.hold.until > m.wall || m.hold.untilAt > m.mono }

// early reports whether a window that begins at from cannot be used for a
// while, because the clock was set back since it was chosen. Another node ID
// may be usable at once.
func (m *machine) early(from int64) bool {
	return from > m.wall+m.maxAhead()+stepMost && from >= m.used
}

// newMargin chooses when to renew: after a third of the window, plus or minus a
// fifth of that.
func (m *machine) newMargin() int64 {
	third := m.window() / 3
	fifth := third / 5
	used := third - fifth + int64(m.options.random()%uint64(2*fifth+1))
	return m.window() - used
}

// end returns the end of a window that is written now, over a mark. It lies at
// most MaxAhead plus a window ahead of the clock, however far ahead the
// generator is: a fence relies on that.
func (m *machine) end(mark int64) int64 {
	at := min(max(m.wall, m.used), m.wall+m.maxAhead())
	return min(max(mark, at+m.window()), maxMark)
}

// renew writes a later end into the record. If a read has shown an attempt with
// an unknown result, the new record replaces that attempt, which settles it.
func (m *machine) renew() {
	h := m.hold
	mark, old := h.until, h.record
	if h.seen != nil {
		mark, old = h.seenTo, h.seen
	}
	until := min(m.end(mark), h.limit)
	if until-h.until > 2*m.window() && !m.probed {
		if m.asksTime() {
			m.request(opTime, action{Kind: actionTime})
			return
		}
		m.request(opProbe, action{Kind: actionGetMany, Keys: m.someKeys(picks)})
		return
	}
	m.probed = false
	h.next, h.nextTo, h.nextUsed = m.node(nodeHeld, until, h.carried()), until, m.used
	m.request(opRenew, action{Kind: actionCAS, Key: h.key, Old: old, Next: h.next})
}

// node returns a new record of the member, with what it carries on.
func (m *machine) node(state string, until int64, r nodeRecord) []byte {
	r.Nonce, r.Owner, r.Until, r.Wall, r.State, r.Host = m.token(), m.owner, until, m.wall, state, m.options.Host
	if r.held() {
		// A write that settles another one, from before the clock was set back,
		// has the same end and so needs the same clock: a fence assumes a
		// window between the two, which may be longer than today's.
		r.Wall = max(r.Wall, until-m.maxAhead()-m.sequencer.LongestWindow.Milliseconds())
	}
	return r.encode()
}

// leave seals the generator, gives the node ID back and forgets it.
func (m *machine) leave() {
	h := m.hold
	if h.phase < holdSealed {
		h.phase = holdSealing
		m.do(action{Kind: actionSeal, Node: h.node})
		return
	}
	switch {
	case m.frozen:
		m.forget(false, m.frozenFor)
		return
	case h.lost:
		m.forget(false, nil) // it belongs to another member
		return
	case h.release >= releaseTry:
		m.forget(false, m.status.Err)
		return
	}
	h.release++
	h.next = m.node(nodeFree, m.mark(), h.carried())
	m.request(opRelease, action{Kind: actionCAS, Key: h.key, Old: h.record, Next: h.next})
}

// mark returns the end of what was used, for a release. It is not below the
// start of the grant, because the time before belonged to another owner, nor
// above its end.
func (m *machine) mark() int64 { return min(max(m.hold.from, m.used), m.hold.until) }

// forget ends the use of a node ID, which is never read again. If it was not
// given back and does not belong to another member, err is the reason.
func (m *machine) forget(gaveBack bool, err error) {
	if m.gaveBack = gaveBack; !m.wanted {
		m.kept = err
	}
	m.hold = nil
	m.failures = 0
	m.advance()
}

// begin starts using a claim.
func (m *machine) begin() {
	c := m.claim
	m.claim = nil
	from := max(c.from, m.used) // the order of IDs within the process
	m.hold = &hold{
		nodeGrant: c.nodeGrant, record: c.next, untilAt: m.mono + c.until - m.wall, renewed: max(m.used, c.from), margin: m.newMargin(),
	}
	m.prefer = int64(c.node)
	m.succeeded()
	m.use(from)
}

// use starts the use of the node ID from a time on. If the process has already
// used times beyond the end of the window, because its clock was set back
// since, it holds the node ID and waits until the window reaches them.
func (m *machine) use(from int64) {
	h := m.hold
	if h.waiting = from >= h.until; h.waiting {
		return
	}
	m.do(action{Kind: actionBegin, Node: h.node, From: from, Until: h.until})
}

// succeeded records that the store answered as expected.
func (m *machine) succeeded() {
	m.failures, m.notBefore, m.demand, m.refused = 0, 0, false, false
	m.crowded, m.refusals, m.droughts, m.listAfter = false, 0, 0, 0
	m.status.Err = nil
}

// probe compares the clock with the records of others before a renewal that
// raises the mark by much: either the clock has jumped, or the window ended
// long ago.
func (m *machine) probe(e event) {
	if e.Err != nil {
		m.fail(e.Err, 0)
		return
	}
	m.probed = !m.clockBehind(m.evaluate(e.Keys, e.Values))
}

// setBack returns the reason why a held node ID cannot be used yet. It wraps a
// *firn.ClockError.
func (m *machine) setBack() error {
	from := max(m.hold.from, m.used)
	e := &firn.ClockError{
		Now: timeOf(m.wall), Last: timeOf(from), Wait: time.Duration(max(from-m.wall-m.maxAhead(), 1)) * time.Millisecond,
	}
	if m.wall >= maxMark {
		return errorOf(e, "sequencer %s: this machine's clock reads %s or later, which no record can hold: set the clock", m.options.name, timeText(e.Now))
	}
	return errorOf(e, "sequencer %s: this process made IDs for times up to %s and its clock was set back since, so it makes no more until then: set the clock, or restart the process",
		m.options.name, timeText(e.Last))
}

// renewed continues after a renewal. If its result is unknown, or it was
// refused, the record is read, to decide what to write next.
func (m *machine) renewed(op operation, e event, v, config []byte) {
	h := m.hold
	if op == opRenew {
		switch {
		case e.Err == nil && e.Applied:
			m.adopt(h.next, h.nextTo)
		case errors.Is(e.Err, ErrNotSent):
			m.fail(e.Err, 0)
		case e.Err != nil:
			h.attempts = remember(h.attempts, h.next)
			m.fail(e.Err, 0)
			m.readAgain(opRenewCheck)
		default:
			m.readAgain(opRenewCheck)
		}
		return
	}
	if e.Err != nil {
		m.fail(e.Err, 0) // the next renewal replaces what was known before
		return
	}
	if from := cmp.Or(string(h.seen), string(h.record)); string(v) == from && m.mono >= m.notBefore {
		m.fail(errStale, 0) // without a wait this would repeat as fast as the store answers
	}
	m.readBack(v, config)
}

// readAgain reads the record of the node ID in use, and the configuration with
// it: a fence that rewrote the record raised the floor before. If that fails
// again and again, the record alone shows whether another's window overlaps.
func (m *machine) readAgain(op operation) {
	keys := []string{m.hold.key, configKey(m.options.name)}
	if m.failures >= checkTry {
		keys = keys[:1]
	}
	m.request(op, action{Kind: actionGetMany, Keys: keys})
}

var errStale = errors.New("grant: the store refused a write but still returns the record that the write should have replaced: its reads are stale")

// remember adds a write with an unknown result to others.
func remember(attempts [][]byte, next []byte) [][]byte {
	if attempts = append(attempts, next); len(attempts) > attemptsKept {
		attempts = attempts[1:]
	}
	return attempts
}

// contains reports whether one of the records has exactly these bytes.
func contains(records [][]byte, value []byte) bool {
	return slices.ContainsFunc(records, func(r []byte) bool { return bytes.Equal(r, value) })
}

// adopt takes over a renewal that was applied.
func (m *machine) adopt(record []byte, until int64) {
	h := m.hold
	for _, old := range [][]byte{h.record, h.seen} {
		if old != nil {
			h.old = append(h.old, old)
		}
	}
	h.old = h.old[max(len(h.old)-oldKept, 0):]
	h.record, h.attempts, h.seen = record, nil, nil
	h.renewed, h.margin = max(h.nextUsed, h.from), m.newMargin()
	if m.configAt-m.mono < configEvery/2 {
		m.configAt = m.mono // the driver has just asked for the lineage of the store
	}
	grown := until > h.until
	if grown {
		h.until, h.untilAt = until, m.mono+until-m.wall
	}
	m.succeeded()
	switch {
	case h.phase >= holdSealing:
	case h.waiting:
		m.use(max(h.from, m.used))
	case grown:
		m.do(action{Kind: actionExtend, Node: h.node, Until: until})
	}
}

// readBack evaluates the member's record as read after a write of it was
// refused, or had an unknown result, and the configuration read with it. The
// values may not be durable: a failover of the store may lose them. So they
// decide what is written next, and whether to stop, but they never prove that a
// write was applied.
func (m *machine) readBack(value, config []byte) {
	h := m.hold
	c, err := decodeConfig(configKey(m.options.name), config)
	floor := ms(c.fence)
	fenced := err == nil && floor > m.seenFloor
	if fenced {
		m.seenFloor = floor
		m.fenced(floor)
	}
	if bytes.Equal(value, h.record) {
		h.seen = nil
		return // not applied, as far as is known; a new attempt follows soon
	}
	if contains(h.attempts, value) {
		r, _ := decodeNode(h.key, value) // written by this member
		h.seen, h.seenTo = value, r.Until
		return
	}
	m.failures, m.notBefore = 0, 0
	r, err := decodeNode(h.key, value)
	switch {
	case value == nil || contains(h.old, value):
		m.foundOld(fenced) // records are never removed, and their bytes never repeat
	case err != nil:
		h.lost = true
		if h.phase < holdSealed {
			m.fail(err, 0)
		}
	case r.Owner != m.owner, r.From.time < h.from, r.State == nodeFree && m.predates(r.Until, r.Nonce):
		m.displaced(r, fenced)
	case r.State != nodeFree && r.Until < h.until && r.From.time == h.from:
		if r.State == nodeClosing {
			h.close()
		}
		m.foundOld(fenced) // a window never shrinks
	case r.State == nodeClosing && r.From.time == h.from:
		h.record = value
		h.close()
	default:
		// A nonce that we never wrote: another process has our name.
		m.alarm(warning{Kind: alarmCloned, Node: h.node, From: h.renewed, Until: h.until})
		m.owner = m.token()
		h.lost = true // to be sealed, but not given back
		h.close()
	}
}

// foundOld handles an old record in place of the member's: the store went back.
// A fence since then needs no other.
func (m *machine) foundOld(fenced bool) {
	if !fenced {
		m.freeze()
	}
}

// displaced handles a record in place of the member's that is not of its grant.
// Every claim begins at the mark that it replaces or above, so another's window
// that begins below the end of the member's own proves that a write of this
// grant was lost, or that a copy of this process gave the node ID back. The
// mark of a record without an owner, or of an earlier grant, shows where the
// next window may begin.
func (m *machine) displaced(r nodeRecord, fenced bool) {
	h := m.hold
	from, until := r.Until, h.until
	if r.Owner != "" && r.Owner != m.owner {
		if from = r.From.time; !r.From.set {
			from = h.from // unknown
		}
	}
	if h.phase == holdSealed {
		until = m.mark() // a release with an unknown result may have lowered the mark
	}
	after := from >= until || until <= h.from // nothing of it was used
	h.lost = true
	if after || r.Spoiled.length() > 0 && r.Spoiled[0] <= h.from && until <= r.Spoiled[1] {
		if r.Owner != "" && h.phase < holdSealed && !fenced {
			m.alarm(warning{Kind: alarmTakenOver, Node: h.node, From: m.used, Until: h.until})
		}
		return
	}
	h.close()
	a := warning{Kind: alarmRolledBack, Node: h.node, From: from, Until: until}
	reason := ErrRolledBack
	switch {
	case fenced:
		a.Kind = alarmFenced
		if h.phase < holdSealed {
			a.Until = min(until, m.seenFloor) // what is above it was reported
		}
	case !m.predates(r.Over.Until, r.Over.Nonce) && !m.predates(r.Until, r.Nonce):
		a.Kind, reason = alarmOverlapped, errOverlap
	}
	if a.From < a.Until {
		m.alarm(a)
	}
	if !fenced {
		m.owner = m.token()
		m.freezeFor(reason)
	}
}

// predates reports whether a record with this mark and nonce is older than the
// last applied write of this grant. A copy of this process cannot have written
// it: what a copy gives back includes all that was used when that write was
// requested.
func (m *machine) predates(mark int64, nonce string) bool {
	h := m.hold
	return nonce == "" || nonce == h.over.Nonce || mark < h.renewed || slices.ContainsFunc(h.old, func(old []byte) bool {
		r, _ := decodeNode(h.key, old) // written by this member
		return r.Nonce == nonce
	})
}

// fenced handles a new floor of the sequencer for the node ID in use. The fence
// has rewritten its record, so it cannot be extended. A window that ends below
// the floor is used to its end. One that ends above it is sealed, because the
// fence did not know of it: the next owner of the node ID may begin at the
// floor.
func (m *machine) fenced(floor int64) {
	h := m.hold
	h.lost = true
	if h.until > floor && h.phase < holdSealed {
		h.close()
		m.alarm(warning{Kind: alarmFenced, Node: h.node, From: max(floor, h.from), Until: h.until})
	}
}

// released continues after a release.
func (m *machine) released(op operation, e event, v, config []byte) {
	h := m.hold
	if op == opRelease {
		switch {
		case e.Err == nil && e.Applied:
			m.succeeded()
			m.forget(true, nil)
		case errors.Is(e.Err, ErrNotSent):
			m.fail(e.Err, 0)
		default:
			if e.Err != nil {
				h.attempts = remember(h.attempts, h.next)
			}
			m.readAgain(opReleaseCheck)
		}
		return
	}
	switch {
	case e.Err != nil:
		m.fail(e.Err, 0)
	case bytes.Equal(v, h.record):
		m.fail(errors.New("grant: the release was not applied"), 0)
	case bytes.Equal(v, h.next):
		m.forget(true, nil)
	case contains(h.attempts, v):
		h.record = v // a late write of this grant is still ours to lower
	default:
		m.readBack(v, config)
	}
}
