package grant

import (
	"cmp"
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
	options Member
	owner   string

	// The times of the current event.
	wall, mono, used int64
	out              []action

	started            bool  // there was an event before
	lastWall, lastMono int64 // at that event

	wanted bool // a node ID is: the last event of the two was eventJoin, not eventLeave
	demand bool // a caller waits for an ID

	// The sequencer, as last read.
	sequencer               Info
	config                  []byte // its bytes
	lowestNode, highestNode uint64 // the node IDs that the member may take
	refused                 bool   // it forbids acquiring
	wantConfig              bool   // it may have changed
	configAt                int64  // Mono when to read it again while a window is open
	seenFloor               int64  // the greatest floor of a fence ever read, or never
	seenInc                 uint64 // the greatest incarnation ever read

	pending   operation // the request in progress
	failures  int       // consecutive failed requests
	notBefore int64     // Mono before which no request is made

	claim *claim // a node ID that is being acquired
	search
	clocks clocks

	hold        *hold // the node ID in use
	probed      bool  // the clock was compared before a large renewal
	renewFailed bool  // the last renewal failed; the configuration is read before the next
	gaveBack    bool  // the last node ID was given back
	kept        error // why it was not, if no other was wanted

	frozen    bool  // the store was found to have gone back
	frozenAt  int64 // the clock at that moment
	frozenFor error // why

	status   Status
	reported error // the error of the last report
}

// A search is what a member remembers while it looks for a free node ID.
type search struct {
	prefer    int64 // the node ID held before, or -1
	rounds    int   // rounds of picking without a candidate
	droughts  int   // consecutive lists of all records that found none free
	listAfter int64 // Mono of the next list after these
	listFree  int64 // when the first would be free, by the last one; never if unknown
	refusals  int   // refused claims since a node ID was last acquired
	crowded   bool  // a claim was refused since then: others want the same
}

// An operation is the purpose of the request in progress.
type operation uint8

const (
	opNone         operation = iota
	opConfig                 // read the configuration before picking a node ID
	opTime                   // ask the store for its time
	opPick                   // read some records
	opList                   // read all records
	opAcquire                // write a claim
	opAcquireCheck           // read the record: the result of a write is unknown
	opRecheck                // read the claim and the configuration after an acquire
	opDrop                   // give back an unused claim
	opProbe                  // read other records before a large renewal
	opRenew                  // renew the window
	opRenewCheck             // read the record and the configuration: unknown or refused
	opWatch                  // read the configuration while holding
	opRelease                // give back
	opReleaseCheck           // read the record and the configuration: unknown or refused
	opThaw                   // read the configuration, and the record in use, while frozen
)

// A nodeGrant is a node ID with its window, and with what every write of its
// record carries on.
type nodeGrant struct {
	node    uint64
	key     string
	from    int64    // where the grant begins
	until   int64    // exclusive end of what may be used
	limit   int64    // no window of this node ID ends beyond
	over    recordID // that the claim replaced; of the record, like the spans
	gap     span
	spoiled span
}

// carried returns a record with what every write carries on.
func (g *nodeGrant) carried() nodeRecord {
	return nodeRecord{From: optionalTime{g.from, true}, Over: g.over, Gap: g.gap, Spoiled: g.spoiled}
}

// A hold is a node ID in use.
type hold struct {
	nodeGrant
	untilAt int64 // Mono when until would be, by the clock at the last acquire or renewal
	renewed int64 // used, when the last renewal was requested
	margin  int64 // renew when less than this is left

	record   []byte   // as the last applied write of this member left it
	old      [][]byte // records before record, newest last, to detect a store that went back
	attempts [][]byte // renewals since record with an unknown result
	seen     []byte   // the attempt that a read has shown; another write must confirm it
	seenTo   int64    // and its until

	next     []byte // the record that the write in progress would store
	nextTo   int64  // and its until
	nextUsed int64  // and what was used when it was requested
	release  int    // attempts to release it so far

	phase   holdPhase
	waiting bool // nothing of it may be used yet: see use
	lost    bool // the record is no longer ours; the rest of the window may be used
}

// A holdPhase is how far the end of a hold has come. It never goes back.
type holdPhase uint8

const (
	holdOpen    holdPhase = iota // it is used, and renewed unless it is lost
	holdClosing                  // to be sealed at once, because nothing more may be used
	holdSealing                  // actionSeal was requested, eventSealed has not come
	holdSealed                   // nothing more is used; it is given back unless it is lost
)

// close ends the use of a hold.
func (h *hold) close() { h.phase = max(h.phase, holdClosing) }

// A claim is a node ID that is being acquired.
type claim struct {
	nodeGrant
	old, next []byte // of the write in progress, or of the last one

	config   []byte   // of the sequencer, when the node ID was picked
	base     []byte   // the record when the node ID was picked
	attempts [][]byte // writes with an unknown result
	phase    claimPhase
}

// A claimPhase is what is known of the record that a claim writes.
type claimPhase uint8

const (
	claimSent    claimPhase = iota // it is next, or it is not known
	claimAgain                     // it is old, as a read has shown: write again
	claimApplied                   // it is next
)

// newMachine returns the machine of a member that holds nothing.
func newMachine(s Member) *machine {
	s.Host = cut(s.Host, 64)
	m := &machine{options: s, search: search{prefer: -1}, used: never, seenFloor: never}
	m.owner = m.token()
	return m
}

// cut truncates s to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// token returns a random text of 128 bits.
func (m *machine) token() string {
	return fmt.Sprintf("%016x%016x", m.options.random(), m.options.random())
}

// Info returns the sequencer as it was last read. ok is false if it was not
// read yet.
func (m *machine) Info() (info Info, ok bool) {
	return m.sequencer, m.config != nil
}

const (
	picks        = 8 // records read to choose one; each round without a candidate reads pickGrowth times as many
	pickGrowth   = 4
	pickRounds   = 3
	behindMost   = int64(10 * 1000) // ms that a clock may be behind the median of others
	aheadMost    = int64(10 * 1000) // ms that a clock may be ahead of the store's, or of others, for a claim
	jumpMost     = int64(10 * 1000) // ms that a clock may jump ahead before an alarm
	backoffMin   = int64(50)        // ms after the first failure
	backoffMax   = int64(5 * 1000)  // ms after many failures
	listEvery    = int64(2 * 1000)  // ms between lists of all records that found none free
	configEvery  = int64(20 * 1000) // ms, the longest time between two reads of the configuration while a window is open
	attemptsKept = 64               // writes with an unknown result that are remembered
	oldKept      = 16               // records that are remembered to detect a store that went back
	refusedFor   = int64(100)       // ms after which a Demand checks again whether acquiring is still forbidden
	releaseTry   = 20               // attempts to release a node ID
	checkTry     = 3                // failures in a row after which a record is read without the configuration
	refusalsMost = 16               // consecutive refused claims without a wait
	maxMark      = maxTime          // no mark lies beyond
)

// step passes an event to the machine and returns the actions to perform.
func (m *machine) step(e event) []action {
	m.out = nil
	m.wall, m.mono = min(max(e.Wall, -maxMark), maxMark), e.Mono
	m.used = max(m.used, min(e.Used, maxMark))
	if m.started {
		by := (m.wall - m.lastWall) - (m.mono - m.lastMono)
		if by > jumpMost {
			m.alarm(warning{Kind: alarmClockJumped, By: time.Duration(by) * time.Millisecond})
		}
		if by > stepMost || by < -stepMost {
			m.clocks.reset()
		}
	}
	m.started, m.lastWall, m.lastMono = true, m.wall, m.mono

	switch e.Kind {
	case eventJoin:
		m.wanted, m.demand = true, true
		m.notBefore, m.failures, m.kept = 0, 0, nil
		m.status.Err = nil
	case eventLeave:
		m.wanted, m.demand = false, false
		m.notBefore = 0
		if m.hold != nil {
			m.hold.release = 0
		}
	case eventDemand:
		m.demand = true
		if m.hold == nil && m.refused {
			// Another process may have changed what caused a refusal.
			m.notBefore = min(m.notBefore, m.mono+refusedFor)
		}
	case eventHint:
		m.wantConfig = true
		if m.hold == nil || m.frozen {
			m.notBefore = 0
		}
	case eventWentBack:
		m.wentBack(e)
	case eventSealed:
		if m.hold != nil && m.hold.phase == holdSealing {
			m.hold.phase = holdSealed
		}
	case eventAnswered:
		m.answer(e)
	}
	m.advance()
	m.report()
	m.timer()
	return m.out
}

func (m *machine) do(a action) { m.out = append(m.out, a) }

func (m *machine) alarm(a warning) { m.do(action{Kind: actionAlarm, Alarm: a}) }

// request starts an operation.
func (m *machine) request(op operation, a action) {
	m.pending = op
	m.do(a)
}

// window and maxAhead return settings of the sequencer in ms, and floor its
// floor, or never.
func (m *machine) window() int64   { return m.sequencer.Config.Window.Milliseconds() }
func (m *machine) maxAhead() int64 { return m.sequencer.Config.MaxAhead.Milliseconds() }
func (m *machine) floor() int64    { return ms(m.sequencer.floor()) }

// fail records that a request failed, or found nothing, and when to continue.
func (m *machine) fail(err error, wait int64) {
	if m.frozen && !errors.Is(err, ErrRolledBack) {
		err = errors.Join(m.frozenFor, err)
	}
	m.failures++
	m.notBefore = m.mono + max(wait, m.backoff())
	if m.renewFailed && m.configAt > m.mono {
		m.notBefore = min(m.notBefore, m.configAt)
	}
	m.status.Err = err
}

// backoff returns a random wait that grows with consecutive failures.
func (m *machine) backoff() int64 {
	d := backoffMin << min(m.failures, 12)
	most := backoffMax
	if h := m.hold; h != nil && m.wanted && h.phase < holdSealed {
		// A member with much of its window left waits longer, so that a large
		// fleet does not return all at once when a store recovers. It still
		// learns of a fence in time.
		most = max(most, min((h.until-max(m.wall, m.used))/8, configEvery*3/4))
	}
	d = min(d, most)
	if w := m.window(); w > 0 {
		d = min(d, w/6)
	}
	return d/2 + int64(m.options.random()%uint64(d/2+1))
}

// advance starts the next operation, unless a request is in progress.
func (m *machine) advance() {
	if m.pending != opNone {
		return
	}
	h := m.hold
	if h != nil && m.ends() {
		h.lost = true
	}
	if h != nil && !h.lost && m.early(h.from) {
		h.close()
	}
	switch {
	case h != nil && h.phase == holdSealing:
		// eventSealed comes next.
	case m.mustSeal():
		m.leave() // neither a claim nor a wait after a failure may delay the end of its use
	case m.frozen && h != nil && h.phase == holdSealed:
		m.leave()
	case m.mono < m.notBefore:
	case m.claim != nil && h != nil && m.configDue():
		m.watchConfig() // otherwise a claim that is never settled would hide a fence
	case m.claim != nil:
		m.settleClaim()
	case m.frozen && m.wanted && m.usesFrozen():
		m.request(opThaw, action{Kind: actionGetMany, Keys: []string{h.key, configKey(m.options.name)}})
	case m.frozen && m.wanted:
		m.request(opThaw, action{Kind: actionGet, Key: configKey(m.options.name)})
	case h != nil && (!m.wanted || h.phase != holdOpen):
		m.leave()
	case !m.wanted:
	case h == nil || h.lost:
		// A caller may be waiting for the configuration to change.
		m.wantConfig = false
		m.request(opConfig, action{Kind: actionGet, Key: configKey(m.options.name)})
	case m.wantConfig:
		m.watchConfig()
	case m.due() && !(m.renewFailed && m.configDue()):
		m.renew()
	case m.configDue():
		// A fence may have happened while it did not know this member's window.
		// So neither the length of the window nor failed renewals matter here.
		m.watchConfig()
	}
}

// configDue reports whether to read the configuration again.
func (m *machine) configDue() bool { return m.open() && m.mono >= m.configAt }

// watchConfig reads the configuration while a node ID is held.
func (m *machine) watchConfig() {
	m.wantConfig = false
	m.request(opWatch, action{Kind: actionGet, Key: configKey(m.options.name)})
}

// mustSeal reports whether nothing more may be used and the generator is not
// sealed yet.
func (m *machine) mustSeal() bool { return m.hold != nil && m.hold.phase == holdClosing }

// answer continues after an answer of the store.
func (m *machine) answer(e event) {
	op := m.pending
	m.pending = opNone
	var value, second []byte
	if len(e.Values) > 0 && len(e.Values[0]) > 0 {
		value = e.Values[0]
	}
	if len(e.Values) > 1 {
		second = e.Values[1]
	}
	switch op {
	case opConfig:
		if e.Err != nil {
			m.fail(e.Err, 0)
		} else if m.readConfig(value) && !m.mustSeal() {
			m.rounds = 0
			m.pick()
		}
	case opTime:
		m.timed(e)
	case opPick:
		m.picked(e)
	case opList:
		m.listed(e)
	case opAcquire, opAcquireCheck:
		m.acquired(op, e, value)
	case opRecheck:
		m.rechecked(e)
	case opDrop:
		// Whether it was given back or not, none of it was used.
		m.claim, m.gaveBack = nil, e.Err == nil && e.Applied
		if !m.wanted {
			m.kept = e.Err
		}
	case opProbe:
		m.renewFailed = true // unless the renewal that follows is applied
		m.probe(e)
	case opRenew, opRenewCheck:
		m.renewFailed = e.Err != nil
		m.renewed(op, e, value, second)
	case opWatch:
		if m.renewFailed = false; e.Err != nil {
			m.configAt = m.mono
			if m.fail(e.Err, 0); m.claim != nil {
				m.configAt = m.notBefore + 1 // tries to settle the claim in between
			}
		} else if m.readConfig(value) {
			if !m.overdue() {
				m.status.Err = nil // the error was about reading this
			}
		} else if errors.Is(m.status.Err, ErrDetached) || errors.Is(m.status.Err, ErrDestroyed) {
			m.hold.close() // so that leave gives it back at once
			m.notBefore = 0
		}
	case opThaw:
		if len(e.Values) == 1 {
			value, second = nil, value
		}
		m.thaw(e, value, second)
	case opRelease, opReleaseCheck:
		m.released(op, e, value, second)
	}
}

// readConfig evaluates the configuration. It reports whether node IDs may be
// acquired. If not, it has recorded the reason and when to look again.
func (m *machine) readConfig(value []byte) bool {
	r, err := decodeConfig(configKey(m.options.name), value)
	floor := ms(r.fence)
	switch {
	case value == nil && m.config == nil:
		err = fmt.Errorf("%w: %s", ErrNotFound, m.options.name)
	case value == nil, err == nil && (floor < m.seenFloor || r.Incarnation < m.seenInc && floor <= m.seenFloor):
		m.freeze()
		return false
	case err == nil:
		m.configAt = m.mono + configEvery*9/10 - int64(m.options.random()%uint64(configEvery/5))
		if m.hold != nil && floor > m.seenFloor {
			m.fenced(floor)
		}
		m.seenFloor, m.seenInc = floor, max(m.seenInc, r.Incarnation)
		err = m.takeConfig(r, value)
	}
	if err != nil {
		m.refuse(err)
	}
	return err == nil
}

// takeConfig takes over a configuration if it is of the member's sequencer. It
// returns why no node ID can be acquired, or nil.
func (m *machine) takeConfig(r Info, value []byte) error {
	c := r.Config
	if m.options.config != nil {
		want := *m.options.config
		want.Window, want.Prefix = c.Window, "" // see SetWindow; the prefix is not the machine's
		if err := c.compare(m.options.name, want); err != nil {
			return err
		}
	}
	if m.config != nil && !m.sequencer.Config.Layout.SameIDs(c.Layout) {
		return &MismatchError{Sequencer: m.options.name, Field: "layout", Have: c.Layout.String(), Want: m.sequencer.Config.Layout.String()}
	}
	m.sequencer, m.config = r, value
	if err := m.options.Nodes.Check(c.Layout); err != nil {
		return err
	}
	mine := *cmp.Or(m.options.Nodes, &Range{0, c.Layout.MaxNode()})
	m.lowestNode, m.highestNode = mine.Lo, mine.Hi
	if n := c.Nodes; n != nil {
		if max(mine.Lo, n.Lo) > min(mine.Hi, n.Hi) {
			return fmt.Errorf("%w: sequencer %s only has %v in this store, and this member may take %d..%d", ErrNodesExhausted, m.options.name, n, mine.Lo, mine.Hi)
		}
		m.lowestNode, m.highestNode = max(mine.Lo, n.Lo), min(mine.Hi, n.Hi)
	}
	if r.MovedTo != "" {
		return movedError(m.options.name, r.MovedTo)
	}
	if err := r.State.err(); err != nil {
		return fmt.Errorf("%w: %s is %v", err, m.options.name, r.State)
	}
	return nil
}

// refuse records why no node ID can be acquired until the configuration
// changes.
func (m *machine) refuse(err error) {
	m.demand, m.refused = false, true
	m.fail(err, min(max(m.window()/3, 1000), 5000))
	if m.wantConfig && m.hold == nil {
		m.notBefore = 0 // a hint came after it was requested
	}
}

// report returns a new status as an action.
func (m *machine) report() {
	s := Status{Err: m.status.Err}
	switch h := m.hold; {
	case h == nil && m.wanted:
		s.Phase = Joining
	case h == nil && m.claim != nil:
		s.Phase, s.Node, s.Until = Leaving, m.claim.node, timeOf(m.claim.until)
	case h == nil:
		s = Status{Phase: Idle, Err: m.kept}
	default:
		if h.waiting && s.Err == nil {
			s.Err = m.setBack()
		}
		s.Node, s.Until = h.node, timeOf(h.until)
		switch {
		case !m.wanted || h.phase != holdOpen:
			s.Phase = Leaving
		case h.lost:
			s.Phase, s.Owner = Losing, m.owner
		default:
			s.Phase, s.Owner = Holding, m.owner
		}
	}
	if s.Phase != m.status.Phase || s.Node != m.status.Node || !s.Until.Equal(m.status.Until) || s.Owner != m.status.Owner || !sameError(s.Err, m.reported) {
		m.reported = s.Err
		m.do(action{Kind: actionReport, Status: s})
	}
	m.status = s
}

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}

// timer requests the next eventTick.
func (m *machine) timer() {
	if m.pending != opNone {
		return // the answer comes next
	}
	at := int64(math.MaxInt64)
	switch h := m.hold; {
	case m.mono < m.notBefore:
		at = m.notBefore
	case h == nil || h.phase == holdSealing || h.lost || !m.wanted:
		return
	default:
		if left := h.until - max(m.wall, m.used); left > 0 {
			at = m.mono + left - h.margin
			if left <= h.margin {
				at = m.mono + max(m.window()/12, 1) // the machine learns whether IDs are made only by looking
			}
		}
		if m.open() {
			at = min(at, max(m.configAt, m.mono+1))
		}
		if m.demand {
			// The mark may not move further ahead of the clock until the clock
			// has moved.
			at = min(at, m.mono+max(m.leastGrowth()-m.growth(), 1))
		}
		if at == math.MaxInt64 {
			return // the window has lapsed; a Demand wakes the machine
		}
	}
	m.do(action{Kind: actionTimer, At: at})
}
