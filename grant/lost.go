package grant

import (
	"bytes"
	"slices"
)

// evaluateOwn evaluates the member's record as read after a write of it was
// refused, or had an unknown result, and the configuration read with it. The
// values may not be durable: a failover of the store may lose them. So they
// decide what is written next, and whether to stop, but they never prove that a
// write was applied.
func (m *machine) evaluateOwn(value, config []byte) {
	h := m.hold
	i, err := decodeInfo(configKey(m.settings.name), config)
	floor := ms(i.fenceFloor)
	fenced := err == nil && floor > m.seen.floor
	if fenced {
		m.seen.floor = floor
		m.handleFence(floor)
	}
	if bytes.Equal(value, h.record) {
		h.unconfirmed = nil // not applied, as far as is known; a new attempt follows soon
	} else if containsRecord(h.attempts, value) {
		r, _ := decodeNode(h.key, value) // written by this member
		h.unconfirmed, h.unconfirmedUntil = value, r.Until
	} else {
		m.failures, m.notBefore = 0, 0
		m.handleUnexpected(value, fenced)
	}
}

// handleUnexpected handles another record in place of the member's. Here and
// below, fenced means that the configuration, read with the record, shows a new
// fence.
func (m *machine) handleUnexpected(value []byte, fenced bool) {
	h := m.hold
	r, err := decodeNode(h.key, value)
	switch {
	case value == nil || containsRecord(h.earlier, value):
		m.handleOldRecord(fenced) // records are never removed, and their bytes never repeat
	case err != nil:
		h.lost = true
		if h.phase < holdSealed {
			m.fail(err, 0)
		}
	case r.Owner != m.owner, r.From.time < h.from, r.State == nodeFree && m.predates(r.Until, r.Nonce):
		m.handleDisplaced(r, fenced)
	case r.State != nodeFree && r.Until < h.until && r.From.time == h.from:
		if r.State == nodeClosing {
			h.close()
		}
		m.handleOldRecord(fenced) // a window never shrinks
	case r.State == nodeClosing && r.From.time == h.from:
		h.record = value
		h.close()
	default:
		// A nonce that we never wrote: another process has our name.
		m.alarm(raisedAlarm{Kind: AlarmCloned, Node: h.node, From: h.usedAtRenewal, Until: h.until})
		m.owner = newToken(m.settings.random)
		h.lost = true // to be sealed, but not given back
		h.close()
	}
}

// handleOldRecord handles an old record in place of the member's: the store
// went back. After a fence, that is no reason to freeze.
func (m *machine) handleOldRecord(fenced bool) {
	if !fenced {
		m.freeze()
	}
}

// handleDisplaced handles a record in place of the member's that is not of its
// grant. Every claim begins at the mark that it replaces or above, so another's
// window that begins below the end of the member's own proves that a write of
// this grant was lost, or that a copy of this process gave the node ID back.
// The mark of a record without an owner, or of an earlier grant, shows where
// the next window may begin.
func (m *machine) handleDisplaced(r nodeRecord, fenced bool) {
	h := m.hold
	from, until := r.Until, h.until
	if r.Owner != "" && r.Owner != m.owner {
		if from = r.From.time; !r.From.set {
			from = h.from // unknown
		}
	}
	if h.phase == holdSealed {
		until = m.releaseMark() // a release with an unknown result may have lowered the mark
	}
	after := from >= until || until <= h.from // nothing of it was used
	h.lost = true
	if !after && (r.Spoiled.length() == 0 || r.Spoiled.from > h.from || until > r.Spoiled.until) {
		m.handleOverlap(r, from, until, fenced)
	} else if r.Owner != "" && h.phase < holdSealed && !fenced {
		m.alarm(raisedAlarm{Kind: AlarmTakenOver, Node: h.node, From: m.used, Until: h.until})
	}
}

// handleOverlap handles another's window, or one that may follow, that begins
// in the member's own.
func (m *machine) handleOverlap(r nodeRecord, from, until int64, fenced bool) {
	h := m.hold
	h.close()
	a := raisedAlarm{Kind: AlarmStoreWentBack, Node: h.node, From: from, Until: until}
	reason := ErrStoreWentBack
	switch {
	case fenced:
		a.Kind = AlarmFencedSpan
		if h.phase < holdSealed {
			a.Until = min(until, m.seen.floor) // what is above it was reported
		}
	case !m.predates(r.Replaced.Until, r.Replaced.Nonce) && !m.predates(r.Until, r.Nonce):
		a.Kind, reason = AlarmWindowsOverlapped, errOverlap
	}
	if a.From < a.Until {
		m.alarm(a)
	}
	if !fenced {
		m.owner = newToken(m.settings.random)
		m.freezeBecause(reason)
	}
}

// predates reports whether a record with this mark and nonce is older than the
// last applied write of this grant. A copy of this process cannot have written
// it: what a copy gives back includes all that was used when that write was
// requested.
func (m *machine) predates(mark int64, nonce string) bool {
	h := m.hold
	if nonce == "" || nonce == h.replaced.Nonce || mark < h.usedAtRenewal {
		return true
	}
	return slices.ContainsFunc(h.earlier, func(old []byte) bool {
		r, _ := decodeNode(h.key, old) // written by this member
		return r.Nonce == nonce
	})
}

// handleFence handles a new floor of the sequencer for the node ID in use. The
// fence has rewritten its record, so it cannot be extended. A window that ends
// below the floor is used to its end. One that ends above it is sealed, because
// the fence did not know of it: the next owner of the node ID may begin at the
// floor.
func (m *machine) handleFence(floor int64) {
	h := m.hold
	h.lost = true
	if h.until > floor && h.phase < holdSealed {
		h.close()
		m.alarm(raisedAlarm{Kind: AlarmFencedSpan, Node: h.node, From: max(floor, h.from), Until: h.until})
	}
}
