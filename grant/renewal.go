package grant

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/firnid/firn"
)

const (
	maxAttempts     = 64 // writes with an unknown result that are remembered
	maxEarlier      = 16 // records that are remembered to detect a store that went back
	recordOnlyAfter = 3  // failures in a row after which a record is read without the configuration
)

// A renewal is what is known about the next one.
type renewal struct {
	probed bool // the clock was compared before a large renewal
	failed bool // the last renewal failed; the configuration is read before the next
}

// renewOrReread renews the window, or reads the configuration, if it is time.
func (m *machine) renewOrReread() {
	switch {
	case m.seen.hinted:
		m.rereadConfig()
	case m.renewalDue() && !(m.renewal.failed && m.configDue()):
		m.renew()
	case m.configDue():
		// A fence may have happened while it did not know this member's window.
		// So neither the length of the window nor failed renewals matter here.
		m.rereadConfig()
	}
}

// renewalDue reports whether to renew the window: a write must be confirmed, or
// no more than the margin is left of a window in use, or a caller waits. The
// mark must also grow enough to be worth a write.
func (m *machine) renewalDue() bool {
	h := m.hold
	if h.unconfirmed != nil {
		return true
	}
	left := h.until - max(m.wall, m.used)
	return (m.demand || left <= h.margin && m.used > h.usedAtRenewal) && m.growth() >= m.leastGrowth()
}

// needsWindow reports whether the member needs a renewal, or another node ID in
// place of one that it lost.
func (m *machine) needsWindow() bool { return m.hold != nil && (m.hold.lost || m.renewalDue()) }

// growth returns by how much a renewal would raise the mark now.
func (m *machine) growth() int64 { return min(m.newUntil(m.hold.until), m.hold.limit) - m.hold.until }

// leastGrowth returns the smallest growth that is worth a renewal.
func (m *machine) leastGrowth() int64 { return max(m.window()/12, 1) }

// cannotGrow reports whether the window cannot be extended when it should be,
// because it ends where a span begins that may already be used. Then another
// node ID is taken.
func (m *machine) cannotGrow() bool {
	h := m.hold
	return h.limit-h.until < m.leastGrowth() && h.limit != maxTime && h.until-max(m.wall, m.used) <= h.margin
}

// newMargin chooses when to renew a window: after a third of it, plus or minus
// a fifth of that.
func (m *machine) newMargin(window int64) int64 {
	third := window / 3
	fifth := third / 5
	used := third - fifth + int64(m.settings.random()%uint64(2*fifth+1))
	return window - used
}

// renew writes a later end into the record. If a read has shown an attempt with
// an unknown result, the new record replaces that attempt, which settles it.
func (m *machine) renew() {
	h := m.hold
	mark, old := h.until, h.record
	if h.unconfirmed != nil {
		mark, old = h.unconfirmedUntil, h.unconfirmed
	}
	until := min(m.newUntil(mark), h.limit)
	switch compare := until-h.until > 2*m.window() && !m.renewal.probed; {
	case compare && m.shouldAskTime():
		m.request(opTime, action{Kind: actionTime})
	case compare:
		m.request(opProbe, action{Kind: actionGetMany, Keys: m.someKeys(pickSize)})
	default:
		m.renewal.probed = false
		h.next, h.nextUntil, h.nextUsed = m.newRecord(nodeHeld, until, h.carried()), until, m.used
		m.request(opRenew, action{Kind: actionCAS, Key: h.key, Old: old, Next: h.next})
	}
}

// handleProbe compares the clock with the records of others before a renewal
// that raises the mark by much: either the clock has jumped, or the window
// ended long ago.
func (m *machine) handleProbe(e event) {
	m.renewal.probed = !m.clockBehind(m.evaluate(e.Keys, e.Values))
}

// setBackError returns the reason why a held node ID cannot be used yet. It
// wraps a *firn.ClockError.
func (m *machine) setBackError() error {
	from := max(m.hold.from, m.used)
	e := &firn.ClockError{
		Now: timeOf(m.wall), Last: timeOf(from),
		Wait: time.Duration(max(from-m.wall-m.maxAhead(), 1)) * time.Millisecond,
	}
	if m.wall >= maxTime {
		return kindErrorf(e, "sequencer %s: this machine's clock reads %s or later, which no record can hold: set the "+
			"clock", m.settings.name, timeText(e.Now))
	}
	return kindErrorf(e, "sequencer %s: this process made IDs for times up to %s and its clock was set back since, so "+
		"it makes no more until then: set the clock, or restart the process",
		m.settings.name, timeText(e.Last))
}

// handleRenew continues after a renewal. If its result is unknown, or it was
// refused, the record is read, to decide what to write next.
func (m *machine) handleRenew(e event) {
	h := m.hold
	switch {
	case e.Err == nil && e.Applied:
		m.adoptRenewal(h.next, h.nextUntil)
	case errors.Is(e.Err, ErrNotSent):
		m.fail(e.Err, 0)
	default:
		if e.Err != nil {
			h.attempts = appendAttempt(h.attempts, h.next)
			m.fail(e.Err, 0)
		}
		m.readHold(opRenewCheck)
	}
}

// handleRenewCheck continues after that read.
func (m *machine) handleRenewCheck(e event) {
	h := m.hold
	if from := cmp.Or(string(h.unconfirmed), string(h.record)); string(e.value(0)) == from && m.mono >= m.notBefore {
		m.fail(errStale, 0) // without a wait this would repeat as fast as the store answers
	}
	m.evaluateOwn(e.value(0), e.value(1))
}

// readHold reads the record of the node ID in use, and the configuration with
// it: a fence that rewrote the record raised the floor before. If that fails
// again and again, the record alone shows whether another's window overlaps.
func (m *machine) readHold(op operation) {
	keys := []string{m.hold.key, configKey(m.settings.name)}
	if m.failures >= recordOnlyAfter {
		keys = keys[:1]
	}
	m.request(op, action{Kind: actionGetMany, Keys: keys})
}

// appendAttempt adds a write with an unknown result to others.
func appendAttempt(attempts [][]byte, next []byte) [][]byte {
	if attempts = append(attempts, next); len(attempts) > maxAttempts {
		attempts = attempts[1:]
	}
	return attempts
}

// containsRecord reports whether one of the records has exactly these bytes.
func containsRecord(records [][]byte, value []byte) bool {
	return slices.ContainsFunc(records, func(r []byte) bool { return bytes.Equal(r, value) })
}

// adoptRenewal takes over a renewal that was applied.
func (m *machine) adoptRenewal(record []byte, until int64) {
	h := m.hold
	for _, old := range [][]byte{h.record, h.unconfirmed} {
		if old != nil {
			h.earlier = append(h.earlier, old)
		}
	}
	h.earlier = h.earlier[max(len(h.earlier)-maxEarlier, 0):]
	h.record, h.attempts, h.unconfirmed = record, nil, nil
	h.usedAtRenewal, h.margin = max(h.nextUsed, h.from), m.newMargin(m.window())
	if m.seen.rereadAt-m.mono < configEvery/2 {
		m.seen.rereadAt = m.mono // the driver has just asked for the lineage of the store
	}
	grown := until > h.until
	if grown {
		h.until, h.untilAt = until, m.mono+until-m.wall
	}
	m.succeeded()
	switch {
	case h.phase >= holdSealing:
	case h.waiting:
		m.useFrom(max(h.from, m.used))
	case grown:
		m.emit(action{Kind: actionExtend, Node: h.node, Until: until})
	}
}
