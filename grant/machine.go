package grant

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A machine is the protocol of one member of one sequencer as a pure state
// machine: events go in, actions come out. It has no clock, does no I/O and
// starts no goroutine. A Keeper drives it; the simulator of the tests drives
// the same code. It is not safe for concurrent use.
//
// At most one request to the store is in progress: after an action that is a
// request, the driver passes an eventAnswered, and other events may come
// before it. Times are Unix milliseconds of the member's own clock, or
// milliseconds of a clock that never goes back (Mono).
//
// docs/protocol.md describes what it does, and why IDs stay unique.
type machine struct {
	settings settings
	owner    string // the member's name in the records; random

	wall, mono, used int64    // of the current event
	out              []action // what step returns

	started            bool  // there was an event before
	lastWall, lastMono int64 // at that event

	wanted bool // a node ID is wanted: eventJoin came last, not eventLeave
	demand bool // a caller waits for an ID

	pending   operation // the request in progress
	failures  int       // consecutive failed requests
	notBefore int64     // Mono before which no request is made

	// What each phase knows, in the file of that phase.
	seen     seenConfig
	search   search
	clocks   clocks
	claim    *claim // a node ID that is being acquired
	hold     *hold  // the node ID in use
	renewal  renewal
	leaving  leaving
	freezing freezing

	status   Status
	reported error // the error of the last report
}

// An operation is the purpose of the request in progress.
type operation uint8

const (
	opNone         operation = iota
	opConfig                 // read the configuration before picking a node ID
	opTime                   // ask the store for its time
	opPick                   // read some records
	opList                   // read all records
	opClaim                  // write a claim
	opClaimCheck             // read the record: the result of a write is unknown
	opClaimConfirm           // read the claim and the configuration once it was applied
	opClaimDrop              // give back an unused claim
	opProbe                  // read other records before a large renewal
	opRenew                  // renew the window
	opRenewCheck             // read the record and the configuration: unknown or refused
	opReread                 // read the configuration while holding
	opRelease                // give back
	opReleaseCheck           // read the record and the configuration: unknown or refused
	opThaw                   // read the configuration, and the record in use, while frozen
)

// newMachine returns the machine of a member that holds nothing.
func newMachine(s settings) *machine {
	s.host = truncate(s.host, maxHost)
	m := &machine{settings: s, search: search{preferred: -1}, used: never, seen: seenConfig{floor: never}}
	m.owner = newToken(m.settings.random)
	return m
}

// lastInfo returns the sequencer as it was last read. ok is false if it was not
// read yet.
func (m *machine) lastInfo() (info Info, ok bool) {
	return m.seen.info, m.seen.infoBytes != nil
}

const (
	maxJump        = int64(10 * 1000) // ms that a clock may jump ahead before an alarm
	minBackoff     = int64(50)        // ms after the first failure
	maxBackoff     = int64(5 * 1000)  // ms after many failures
	forbiddenRetry = int64(100)       // ms from a Demand to a look whether acquiring is still forbidden
)

// step passes an event to the machine and returns the actions to perform.
func (m *machine) step(e event) []action {
	m.out = nil
	m.wall, m.mono = min(max(e.Wall, -maxTime), maxTime), e.Mono
	m.used = max(m.used, min(e.Used, maxTime))
	if m.started {
		by := (m.wall - m.lastWall) - (m.mono - m.lastMono)
		if by > maxJump {
			m.alarm(raisedAlarm{Kind: AlarmClockStep, By: time.Duration(by) * time.Millisecond})
		}
		if by > maxStep || by < -maxStep {
			m.clocks.reset()
		}
	}
	m.started, m.lastWall, m.lastMono = true, m.wall, m.mono

	switch e.Kind {
	case eventJoin:
		m.wanted, m.demand = true, true
		m.notBefore, m.failures, m.leaving.err = 0, 0, nil
		m.status.Err = nil
	case eventLeave:
		m.wanted, m.demand = false, false
		m.notBefore = 0
		if m.hold != nil {
			m.hold.releaseTries = 0
		}
	case eventDemand:
		m.demand = true
		if m.hold == nil && m.seen.forbidden {
			// Another process may have changed what caused a refusal.
			m.notBefore = min(m.notBefore, m.mono+forbiddenRetry)
		}
	case eventHint:
		m.seen.hinted = true
		if m.hold == nil || m.freezing.frozen {
			m.notBefore = 0
		}
	case eventWentBack:
		m.handleWentBack(e)
	case eventSealed:
		if m.hold != nil && m.hold.phase == holdSealing {
			m.hold.phase = holdSealed
		}
	case eventAnswered:
		m.handleAnswer(e)
	}
	m.advance()
	m.reportStatus()
	m.setTimer()
	return m.out
}

func (m *machine) emit(a action) { m.out = append(m.out, a) }

func (m *machine) alarm(a raisedAlarm) { m.emit(action{Kind: actionAlarm, Alarm: a}) }

// request starts an operation.
func (m *machine) request(op operation, a action) {
	m.pending = op
	m.emit(a)
}

// window and maxAhead return settings of the sequencer in ms, and floor its
// floor, or never.
func (m *machine) window() int64   { return m.seen.info.Config.Window.Milliseconds() }
func (m *machine) maxAhead() int64 { return m.seen.info.Config.MaxAhead.Milliseconds() }
func (m *machine) floor() int64    { return ms(m.seen.info.laterFloor()) }

// fail records that a request failed, or found nothing, and when to continue.
func (m *machine) fail(err error, wait int64) {
	if m.freezing.frozen && !errors.Is(err, ErrStoreWentBack) {
		err = errors.Join(m.freezing.reason, err)
	}
	m.failures++
	m.notBefore = m.mono + max(wait, m.backoff())
	if m.renewal.failed && m.seen.rereadAt > m.mono {
		m.notBefore = min(m.notBefore, m.seen.rereadAt)
	}
	m.status.Err = err
}

// backoff returns a random wait that grows with consecutive failures.
func (m *machine) backoff() int64 {
	d := minBackoff << min(m.failures, 12)
	limit := maxBackoff
	if h := m.hold; h != nil && m.wanted && h.phase < holdSealed {
		// A member with much of its window left waits longer, so that a large
		// fleet does not return all at once when a store recovers. It still
		// learns of a fence in time.
		limit = max(limit, min((h.until-max(m.wall, m.used))/8, configEvery*3/4))
	}
	d = min(d, limit)
	if w := m.window(); w > 0 {
		d = min(d, w/6)
	}
	return d/2 + int64(m.settings.random()%uint64(d/2+1))
}

// advance starts the next operation, unless a request is in progress.
func (m *machine) advance() {
	if m.pending != opNone {
		return
	}
	h := m.hold
	if h != nil && m.cannotGrow() {
		h.lost = true
	}
	if h != nil && !h.lost && m.tooEarly(h.from) {
		h.close()
	}
	switch {
	case h != nil && h.phase == holdSealing:
		// eventSealed comes next.
	case m.mustSeal(), m.freezing.frozen && h != nil && h.phase == holdSealed:
		m.leave() // neither a claim nor a wait after a failure may delay the end of its use
	case m.mono < m.notBefore:
	case m.claim != nil && h != nil && m.configDue():
		m.rereadConfig() // otherwise a claim that is never settled would hide a fence
	case m.claim != nil:
		m.resumeClaim()
	case m.freezing.frozen && m.wanted:
		m.lookForFence()
	default:
		switch m.phase() {
		case Joining, Losing:
			// A caller may be waiting for the configuration to change.
			m.seen.hinted = false
			if err := CheckName(m.settings.name); err != nil {
				m.failForbidden(err)
				return
			}
			m.request(opConfig, action{Kind: actionGet, Key: configKey(m.settings.name)})
		case Holding:
			m.renewOrReread()
		case Leaving:
			m.leave()
		}
	}
}

// phase returns what the member is doing. Its parts have phases of their own: a
// hold that was lost may end while a claim for another node ID is settled.
func (m *machine) phase() Phase {
	switch h := m.hold; {
	case h == nil && m.wanted:
		return Joining
	case h == nil && m.claim == nil:
		return Idle
	case h == nil || !m.wanted || h.phase != holdOpen:
		return Leaving
	case h.lost:
		return Losing
	default:
		return Holding
	}
}

// handleAnswer continues after an answer of the store. A method handleX, in the
// file of the phase that made the request, handles the answer to opX.
func (m *machine) handleAnswer(e event) {
	op := m.pending
	m.pending = opNone
	switch op {
	case opProbe:
		m.renewal.failed = true // unless the renewal that follows is applied
	case opRenew, opRenewCheck:
		m.renewal.failed = e.Err != nil
	case opReread:
		m.renewal.failed = false
	}
	switch op {
	case opConfig:
		m.handleRead(e, m.handleConfig)
	case opTime:
		m.handleTime(e)
	case opPick:
		m.handleRead(e, m.handlePick)
	case opList:
		m.handleRead(e, m.handleList)
	case opClaim:
		m.handleClaim(e)
	case opClaimCheck:
		m.handleClaimCheck(e)
	case opClaimConfirm:
		m.handleClaimConfirm(e)
	case opClaimDrop:
		m.handleClaimDrop(e)
	case opProbe:
		m.handleRead(e, m.handleProbe)
	case opRenew:
		m.handleRenew(e)
	case opRenewCheck:
		m.handleRead(e, m.handleRenewCheck)
	case opReread:
		m.handleReread(e)
	case opThaw:
		m.handleRead(e, m.handleThaw)
	case opRelease:
		m.handleRelease(e)
	case opReleaseCheck:
		m.handleRead(e, m.handleReleaseCheck)
	}
}

// handleRead passes what was read on to next. If nothing was, advance repeats
// the request, or another takes its place.
func (m *machine) handleRead(e event, next func(event)) {
	if e.Err != nil {
		m.fail(e.Err, 0)
	} else {
		next(e)
	}
}

// succeeded records that the store answered as expected.
func (m *machine) succeeded() {
	m.failures, m.notBefore, m.demand, m.seen.forbidden = 0, 0, false, false
	m.search.crowded, m.search.refusals, m.search.droughts, m.search.listAfter = false, 0, 0, 0
	m.status.Err = nil
}

// reportStatus emits the status if it has changed.
func (m *machine) reportStatus() {
	s := Status{Phase: m.phase(), Err: m.status.Err}
	switch h := m.hold; {
	case h != nil:
		if h.waiting && s.Err == nil {
			s.Err = m.setBackError()
		}
		s.Node, s.Until = h.node, timeOf(h.until)
	case s.Phase == Leaving:
		s.Node, s.Until = m.claim.node, timeOf(m.claim.until)
	case s.Phase == Idle:
		s.Err = m.leaving.err
	}
	if s.Phase == Holding || s.Phase == Losing {
		s.Owner = m.owner
	}
	now, before := s, m.status
	now.Err, before.Err = nil, nil // errors of stores may not be comparable
	if now != before || !sameError(s.Err, m.reported) {
		m.reported = s.Err
		m.emit(action{Kind: actionReport, Status: s, GaveBack: m.leaving.gaveBack})
	}
	m.status = s
}

// sameError reports whether two errors, or their absence, read the same.
func sameError(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// setTimer requests the next eventTick.
func (m *machine) setTimer() {
	at := int64(math.MaxInt64)
	switch h := m.hold; {
	case m.pending != opNone: // the answer comes next
	case m.mono < m.notBefore:
		at = m.notBefore
	case h != nil && h.phase != holdSealing && !h.lost && m.wanted:
		at = m.nextLook()
	}
	if at < math.MaxInt64 {
		m.emit(action{Kind: actionTimer, At: at})
	}
}
