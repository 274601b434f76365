package grant

import (
	"errors"
	"math"
)

// A nodeGrant is a node ID with its window, and with what every write of its
// record carries on.
type nodeGrant struct {
	node     uint64
	key      string
	from     int64    // where the grant begins
	until    int64    // exclusive end of what may be used
	limit    int64    // no window of this node ID ends beyond
	replaced recordID // that the claim replaced; of the record, like the spans
	gap      span
	spoiled  span
}

// carried returns a record with what every write carries on.
func (g *nodeGrant) carried() nodeRecord {
	return nodeRecord{From: optionalTime{g.from, true}, Replaced: g.replaced, Gap: g.gap, Spoiled: g.spoiled}
}

// A hold is a node ID in use.
type hold struct {
	nodeGrant
	untilAt       int64 // Mono when until would be, by the clock at the last acquire or renewal
	usedAtRenewal int64 // used, when the last renewal was requested
	margin        int64 // renew when no more than this is left

	record           []byte   // as the last applied write of this member left it
	earlier          [][]byte // records before record, newest last, to detect a store that went back
	attempts         [][]byte // renewals since record with an unknown result
	unconfirmed      []byte   // the attempt that a read has shown; another write must confirm it
	unconfirmedUntil int64    // and its until

	next         []byte // the record that the write in progress would store
	nextUntil    int64  // and its until
	nextUsed     int64  // and what was used when it was requested
	releaseTries int    // attempts to release it so far

	phase   holdPhase
	waiting bool // nothing of it may be used yet: see useFrom
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

// mayHaveRest reports whether some of the window may be left, either by the
// current clock or by elapsed time since the last write.
func (m *machine) mayHaveRest() bool { return m.hold.until > m.wall || m.hold.untilAt > m.mono }

// tooEarly reports whether a window that begins at from cannot be used for a
// while, because the clock was set back since it was chosen. Another node ID
// may be usable at once.
func (m *machine) tooEarly(from int64) bool {
	return from > m.wall+m.maxAhead()+maxStep && from >= m.used
}

// newUntil returns the end of a window that is written now, over a mark. It
// lies at most MaxAhead plus a window ahead of the clock, however far ahead the
// generator is: a fence relies on that.
func (m *machine) newUntil(mark int64) int64 {
	at := min(max(m.wall, m.used), m.wall+m.maxAhead())
	return min(max(mark, at+m.window()), maxTime)
}

// newRecord returns a new record of the member, with what it carries on.
func (m *machine) newRecord(state string, until int64, r nodeRecord) []byte {
	r.Nonce, r.Owner, r.Host = newToken(m.settings.random), m.owner, m.settings.host
	r.State, r.Until, r.Wall = state, until, m.wall
	if r.held() {
		// A write that settles another one, from before the clock was set back,
		// has the same end and so needs the same clock: a fence assumes a
		// window between the two, which may be longer than today's.
		r.Wall = max(r.Wall, until-m.maxAhead()-m.seen.info.LongestWindow.Milliseconds())
	}
	return r.encode()
}

// beginHold starts using a claim.
func (m *machine) beginHold() {
	c := m.claim
	m.claim = nil
	from := max(c.from, m.used) // the order of IDs within the process
	window := m.window()
	if c.until == c.limit { // otherwise less than the margin may be left from the start
		window = min(window, max(c.until-max(m.wall, from), 0))
	}
	m.hold = &hold{
		nodeGrant: c.nodeGrant, record: c.next, untilAt: m.mono + c.until - m.wall,
		usedAtRenewal: from, margin: m.newMargin(window),
	}
	m.search.preferred = int64(c.node)
	m.succeeded()
	m.useFrom(from)
}

// useFrom starts the use of the node ID from a time on. If the process has
// already used times beyond the end of the window, because its clock was set
// back since, it holds the node ID and waits until the window reaches them.
func (m *machine) useFrom(from int64) {
	h := m.hold
	if h.waiting = from >= h.until; !h.waiting {
		m.emit(action{Kind: actionBegin, Node: h.node, From: from, Until: h.until})
	}
}

var errStale = errors.New("grant: the store refused a write but still returns the record that the write should " +
	"have replaced: its reads are stale")

// nextLook returns when to look again whether the window is to be renewed. If
// it has lapsed, that is never: a Demand wakes the machine.
func (m *machine) nextLook() int64 {
	h, at := m.hold, int64(math.MaxInt64)
	if left := h.until - max(m.wall, m.used); left > h.margin {
		at = m.mono + left - h.margin
	} else if left > 0 {
		at = m.mono + max(m.window()/12, 1) // the machine learns whether IDs are made only by looking
	}
	if m.mayHaveRest() {
		at = min(at, max(m.seen.rereadAt, m.mono+1))
	}
	if m.demand {
		// The mark may not move further ahead of the clock until the clock has
		// moved.
		at = min(at, m.mono+max(m.leastGrowth()-m.growth(), 1))
	}
	return at
}
