package grant

import (
	"bytes"
	"errors"
)

// maxReleaseTries is how often a release is attempted.
const maxReleaseTries = 20

// A leaving is what became of the last node ID. It is the zero leaving if the
// node ID belongs to another member.
type leaving struct {
	gaveBack bool  // it was given back
	err      error // why it was not; kept only if no other is wanted
}

// mustSeal reports whether nothing more may be used and the generator is not
// sealed yet.
func (m *machine) mustSeal() bool { return m.hold != nil && m.hold.phase == holdClosing }

// leave seals the generator, gives the node ID back and forgets it.
func (m *machine) leave() {
	switch h := m.hold; {
	case h.phase < holdSealed:
		h.phase = holdSealing
		m.emit(action{Kind: actionSeal, Node: h.node})
	case m.freezing.frozen:
		m.forget(leaving{err: m.freezing.reason})
	case h.lost:
		m.forget(leaving{}) // it belongs to another member
	case h.releaseTries >= maxReleaseTries:
		m.forget(leaving{err: m.status.Err})
	default:
		h.releaseTries++
		h.next = m.newRecord(nodeFree, m.releaseMark(), h.carried())
		m.request(opRelease, action{Kind: actionCAS, Key: h.key, Old: h.record, Next: h.next})
	}
}

// releaseMark returns the end of what was used, for a release. It is not below
// the start of the grant, because the time before belonged to another owner,
// nor above its end.
func (m *machine) releaseMark() int64 { return min(max(m.hold.from, m.used), m.hold.until) }

// forget ends the use of a node ID, which is never read again.
func (m *machine) forget(l leaving) {
	if m.leaving.gaveBack = l.gaveBack; !m.wanted {
		m.leaving.err = l.err
	}
	m.hold = nil
	m.failures = 0
	m.advance()
}

// handleRelease continues after a release.
func (m *machine) handleRelease(e event) {
	h := m.hold
	switch {
	case e.Err == nil && e.Applied:
		m.succeeded()
		m.forget(leaving{gaveBack: true})
	case errors.Is(e.Err, ErrNotSent):
		m.fail(e.Err, 0)
	default:
		if e.Err != nil {
			h.attempts = appendAttempt(h.attempts, h.next)
		}
		m.readHold(opReleaseCheck)
	}
}

// handleReleaseCheck continues after the read of a record that may not have
// been released.
func (m *machine) handleReleaseCheck(e event) {
	h, v := m.hold, e.value(0)
	switch {
	case bytes.Equal(v, h.record):
		m.fail(errors.New("grant: the release was not applied"), 0)
	case bytes.Equal(v, h.next):
		m.forget(leaving{gaveBack: true})
	case containsRecord(h.attempts, v):
		h.record = v // a late write of this grant is still ours to lower
	default:
		m.evaluateOwn(v, e.value(1))
	}
}
