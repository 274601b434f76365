package grant

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/firnid/firn/internal/mutant"
)

// Settings are what a member brings to a sequencer. They are its own affair and
// not compared with those of others.
type Settings struct {
	Name string

	// Config is what the sequencer must have been created with; nil takes it as
	// it is.
	Config *Config

	// Lo and Hi are the node numbers that the member may take, both inclusive:
	// those of one of two clusters that share a database, for instance. Where
	// both are one number, it is a pinned one. A Hi beyond the layout's greatest
	// number is an error when the member attaches.
	Lo, Hi uint64

	// AllNodes says that the member may take any number of the layout.
	AllNodes bool

	// AllowClockBehind attaches even where the clock is far behind those of
	// other members.
	AllowClockBehind bool

	// Host is written into the records for people to read; it is cut to 64 bytes.
	Host string

	// Random gives random numbers that no two members share, for choosing, and
	// for owners and nonces.
	Random func() uint64
}

// Machine is the protocol of one member of one sequencer as a pure state
// machine: events go in, actions come out. It has no clock, does no I/O and
// starts no goroutine. A Keeper drives it; the simulator of package sim drives
// the very same code. It is not safe for concurrent use.
//
// At most one request to the store is under way: after an action that is a
// request, the driver gives an event Answered, and until then all other events
// may come in. Times are in Unix milliseconds by the member's own clock, or
// milliseconds of a clock that never goes back (Mono).
//
// docs/protocol.md says what it does, and why IDs stay unique.
type Machine struct {
	set Settings

	// What this moment's event said.
	wall, mono, used int64
	out              []Action

	owner     string
	attached  bool // Attach is wanted
	demand    bool // somebody waits for an ID
	isRefused bool // the configuration forbids to acquire
	sequencer configRecord
	config    []byte // the bytes of sequencer, as read
	seenFloor int64  // the greatest floor ever read
	seenInc   uint64 // the greatest incarnation ever read
	lo, hi    uint64

	op    operation // the request under way
	hold  *hold     // the number that is used now
	claim *claim    // a number that is about to be

	wantConfig bool  // the configuration may have changed
	frozen     int64 // the wall clock when the store was found to have gone back, or 0
	floorMark  int64 // what the generator had used when it was sealed
	prefer     int64 // the node number held before, or -1
	rounds     int   // of picking, without a candidate
	droughts   int   // lists of all records, in a row, that found none free
	listAfter  int64 // Mono: the next list after these
	listFree   int64 // when the first was to be free, by the last one
	crowded    bool  // a claim was refused since a number was last had: others want the same
	failures   int   // of requests, in a row
	notBefore  int64 // Mono: no request before this
	probed     bool  // the clock was compared before a large renewal

	lastWall, lastMono int64 // at the event before
	status             Status
	told               error // the error of the last report
}

// An operation is the request that is under way.
type operation uint8

const (
	opNone         operation = iota
	opConfig                 // read the configuration before picking a number
	opPick                   // read some records
	opList                   // read all records
	opAcquire                // write a claim
	opAcquireCheck           // read it back, the result being unknown
	opRecheck                // read the configuration after an acquire
	opDrop                   // give an unused claim back
	opProbe                  // read other records before a large renewal
	opRenew                  // renew
	opRenewCheck             // read back: unknown or refused
	opWatch                  // read the configuration while holding
	opRelease                // give back
	opReleaseCheck           // read back: unknown or refused
	opThaw                   // read the configuration while frozen
)

// hold is a number in use.
type hold struct {
	node     uint64
	key      string
	record   []byte   // as it is in the store, as far as is known
	from     int64    // where the grant began
	until    int64    // exclusive end of what may be used
	attempts [][]byte // renewals since record whose result was unknown
	old      [][]byte // records before record, newest last, to see a store go back
	renewed  int64    // used, at the last renewal
	margin   int64    // renew when less than this is left
	lost     bool     // the record is no longer ours; what is left may be used
	closing  bool     // the record says closing
	sealing  bool     // Seal was asked for, Sealed has not come
	sealed   bool     // nothing more is used
	next     []byte   // what the write under way would put in the record
	nextTo   int64    // and its until
	release  int      // tries of the release so far
}

// claim is a number on its way to be held.
type claim struct {
	node        uint64
	key         string
	old, next   []byte
	from, until int64
}

// An EventKind says what happened.
type EventKind uint8

// The kinds of events.
const (
	Tick     EventKind = iota // the time of an action Timer has come, or simply time has passed
	Attach                    // a node number is wanted
	Release                   // it is wanted no more
	Demand                    // somebody waits for an ID that the window does not allow
	Hint                      // the configuration may have changed
	Answered                  // the store answered the last request
	Sealed                    // the action Seal was done; Used is final
	WentBack                  // the store is known to have gone back (see Lineage)
)

// An Event is something that happened to a member. Wall, Mono and Used are
// those of the moment at which the driver passes the event on.
type Event struct {
	Kind EventKind
	Wall int64 // the member's clock
	Mono int64 // a clock that never goes back
	Used int64 // exclusive end of what the generator has used in its life; 0 if nothing

	// Of Answered.
	Err     error    // the request failed; of a CAS: unknown unless ErrNotSent
	Applied bool     // of CAS
	Values  [][]byte // of Get (one), GetMany (one for each key) and List
	Keys    []string // of List: the keys of Values
}

// An ActionKind says what the driver has to do.
type ActionKind uint8

// The kinds of actions.
const (
	Get     ActionKind = iota + 1 // Key
	GetMany                       // Keys
	List                          // Key is the prefix
	CAS                           // Key, Old, Next
	Begin                         // use Node for [From, Until), in place of what was used before
	Extend                        // the window ends at Until now
	Seal                          // stop making IDs; then pass Sealed
	Timer                         // pass Tick at Mono At; it replaces the timer before
	Report                        // Status has changed
	Alarm                         // Alarm is to be told to people
)

// An Action is something that the driver has to do, in the order given.
type Action struct {
	Kind        ActionKind
	Key         string
	Keys        []string
	Old, Next   []byte
	Node        uint64
	From, Until int64
	At          int64
	Status      Status
	Alarm       AlarmInfo
}

// IsRequest reports whether the action is a request to the store.
func (a Action) IsRequest() bool { return a.Kind >= Get && a.Kind <= CAS }

// A Phase says what a member has of a sequencer.
type Phase uint8

// The phases of a member.
const (
	Idle    Phase = iota // no node number is wanted or held
	Joining              // one is wanted, none held
	Holding              // one is held
	Losing               // what is left of a window is used, and another number wanted
	Leaving              // the number is being given back
)

var phaseNames = [...]string{"idle", "joining", "holding", "losing", "leaving"}

// String is the phase as a word.
func (p Phase) String() string {
	if int(p) >= len(phaseNames) {
		return fmt.Sprintf("Phase(%d)", uint8(p))
	}
	return phaseNames[p]
}

// A Status is what a member has of a sequencer at a moment.
type Status struct {
	Phase Phase
	Node  uint64 // of Holding, Losing and Leaving
	Until int64  // exclusive end of its window
	Err   error  // why no number could be had or renewed just now; nil if nothing is amiss
}

// An AlarmKind says what people should know.
type AlarmKind uint8

// The kinds of alarms.
const (
	Cloned      AlarmKind = iota + 1 // another process goes on with this one's memory: IDs of Node in [From, Until) may exist twice
	RolledBack                       // the store went back to an earlier state
	ClockJumped                      // the clock went ahead by By, against a clock that never goes back
	TakenOver                        // the node number has another owner, as its window was over by that one's clock
)

// An AlarmInfo is what an alarm says.
type AlarmInfo struct {
	Kind        AlarmKind
	Node        uint64
	From, Until int64
	By          time.Duration
}

// NewMachine makes the machine of a member that holds nothing.
func NewMachine(s Settings) *Machine {
	s.Host = cut(s.Host, 64)
	m := &Machine{set: s, prefer: -1}
	m.owner = m.token()
	return m
}

// cut cuts s to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// token is a random text of 128 bits.
func (m *Machine) token() string { return fmt.Sprintf("%016x%016x", m.set.Random(), m.set.Random()) }

// Status is what the member has now.
func (m *Machine) Status() Status { return m.status }

// Info is the sequencer as it was read last; ok is false before the first time.
func (m *Machine) Info() (info Info, ok bool) {
	if m.config == nil {
		return Info{}, false
	}
	return m.sequencer.info(m.set.Name), true
}

const (
	picks        = 8 // records read to choose one, and pickGrowth times as many in each round that finds none
	pickGrowth   = 4
	pickRounds   = 3
	behindMost   = int64(10 * 1000) // ms a clock may be behind the median of others
	jumpMost     = int64(10 * 1000) // ms a clock may go ahead by itself before it is told
	backoffMin   = int64(50)        // ms after the first failure
	backoffMax   = int64(5 * 1000)  // ms after many
	listEvery    = int64(2 * 1000)  // ms between lists of all records that found none free
	attemptsKept = 64               // renewals of unknown result remembered
	oldKept      = 16               // records remembered to see a store go back
	refusedFor   = int64(100)       // ms until a Demand looks again whether it is still forbidden
	releaseTry   = 20               // tries of a release
	maxMark      = maxTime          // no mark lies beyond
)

// Step tells the machine what happened, and returns what is to be done now.
func (m *Machine) Step(e Event) []Action {
	m.out = nil
	m.wall, m.mono = min(max(e.Wall, -maxMark), maxMark), e.Mono
	m.used = max(m.used, min(e.Used, maxMark))
	if m.lastMono != 0 || m.lastWall != 0 {
		if by := (m.wall - m.lastWall) - (m.mono - m.lastMono); by > jumpMost {
			m.alarm(AlarmInfo{Kind: ClockJumped, By: time.Duration(by) * time.Millisecond})
		}
	}
	m.lastWall, m.lastMono = m.wall, m.mono

	switch e.Kind {
	case Attach:
		m.attached, m.demand = true, true
		m.notBefore, m.failures = 0, 0
		m.status.Err = nil
	case Release:
		m.attached, m.demand = false, false
		m.notBefore = 0
		if m.hold != nil {
			m.hold.release = 0
		}
	case Demand:
		m.demand = true
		if m.hold == nil && m.isRefused {
			// Whatever was refused may have been changed by somebody.
			m.notBefore = min(m.notBefore, m.mono+refusedFor)
		}
	case Hint:
		m.wantConfig = true
		if m.hold == nil && m.frozen == 0 {
			m.notBefore = 0
		}
	case WentBack:
		m.freeze()
	case Sealed:
		if m.hold != nil && m.hold.sealing {
			m.hold.sealing, m.hold.sealed = false, true
			m.floorMark = max(m.floorMark, e.Used)
		}
	case Answered:
		m.answer(e)
	}
	m.advance()
	m.report()
	m.timer()
	return m.out
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

func (m *Machine) alarm(i AlarmInfo) { m.do(Action{Kind: Alarm, Alarm: i}) }

// request starts an operation.
func (m *Machine) request(op operation, a Action) {
	m.op = op
	m.do(a)
}

// window is the length of a window in ms.
func (m *Machine) window() int64 { return m.sequencer.Window }

// fail notes that a request failed, or found nothing, and when to go on.
func (m *Machine) fail(err error, wait int64) {
	m.failures++
	m.notBefore = m.mono + max(wait, m.backoff())
	m.status.Err = err
}

// backoff grows with the failures in a row, and is never the same.
func (m *Machine) backoff() int64 {
	d := backoffMin << min(m.failures, 12)
	most := backoffMax
	if h := m.hold; h != nil && m.attached && !h.sealed {
		// Whoever has much of a window left need not hurry, and then a large fleet
		// does not come all at once when a store is back.
		most = max(most, (h.until-max(m.wall, m.used))/8)
	}
	d = min(d, most)
	if w := m.window(); w > 0 {
		d = max(1, min(d, w/6))
	}
	return d/2 + int64(m.set.Random()%uint64(d/2+1))
}

// advance starts what is to be done next, unless a request is under way.
func (m *Machine) advance() {
	if m.op != opNone {
		return
	}
	h := m.hold
	switch {
	case h != nil && h.sealing:
		return // Sealed comes next
	case m.mono < m.notBefore:
		return
	case m.claim != nil:
		// Acquired, and not used yet: its result or the configuration is still to be read.
		m.recheck()
		return
	case m.frozen != 0:
		if !m.attached && h != nil {
			m.leave()
			return
		}
		if m.attached {
			m.request(opThaw, Action{Kind: Get, Key: configKey(m.set.Name)})
		}
		return
	case h != nil && (!m.attached || h.sealed || h.closing):
		m.leave()
		return
	case !m.attached:
		return
	case h == nil || h.lost:
		// Somebody may be waiting for the configuration to change; nobody is for a lapsed number.
		m.wantConfig = false
		m.request(opConfig, Action{Kind: Get, Key: configKey(m.set.Name)})
		return
	case m.wantConfig:
		m.wantConfig = false
		m.request(opWatch, Action{Kind: Get, Key: configKey(m.set.Name)})
		return
	}
	if m.due() {
		m.renew()
	}
}

// due reports whether the window is to be renewed: less than the margin is
// left of it and it is in use, or somebody waits.
func (m *Machine) due() bool {
	h := m.hold
	left := h.until - max(m.wall, m.used)
	if m.demand {
		return left < m.window()-m.window()/12 // else a renewal gains next to nothing
	}
	return left < h.margin && m.used > h.renewed
}

// overdue reports whether the member needs a renewal, or another number in
// place of one that it lost.
func (m *Machine) overdue() bool { return m.hold != nil && (m.hold.lost || m.due()) }

// newMargin chooses when to renew: at a third of the window used, give or take
// a fifth of that.
func (m *Machine) newMargin() int64 {
	third := m.window() / 3
	fifth := third / 5
	used := third - fifth + int64(m.set.Random()%uint64(2*fifth+1))
	return m.window() - used
}

// end is the end of a window that begins now.
func (m *Machine) end(mark int64) int64 {
	return min(max(mark, max(m.wall, m.used)+m.window()), maxMark)
}

// renew writes a later end into the record.
func (m *Machine) renew() {
	h := m.hold
	until := m.end(h.until)
	if until-h.until > 2*m.window() && !m.probed {
		m.request(opProbe, Action{Kind: GetMany, Keys: m.someKeys(picks)})
		return
	}
	m.probed = false
	h.next, h.nextTo = m.node(flagHeld, until), until
	old := h.record
	if mutant.On(mutant.BlindRenewal) {
		old = []byte("*")
	}
	m.request(opRenew, Action{Kind: CAS, Key: h.key, Old: old, Next: h.next})
}

// node is a new record of the member.
func (m *Machine) node(state string, until int64) []byte {
	r := nodeRecord{
		Version: version, Nonce: m.token(), Owner: m.owner, Until: until,
		Wall: m.wall, State: state, Host: m.set.Host,
	}
	return r.encode()
}

// leave seals the generator, gives the number back and forgets it.
func (m *Machine) leave() {
	h := m.hold
	if !h.sealed {
		if mutant.On(mutant.SealLate) && !h.lost {
			h.next = m.node(flagFree, m.mark())
		}
		h.sealing = true
		m.do(Action{Kind: Seal, Node: h.node})
		return
	}
	if h.lost && !mutant.On(mutant.ReleaseForeign) || h.release >= releaseTry || m.frozen != 0 {
		m.forget()
		return
	}
	h.release++
	if !mutant.On(mutant.SealLate) || h.next == nil {
		h.next = m.node(flagFree, m.mark())
	}
	old := h.record
	if mutant.On(mutant.ReleaseForeign) {
		old = []byte("*")
	}
	m.request(opRelease, Action{Kind: CAS, Key: h.key, Old: old, Next: h.next})
}

// mark is the end of what was used, for a release: not below where the grant
// began, because what is before was another's, nor above where it ends.
func (m *Machine) mark() int64 { return min(max(m.hold.from, m.used, m.floorMark), m.hold.until) }

// forget ends the use of a number; nothing of it is ever looked at again.
func (m *Machine) forget() {
	m.prefer = int64(m.hold.node)
	m.hold = nil
	m.failures = 0
	m.advance()
}

// someKeys are the keys of up to n different numbers of the range, by chance;
// the number held before is among them, and all if there are no more than n.
func (m *Machine) someKeys(n int) []string {
	lo, size := m.lo, m.hi-m.lo // less 1, so that it always fits
	if mutant.On(mutant.RangeIgnored) {
		lo, size = 0, m.sequencer.Layout.MaxNode()
	}
	if size < uint64(n) {
		keys := make([]string, 0, size+1)
		for i := uint64(0); i <= size; i++ {
			keys = append(keys, m.key(lo+i))
		}
		return keys
	}
	nodes := make([]uint64, 0, n)
	if m.prefer >= int64(m.lo) && uint64(m.prefer) <= m.hi && m.prefer >= 0 {
		nodes = append(nodes, uint64(m.prefer))
	}
	for len(nodes) < n {
		node := m.set.Random()
		if size+1 != 0 {
			node %= size + 1
		}
		node += lo
		if !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	keys := make([]string, len(nodes))
	for i, node := range nodes {
		keys[i] = m.key(node)
	}
	return keys
}

func (m *Machine) key(node uint64) string {
	return nodeKey(m.set.Name, node, m.sequencer.Layout.MaxNode())
}

// answer goes on where the store answered.
func (m *Machine) answer(e Event) {
	op := m.op
	m.op = opNone
	value := func() []byte {
		if len(e.Values) == 0 || len(e.Values[0]) == 0 {
			return nil
		}
		return e.Values[0]
	}
	switch op {
	case opConfig:
		if e.Err != nil {
			m.fail(e.Err, 0)
		} else if m.readConfig(value()) {
			m.rounds = 0
			m.pick()
		}
	case opPick:
		m.picked(e)
	case opList:
		m.listed(e)
	case opAcquire, opAcquireCheck:
		m.acquired(op, e, value)
	case opRecheck:
		m.rechecked(e, value())
	case opDrop:
		// Whether it was given back or not, nothing of it is used.
		m.claim = nil
	case opProbe:
		m.probe(e)
	case opRenew, opRenewCheck:
		m.renewed(op, e, value)
	case opWatch:
		if e.Err != nil {
			m.wantConfig = true
			m.fail(e.Err, 0)
		} else if m.readConfig(value()) {
			if !m.overdue() {
				m.status.Err = nil // it was of reading this
			}
		} else if m.hold != nil && (errors.Is(m.status.Err, ErrDetached) || errors.Is(m.status.Err, ErrDestroyed)) {
			m.hold.closing = true // leave gives it back, at once
			m.notBefore = 0
		}
	case opThaw:
		m.thaw(e, value())
	case opRelease, opReleaseCheck:
		m.released(op, e, value)
	}
}

// readConfig takes in the configuration. It reports whether numbers may be
// acquired, and otherwise notes why not and when to look again.
func (m *Machine) readConfig(value []byte) bool {
	key := configKey(m.set.Name)
	if value == nil {
		if m.config != nil {
			m.freeze()
			return false
		}
		m.refuse(fmt.Errorf("%w: %s", ErrNotFound, m.set.Name))
		return false
	}
	r, err := decodeConfig(key, value)
	if err != nil {
		m.refuse(err)
		return false
	}
	if r.Floor < m.seenFloor || r.Incarnation < m.seenInc && r.Floor <= m.seenFloor {
		m.freeze()
		return false
	}
	m.seenFloor, m.seenInc = max(m.seenFloor, r.Floor), max(m.seenInc, r.Incarnation)
	if m.set.Config != nil {
		if err := r.config().compare(m.set.Name, *m.set.Config); err != nil {
			m.refuse(err)
			return false
		}
	}
	if m.config != nil && m.sequencer.Layout != r.Layout {
		m.refuse(&MismatchError{Sequencer: m.set.Name, Field: "layout", Have: r.Layout.String(), Want: m.sequencer.Layout.String()})
		return false
	}
	m.sequencer, m.config = r, value
	m.lo, m.hi = m.set.Lo, m.set.Hi
	if m.set.AllNodes {
		m.lo, m.hi = 0, r.Layout.MaxNode()
	}
	if m.lo > m.hi || m.hi > r.Layout.MaxNode() {
		m.refuse(fmt.Errorf("grant: sequencer %s: the node numbers %d..%d do not fit its layout, which has 0..%d", m.set.Name, m.lo, m.hi, r.Layout.MaxNode()))
		return false
	}
	if err := r.State.err(); err != nil {
		m.refuse(fmt.Errorf("%w: %s is %v", err, m.set.Name, r.State))
		return false
	}
	return true
}

// refuse notes why no number can be had, for as long as nobody changes it.
func (m *Machine) refuse(err error) {
	m.demand, m.isRefused = false, true
	m.fail(err, min(max(m.window()/3, 1000), 5000))
}

// freeze stops acquiring and renewing.
func (m *Machine) freeze() {
	if m.frozen == 0 {
		m.frozen = max(m.wall, 1)
		m.alarm(AlarmInfo{Kind: RolledBack})
	}
	m.claim = nil
	m.fail(ErrRolledBack, max(m.window()/6, 100))
}

// thaw goes on when the sequencer was fenced after the store went back.
func (m *Machine) thaw(e Event, value []byte) {
	// A fence sets a floor above all clocks, so one that was seen already, or
	// that lies ahead, tells of it.
	switch {
	case e.Err != nil:
		m.fail(errors.Join(ErrRolledBack, e.Err), 0)
		return
	case value == nil:
		m.freeze()
		return
	}
	r, err := decodeConfig(configKey(m.set.Name), value)
	if err != nil || r.Floor <= m.seenFloor && r.Floor <= m.frozen {
		m.freeze()
		return
	}
	m.frozen, m.failures, m.notBefore = 0, 0, 0
	m.seenInc = 0
	if m.hold != nil {
		m.hold.lost = true // its record was rewritten
	}
}

// pick reads some records to choose one.
func (m *Machine) pick() {
	m.request(opPick, Action{Kind: GetMany, Keys: m.someKeys(m.picks())})
}

// picks is how many records are read in this round.
func (m *Machine) picks() int {
	n := picks
	for range m.rounds {
		n *= pickGrowth
	}
	return n
}

// A candidate is a number that might be acquired.
type candidate struct {
	claim
	rank int // the lower the better
	mark int64
}

// A look is what some records say.
type look struct {
	best    []candidate // all that may be taken, best first
	ahead   []int64     // for every held record, how far its writer's clock was ahead of ours
	nodes   []uint64    // of ahead
	free    int64       // when the first window ends, of those that are held
	pending int64       // when the first number becomes usable that nobody holds
	bad     error
}

// look judges records: values belong to keys.
func (m *Machine) look(keys []string, values [][]byte) (l look) {
	maxAhead := m.sequencer.MaxAhead
	for i, key := range keys {
		node, err := nodeOf(m.set.Name, key)
		if err != nil || key != m.key(node) {
			continue // of a layout of another width, before a purge
		}
		if (node < m.lo || node > m.hi) && !mutant.On(mutant.RangeIgnored) {
			continue
		}
		if m.hold != nil && node == m.hold.node && !m.hold.lost {
			continue
		}
		var value []byte
		if i < len(values) && len(values[i]) > 0 {
			value = values[i]
		}
		c := candidate{claim: claim{node: node, key: key, old: value}}
		if value != nil {
			r, err := decodeNode(key, value)
			if err != nil {
				l.bad = err // this number is lost until somebody mends it; others are not
				continue
			}
			c.mark = r.Until
			if r.held() && r.Until >= m.wall {
				l.ahead, l.nodes = append(l.ahead, r.Wall-m.wall), append(l.nodes, node)
				if l.free == 0 || r.Until < l.free {
					l.free = r.Until
				}
				if !mutant.On(mutant.TakeoverHeld) {
					continue
				}
				c.mark = 0
			}
			c.rank = 1
			if r.held() && r.Until+m.window() >= m.wall {
				c.rank = 2 // grace: its owner may be back in a moment
			}
		}
		c.from = max(m.wall, c.mark, m.sequencer.Floor)
		if mutant.On(mutant.StartAtClock) {
			c.from = m.wall
		}
		if c.from-m.wall > maxAhead {
			if at := c.from - maxAhead; l.pending == 0 || at < l.pending {
				l.pending = at
			}
			continue
		}
		l.best = append(l.best, c)
	}
	sort.SliceStable(l.best, func(i, j int) bool {
		a, b := l.best[i], l.best[j]
		if a.rank != b.rank {
			return a.rank < b.rank
		}
		return a.mark < b.mark
	})
	return l
}

// behind is how far the clock is behind the median of the held records.
func (l look) behind() int64 {
	if len(l.ahead) == 0 {
		return 0
	}
	a := slices.Sorted(slices.Values(l.ahead))
	return a[(len(a)-1)/2]
}

// clockBehind refuses a clock that is far behind those of others.
func (m *Machine) clockBehind(l look) error {
	if by := l.behind(); by > behindMost && !m.set.AllowClockBehind {
		return &ClockBehindError{Sequencer: m.set.Name, Behind: time.Duration(by) * time.Millisecond, Nodes: l.nodes}
	}
	return nil
}

func (m *Machine) picked(e Event) {
	if e.Err != nil {
		m.fail(e.Err, 0)
		return
	}
	// The driver asked for the keys that it was given.
	l := m.look(e.Keys, e.Values)
	if err := m.clockBehind(l); err != nil {
		m.fail(err, 1000)
		return
	}
	if len(l.best) > 0 {
		m.acquire(m.choose(l.best))
		return
	}
	if all := m.hi-m.lo < uint64(m.picks()); all {
		m.rounds = 0
		m.exhausted(l)
		return
	}
	if m.rounds++; m.rounds < pickRounds {
		m.pick()
		return
	}
	if m.mono < m.listAfter && (m.listFree == 0 || m.wall <= m.listFree) {
		m.rounds = 0
		if m.listFree != 0 {
			l.free = m.listFree
		}
		m.exhausted(l)
		return
	}
	m.request(opList, Action{Kind: List, Key: nodesPrefix(m.set.Name)})
}

// choose takes the first of some candidates. Where a claim was refused, others do
// the same at this moment, and the best one is what all of them want: then it is any
// of those that are about as good.
func (m *Machine) choose(best []candidate) candidate {
	if !m.crowded {
		return best[0]
	}
	n := 1
	for n < len(best) && max(best[n].rank, 1) == max(best[0].rank, 1) {
		n++
	}
	return best[m.set.Random()%uint64(n)]
}

// listed takes one of the oldest eighth of all that may be taken, or of the oldest
// few where there are few, so that many who list at once do not all want the same.
func (m *Machine) listed(e Event) {
	m.rounds = 0
	if e.Err != nil {
		m.fail(e.Err, 0)
		return
	}
	l := m.look(e.Keys, e.Values)
	if err := m.clockBehind(l); err != nil {
		m.fail(err, 1000)
		return
	}
	if len(l.best) == 0 {
		if node, ok := m.absent(e.Keys); ok && m.sequencer.Floor-m.wall <= m.sequencer.MaxAhead {
			m.acquire(candidate{claim: claim{node: node, key: m.key(node), from: max(m.wall, m.sequencer.Floor)}})
			return
		}
		// It will be so for a while, and the records may be many: in between, a
		// number that was given back is found by chance.
		m.listAfter = m.mono + min(listEvery<<min(m.droughts, 10), max(m.window()/4, listEvery))
		m.listFree = l.free
		m.droughts++
		m.exhausted(l)
		return
	}
	oldest := max(len(l.best)/8, min(len(l.best), picks))
	m.acquire(l.best[m.set.Random()%uint64(oldest)])
}

// absent is a number of the range that has no record, by chance.
func (m *Machine) absent(keys []string) (uint64, bool) {
	known := make(map[uint64]bool, len(keys))
	for _, key := range keys {
		if node, err := nodeOf(m.set.Name, key); err == nil && key == m.key(node) {
			known[node] = true
		}
	}
	size := m.hi - m.lo
	start := m.set.Random()
	if size+1 != 0 {
		start %= size + 1
	}
	for i := uint64(0); i <= uint64(len(known)); i++ {
		offset := start + i
		if size+1 != 0 {
			offset %= size + 1
		}
		if node := m.lo + offset; !known[node] {
			return node, true
		}
		if i == size {
			break
		}
	}
	return 0, false
}

// exhausted notes that no number is free.
func (m *Machine) exhausted(l look) {
	free, ahead := l.free, l.free == 0 && l.pending != 0
	if l.pending != 0 && (free == 0 || l.pending < free) {
		free = l.pending
	}
	if l.bad != nil && free == 0 {
		m.fail(l.bad, 1000)
		return
	}
	m.fail(&ExhaustedError{Sequencer: m.set.Name, Lo: m.lo, Hi: m.hi, Free: timeOf(free), Ahead: ahead}, 0)
	wait := listEvery
	if free != 0 {
		wait = min(wait, max(free-m.wall+1, backoffMin))
	}
	m.notBefore = m.mono + min(wait, max(m.window()/4, backoffMin)) + int64(m.set.Random()%64)
}

// acquire writes a claim on a number.
func (m *Machine) acquire(c candidate) {
	cl := c.claim
	cl.until = max(c.mark, m.end(cl.from+m.window()))
	cl.next = m.node(flagHeld, cl.until)
	m.claim = &cl
	m.request(opAcquire, Action{Kind: CAS, Key: cl.key, Old: cl.old, Next: cl.next})
}

// acquired goes on after the write of a claim. A claim whose result is unknown
// is read back: only what this attempt wrote, byte for byte, is taken for it.
func (m *Machine) acquired(op operation, e Event, value func() []byte) {
	c := m.claim
	if c == nil {
		return // frozen meanwhile
	}
	switch {
	case op == opAcquire && e.Err == nil && !e.Applied:
		m.claim, m.crowded = nil, true
		m.failures = 0
		m.pick()
	case op == opAcquire && e.Err != nil && errors.Is(e.Err, ErrNotSent):
		m.claim = nil
		m.fail(e.Err, 0)
	case op == opAcquire && e.Err != nil && !mutant.On(mutant.TimeoutIsSuccess):
		m.status.Err = e.Err
		m.request(opAcquireCheck, Action{Kind: Get, Key: c.key})
	case op == opAcquireCheck && e.Err != nil:
		m.claim = nil // it may be applied or not; nothing of it is used
		m.fail(e.Err, 0)
	case op == opAcquireCheck && !bytes.Equal(value(), c.next):
		m.claim = nil
		m.fail(fmt.Errorf("grant: the claim of node number %d was not applied", c.node), 0)
	default:
		m.recheck()
	}
}

// recheck reads the configuration again, so that nothing is acquired after a
// sequencer was detached, destroyed or fenced.
func (m *Machine) recheck() {
	if mutant.On(mutant.NoConfigReread) {
		m.begin()
		return
	}
	m.request(opRecheck, Action{Kind: Get, Key: configKey(m.set.Name)})
}

func (m *Machine) rechecked(e Event, value []byte) {
	if m.claim == nil {
		return
	}
	if e.Err != nil {
		m.fail(e.Err, 0) // and advance reads it again
		if m.claim.until <= m.wall || !m.attached {
			m.drop()
		}
		return
	}
	if !bytes.Equal(value, m.config) || !m.attached {
		m.drop()
		return
	}
	m.begin()
}

// drop gives back a claim of which nothing was used.
func (m *Machine) drop() {
	c := m.claim
	m.request(opDrop, Action{Kind: CAS, Key: c.key, Old: c.next, Next: m.node(flagFree, c.from)})
}

// begin takes a claim into use.
func (m *Machine) begin() {
	c := m.claim
	m.claim = nil
	from := max(c.from, m.floorMark) // the process's own order
	m.hold = &hold{node: c.node, key: c.key, record: c.next, from: c.from, until: c.until, renewed: max(m.used, c.from), margin: m.newMargin()}
	m.prefer = int64(c.node)
	if mutant.On(mutant.StaleMemory) {
		from = min(c.from, m.wall)
	}
	m.do(Action{Kind: Begin, Node: c.node, From: from, Until: c.until})
	m.settled()
}

// settled notes that the store answered well.
func (m *Machine) settled() {
	m.failures, m.notBefore, m.demand, m.isRefused = 0, 0, false, false
	m.crowded, m.droughts, m.listAfter = false, 0, 0
	m.status.Err = nil
}

// probe compares the clock with what other records say before a renewal that
// raises the mark by much: the clock has jumped, or the window lapsed long ago.
func (m *Machine) probe(e Event) {
	if e.Err != nil {
		m.fail(e.Err, 0)
		return
	}
	if m.hold == nil {
		return
	}
	if err := m.clockBehind(m.look(e.Keys, e.Values)); err != nil {
		m.fail(err, 1000)
		return
	}
	m.probed = true
}

// renewed goes on after a renewal. Unknown and refused results are read back.
func (m *Machine) renewed(op operation, e Event, value func() []byte) {
	h := m.hold
	if h == nil {
		return
	}
	if op == opRenew {
		switch {
		case e.Err == nil && e.Applied, e.Err != nil && mutant.On(mutant.TimeoutIsSuccess):
			m.adopt(h.next, h.nextTo)
		case e.Err != nil && errors.Is(e.Err, ErrNotSent):
			m.fail(e.Err, 0)
		case e.Err != nil:
			if h.attempts = append(h.attempts, h.next); len(h.attempts) > attemptsKept {
				h.attempts = h.attempts[1:]
			}
			m.fail(e.Err, 0)
			m.request(opRenewCheck, Action{Kind: Get, Key: h.key})
		default:
			m.request(opRenewCheck, Action{Kind: Get, Key: h.key})
		}
		return
	}
	if e.Err != nil {
		m.fail(e.Err, 0) // the next renewal is compared with the record as it was
		return
	}
	m.readBack(value())
}

// adopt takes a renewal that was applied.
func (m *Machine) adopt(record []byte, until int64) {
	h := m.hold
	h.old = append(h.old, h.record)
	if len(h.old) > oldKept {
		h.old = h.old[1:]
	}
	h.record, h.attempts = record, nil
	h.renewed, h.margin = m.used, m.newMargin()
	if until > h.until {
		h.until = until
		if !h.sealed && !h.sealing {
			m.do(Action{Kind: Extend, Node: h.node, Until: until})
		}
	}
	m.settled()
}

// readBack judges what the member's record says after a write of it was
// refused, or its result not known.
func (m *Machine) readBack(value []byte) {
	h := m.hold
	if bytes.Equal(value, h.record) {
		return // not applied, as far as is known; a new attempt follows a little later
	}
	for _, attempt := range h.attempts {
		if bytes.Equal(value, attempt) {
			if r, err := decodeNode(h.key, value); err == nil {
				m.adopt(value, r.Until)
			}
			return
		}
	}
	for _, old := range h.old {
		if bytes.Equal(value, old) {
			m.freeze()
			return
		}
	}
	if value == nil {
		m.freeze() // records are never removed
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
	case r.Owner != m.owner && r.Wall > h.until:
		h.lost = true
		m.alarm(AlarmInfo{Kind: TakenOver, Node: h.node, From: m.used, Until: h.until})
	case r.Owner == m.owner && r.State == flagClosing:
		h.record, h.closing, h.attempts = value, true, nil
	case r.Owner == m.owner && r.State == flagHeld && r.Until < h.until:
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

// released goes on after a release.
func (m *Machine) released(op operation, e Event, value func() []byte) {
	h := m.hold
	if h == nil {
		return
	}
	if op == opRelease {
		switch {
		case e.Err == nil && e.Applied:
			m.settled()
			m.forget()
		case e.Err != nil && errors.Is(e.Err, ErrNotSent):
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
		m.forget()
	default:
		// A renewal that came late, or the mark of a cluster-wide detach, is still ours to lower.
		for _, attempt := range h.attempts {
			if bytes.Equal(v, attempt) {
				h.record = v
				return
			}
		}
		if r, err := decodeNode(h.key, v); err == nil && r.Owner == m.owner && r.State == flagClosing {
			h.record = v
			return
		}
		h.lost = true
	}
}

// report tells of a new status.
func (m *Machine) report() {
	s := Status{Err: m.status.Err}
	switch h := m.hold; {
	case h == nil && m.attached:
		s.Phase = Joining
	case h == nil && m.claim != nil:
		s.Phase, s.Node, s.Until = Leaving, m.claim.node, m.claim.until
	case h == nil:
		s = Status{Phase: Idle}
	default:
		s.Node, s.Until = h.node, h.until
		switch {
		case !m.attached || h.closing || h.sealing || h.sealed:
			s.Phase = Leaving
		case h.lost:
			s.Phase = Losing
		default:
			s.Phase = Holding
		}
	}
	if s.Phase != m.status.Phase || s.Node != m.status.Node || s.Until != m.status.Until || !sameError(s.Err, m.told) {
		m.told = s.Err
		m.do(Action{Kind: Report, Status: s})
	}
	m.status = s
}

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}

// timer asks for the next Tick.
func (m *Machine) timer() {
	if m.op != opNone {
		return // the answer comes next
	}
	at := int64(0)
	switch h := m.hold; {
	case m.mono < m.notBefore:
		at = m.notBefore
	case h == nil || h.sealing || h.lost || !m.attached:
		return
	default:
		left := h.until - max(m.wall, m.used)
		if left <= 0 {
			return // lapsed; a Demand wakes us
		}
		// Whether IDs are made is only seen by looking.
		at = m.mono + max(min(left-h.margin, left), max(m.window()/12, 1))
	}
	m.do(Action{Kind: Timer, At: at})
}

// Clone is a machine in the same state, with nothing in common, as a copy of a
// running virtual machine has it. It is for simulations.
func (m *Machine) Clone() *Machine {
	c := *m
	c.out = nil
	if m.hold != nil {
		h := *m.hold
		h.attempts, h.old = slices.Clone(h.attempts), slices.Clone(h.old)
		c.hold = &h
	}
	if m.claim != nil {
		claim := *m.claim
		c.claim = &claim
	}
	return &c
}
