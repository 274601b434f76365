package grant

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
)

// maxRefusals is how many claims in a row may be refused without a wait.
const maxRefusals = 16

// A claim is a node ID that is being acquired.
type claim struct {
	nodeGrant
	old, next []byte // of the write in progress, or of the last one

	infoBytes []byte   // of the sequencer, when the node ID was picked
	base      []byte   // the record when the node ID was picked
	attempts  [][]byte // writes with an unknown result
	phase     claimPhase
}

// A claimPhase is what is known of the record that a claim writes.
type claimPhase uint8

const (
	claimSent    claimPhase = iota // it is next, or it is not known
	claimAgain                     // it is old, as a read has shown: write again
	claimApplied                   // it is next
)

// acquire writes a claim on a node ID.
func (m *machine) acquire(c candidate) {
	cl := c.claim
	cl.until, cl.infoBytes = never, m.seen.infoBytes
	m.claim = &cl
	m.writeClaim()
}

// writeClaim writes the claim in place of the current record.
func (m *machine) writeClaim() {
	c := m.claim
	c.until = min(max(c.until, c.from, m.newUntil(c.from+m.window())), c.limit)
	c.next = m.newRecord(nodeHeld, c.until, c.carried())
	c.phase = claimSent
	m.request(opClaim, action{Kind: actionCAS, Key: c.key, Old: c.old, Next: c.next})
}

// resumeClaim continues with a claim after a wait.
func (m *machine) resumeClaim() {
	switch c := m.claim; {
	case c.phase == claimApplied:
		m.confirmClaim()
	case c.phase == claimSent:
		m.readClaim()
	case m.wanted && c.from+m.window() > m.wall && !m.tooEarly(c.from):
		m.writeClaim()
	case bytes.Equal(c.old, c.base):
		m.claim = nil // it is no longer wanted, and was not applied as far as is known
		m.advance()
	default:
		m.dropClaim()
	}
}

// handleClaim continues after a write of a claim. Only an applied write makes
// the claim valid.
func (m *machine) handleClaim(e event) {
	switch c := m.claim; {
	case c == nil: // frozen in the meantime
	case e.Err == nil && e.Applied:
		c.phase = claimApplied
		m.confirmClaim()
	case e.Err == nil && len(c.attempts) > 0:
		m.readClaim() // an earlier attempt may be stored
	case e.Err == nil:
		m.claim, m.search.crowded = nil, true
		if m.search.refusals++; m.search.refusals > maxRefusals {
			m.fail(fmt.Errorf("grant: %d claims were refused because the records had changed since they were read",
				m.search.refusals), 0)
		} else {
			m.failures = 0
			m.pick()
		}
	case errors.Is(e.Err, ErrNotSent):
		if len(c.attempts) == 0 {
			m.claim = nil
		}
		m.fail(e.Err, 0)
	default:
		c.attempts = appendAttempt(c.attempts, c.next)
		m.fail(e.Err, 0)
		m.readClaim()
	}
}

// readClaim reads the record of a claim, because the result of a write is
// unknown. That shows what to write next.
func (m *machine) readClaim() {
	m.request(opClaimCheck, action{Kind: actionGet, Key: m.claim.key})
}

// handleClaimCheck continues after that read.
func (m *machine) handleClaimCheck(e event) {
	v := e.value(0)
	switch c := m.claim; {
	case c == nil: // frozen in the meantime
	case e.Err != nil:
		if m.fail(e.Err, 0); !m.wanted {
			m.claim, m.leaving.gaveBack, m.leaving.err = nil, false, e.Err // it may block the node ID until its mark
		}
	case bytes.Equal(v, c.base) || containsRecord(c.attempts, v):
		if c.phase = claimAgain; bytes.Equal(v, c.old) && m.mono >= m.notBefore {
			m.fail(errStale, 0) // without a wait this would repeat as fast as the store answers
		}
		c.old = v
	default:
		m.claim = nil
		m.fail(fmt.Errorf("grant: the claim of node ID %d was not applied", c.node), 0)
	}
}

// confirmClaim reads the configuration again, so that nothing is acquired after
// a sequencer was detached, destroyed or fenced. It reads the claim with it: a
// server of the store that shows the claim shows everything written before it,
// and one that was left behind in a failover does not show it.
func (m *machine) confirmClaim() {
	m.request(opClaimConfirm, action{Kind: actionGetMany, Keys: []string{m.claim.key, configKey(m.settings.name)}})
}

// handleClaimConfirm begins to use the claim if nothing has changed, and
// otherwise drops it.
func (m *machine) handleClaimConfirm(e event) {
	switch c := m.claim; {
	case c == nil: // frozen in the meantime
	case e.Err != nil || len(e.Values) != 2:
		m.fail(cmp.Or(e.Err, errAnswer), 0) // advance reads it again
		if c.until <= m.wall || !m.wanted {
			m.dropClaim()
		}
	case !bytes.Equal(e.Values[0], c.next):
		m.fail(fmt.Errorf("grant: the claim of node ID %d has disappeared", c.node), 0)
		m.dropClaim()
	case !bytes.Equal(e.Values[1], c.infoBytes) || !m.wanted || m.tooEarly(c.from):
		m.dropClaim() // the same state is not enough: it may have been changed and changed back
	default:
		m.beginHold()
	}
}

var errAnswer = errors.New("grant: the store did not return a value for each key")

// dropClaim gives back an unused claim: the mark returns to where the claim
// began. Its record may be an attempt that a read has shown.
func (m *machine) dropClaim() {
	c := m.claim
	old := c.next
	if c.phase != claimApplied {
		old = c.old
	}
	m.request(opClaimDrop, action{Kind: actionCAS, Key: c.key, Old: old, Next: m.newRecord(nodeFree, c.from, c.carried())})
}

// handleClaimDrop continues after that write. Whether it was applied or not,
// nothing of the claim was used.
func (m *machine) handleClaimDrop(e event) {
	m.claim, m.leaving.gaveBack = nil, e.Err == nil && e.Applied
	if !m.wanted {
		m.leaving.err = e.Err
	}
}
