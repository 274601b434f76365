package grant

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// pick reads some records to choose a node ID, after the store's clock.
func (m *machine) pick() {
	if m.asksTime() {
		m.request(opTime, action{Kind: actionTime})
		return
	}
	keys := m.someKeys(m.picks())
	for _, key := range m.watched() {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	m.request(opPick, action{Kind: actionGetMany, Keys: keys})
}

// picks returns how many records to read in this round.
func (m *machine) picks() int {
	n := picks
	for range m.rounds {
		n *= pickGrowth
	}
	return n
}

// A candidate is a node ID that might be acquired.
type candidate struct {
	claim
	rank int   // the lower the better
	mark int64 // never if it has no record
}

// The ranks of candidates.
const (
	rankAbsent  = iota // never used
	rankFree           // given back
	rankExpired        // held, but its window has ended: its owner may return
)

// A sighting is what some records show.
type sighting struct {
	best    []candidate // all that may be taken, best first
	ahead   []int64     // for every held record, how far its writer's clock was ahead of ours
	nodes   []uint64    // the node IDs of ahead
	others  []other     // the records that other members hold or held
	free    int64       // when the first window of the held ones ends; never if none is held
	pending int64       // when the first node ID that no member holds becomes usable; never if no such node ID exists
	byStore bool        // a held node ID is left alone only because of the store's clock, which is far behind ours
	bad     error
}

// other is a record of another member.
type other struct {
	key   string
	value []byte
	wall  int64 // its writer's clock
	until int64 // the mark
}

// evaluate returns what records show: values belong to keys.
func (m *machine) evaluate(keys []string, values [][]byte) sighting {
	s := sighting{free: never, pending: never}
	for i, key := range keys {
		node, err := nodeOf(m.options.name, key)
		if err != nil || key != m.key(node) {
			continue // belongs to a layout of another width, before a purge
		}
		if node < m.lowestNode || node > m.highestNode {
			continue
		}
		if m.hold != nil && node == m.hold.node && !m.hold.lost {
			continue
		}
		c := candidate{claim: claim{nodeGrant: nodeGrant{node: node, key: key, limit: maxMark}}, mark: never, rank: rankAbsent}
		var r nodeRecord
		if i < len(values) && len(values[i]) > 0 {
			c.old = values[i]
			if r, err = decodeNode(key, c.old); err != nil {
				s.bad = err // this node ID is lost until it is repaired by hand; others are not
				continue
			}
			c.mark, c.rank = r.Until, rankFree
			if r.held() {
				c.rank = rankExpired
				if m.isHeld(&s, node, key, c.old, r) {
					continue
				}
			}
		}
		m.place(&c, r)
		if at := m.usableAt(c); at > m.wall {
			s.pending = sooner(s.pending, at)
			continue
		}
		s.best = append(s.best, c)
	}
	slices.SortStableFunc(s.best, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.mark, b.mark))
	})
	return s
}

// isHeld evaluates the record of a held node ID. It reports whether to leave it
// alone: its window has not ended, by our clock or by the store's.
func (m *machine) isHeld(s *sighting, node uint64, key string, value []byte, r nodeRecord) bool {
	if r.Owner != m.owner {
		s.others = append(s.others, other{key, value, r.Wall, r.Until})
	}
	until := r.Until
	if until >= m.wall {
		s.ahead, s.nodes = append(s.ahead, r.Wall-m.wall), append(s.nodes, node)
	} else if lead, ok := m.storeLead(); ok && m.clocks.alarmed != alarmStoreClockOff {
		until += lead.most // the end, by the store's clock
		s.byStore = s.byStore || until >= m.wall && lead.least > aheadMost
	}
	if until < m.wall {
		return false
	}
	s.free = sooner(s.free, until)
	return true
}

// sooner returns the earlier of two times. never stands for no time.
func sooner(a, b int64) int64 {
	if a == never || b != never && b < a {
		return b
	}
	return a
}

// place computes where a window of a candidate would begin, how far it may go,
// and which spans its record would have. r is the record that it replaces, or
// the zero one if there is no record.
func (m *machine) place(c *candidate, r nodeRecord) {
	c.base = c.old
	c.from = max(m.wall, c.mark, m.floor())
	c.gap, c.spoiled, c.over = r.Gap, r.Spoiled, recordID{}
	if r.Nonce != "" {
		c.over = recordID{r.Until, r.Nonce}
	}
	unused := span{m.unusedFrom(c.mark), c.from} // no window ever covered it
	if s := c.spoiled; s.length() > 0 {
		if max(c.from, m.used) <= s[0]-m.sequencer.Config.minWindow().Milliseconds() {
			c.limit = s[0]
		} else {
			// Too little is left before the spoiled span: begin after it.
			c.from = max(c.from, s[1])
			unused[1] = min(unused[1], s[0])
			c.spoiled = span{}
		}
	}
	m.leaveGap(c, unused)
}

// usableAt returns the clock reading from which a candidate may be claimed. Its
// window must not begin more than MaxAhead ahead, nor end before what this
// process has already used, because it would be useless.
func (m *machine) usableAt(c candidate) int64 {
	at := c.from
	if m.used != never {
		at = max(at, m.used-m.window()+1)
	}
	return at - m.maxAhead()
}

// unusedFrom returns the beginning of the time that no window ever covered
// below a claim over a mark. For a node ID without a record that is the
// beginning of time. The creation of the sequencer is used instead, because it
// says more, unless the creator's clock was ahead.
func (m *machine) unusedFrom(mark int64) int64 {
	if mark != never {
		return mark
	}
	from := ms(m.sequencer.Created)
	if lead, ok := m.storeLead(); ok && from > m.wall-lead.least+aheadMost {
		from = max(ms(m.sequencer.Config.Layout.Epoch()), -maxTime)
	}
	return max(from, m.floor())
}

// leaveGap makes the record of a claim remember the longest span that no window
// covered, so that it can be given back if the claim's clock was wrong. Times
// that have passed by the store's clock are of no use to anyone.
func (m *machine) leaveGap(c *candidate, unused span) {
	if lead, ok := m.storeLead(); ok {
		over := m.wall - lead.most
		if c.gap[1] <= over {
			c.gap = span{}
		}
		if unused[1] <= over+lead.most-lead.least+m.maxAhead()+aheadMost {
			return
		}
	}
	if unused.length() > c.gap.length() {
		c.gap = unused
	}
}

// behind returns how far the clock is behind the median of the held records.
func (s sighting) behind() int64 {
	if len(s.ahead) == 0 {
		return 0
	}
	a := slices.Sorted(slices.Values(s.ahead))
	return a[(len(a)-1)/2]
}

func (m *machine) picked(e event) {
	if e.Err != nil {
		m.fail(e.Err, 0)
		return
	}
	// The driver asked for the keys that it was given.
	switch s := m.evaluate(e.Keys, e.Values); {
	case len(s.best) > 0:
		if m.mayClaim(s) {
			m.acquire(m.choose(s.best))
		}
	case m.clockBehind(s):
	case m.highestNode-m.lowestNode < uint64(m.picks()): // these were all
		m.rounds = 0
		if !m.disputed(s) {
			m.exhausted(s)
		}
	case m.rounds+1 < pickRounds:
		m.rounds++
		m.pick()
	case m.mono < m.listAfter && (m.listFree == never || m.wall <= m.listFree):
		m.rounds = 0
		if m.listFree != never {
			s.free = m.listFree
		}
		m.exhausted(s)
	default:
		m.rounds++
		m.request(opList, action{Kind: actionList, Key: nodesPrefix(m.options.name)})
	}
}

// disputed continues if node IDs are left alone only because of the store's
// clock, and reports whether there are any. Other members may know that the
// store's clock is wrong. If none does, the error reports that, and not that
// all node IDs are held.
func (m *machine) disputed(s sighting) bool {
	if m.options.AllowClockAhead || !s.byStore {
		return false // a member that may claim ahead of the store leaves what others hold
	}
	if m.mayClaim(s) {
		m.pick()
	}
	return true
}

// choose returns the first of some candidates. If a claim was refused, others
// choose at the same time, and all of them want the best one. Then choose
// returns any of those that are about as good.
func (m *machine) choose(best []candidate) candidate {
	if !m.crowded {
		return best[0]
	}
	n := 1
	for n < len(best) && max(best[n].rank, 1) == max(best[0].rank, 1) {
		n++
	}
	return best[m.options.random()%uint64(n)]
}

// listed chooses among all records: a node ID without one, otherwise one of the
// oldest eighth of the best rank, or of the oldest few if there are few. So
// many members that list at once do not all want the same.
func (m *machine) listed(e event) {
	m.rounds = 0
	if e.Err != nil {
		m.fail(e.Err, 0)
		return
	}
	s := m.evaluate(e.Keys, e.Values)
	if node, ok := m.absent(e.Keys); ok {
		c := candidate{claim: claim{nodeGrant: nodeGrant{node: node, key: m.key(node), limit: maxMark}}, mark: never}
		m.place(&c, nodeRecord{})
		if at := m.usableAt(c); at <= m.wall {
			if m.mayClaim(s) {
				m.acquire(c)
			}
			return
		} else {
			s.pending = sooner(s.pending, at)
		}
	}
	switch {
	case len(s.best) > 0:
		if !m.mayClaim(s) {
			return
		}
		alike := slices.IndexFunc(s.best, func(c candidate) bool { return c.rank != s.best[0].rank })
		if alike < 0 {
			alike = len(s.best)
		}
		oldest := max(alike/8, min(alike, picks))
		m.acquire(s.best[m.options.random()%uint64(oldest)])
	case m.clockBehind(s), m.disputed(s):
	default:
		// This will not change for a while, and the records may be many:
		// meanwhile, random picks find a node ID that was given back.
		m.listAfter = m.mono + min(listEvery<<min(m.droughts, 10), max(m.window()/4, listEvery))
		m.listFree = s.free
		m.droughts++
		m.exhausted(s)
	}
}

// absent returns a random node ID of the range that has no record.
func (m *machine) absent(keys []string) (uint64, bool) {
	known := make(map[uint64]bool, len(keys))
	for _, key := range keys {
		if node, err := nodeOf(m.options.name, key); err == nil && key == m.key(node) {
			known[node] = true
		}
	}
	size := m.highestNode - m.lowestNode
	start := m.options.random()
	if size+1 != 0 {
		start %= size + 1
	}
	for i := uint64(0); i <= uint64(len(known)); i++ {
		offset := start + i
		if size+1 != 0 {
			offset %= size + 1
		}
		if node := m.lowestNode + offset; !known[node] {
			return node, true
		}
		if i == size {
			break
		}
	}
	return 0, false
}

// exhausted records that no node ID is free.
func (m *machine) exhausted(s sighting) {
	free, ahead := sooner(s.free, s.pending), s.free == never && s.pending != never
	if s.bad != nil && free == never {
		m.fail(s.bad, 1000)
		return
	}
	fenced := ahead && free <= m.floor()
	m.fail(&ExhaustedError{
		sequencer: m.options.name, nodes: Range{m.lowestNode, m.highestNode}, Free: timeOf(free), Ahead: ahead,
		Fenced: fenced, begins: fenced && ms(m.sequencer.fence) < free,
	}, 0)
	wait := listEvery
	if free != never {
		wait = min(wait, max(free-m.wall+1, backoffMin))
	}
	m.notBefore = m.mono + min(wait, max(m.window()/4, backoffMin)) + int64(m.options.random()%64)
}

// acquire writes a claim on a node ID.
func (m *machine) acquire(c candidate) {
	cl := c.claim
	cl.until, cl.config = never, m.config
	m.claim = &cl
	m.writeClaim()
}

// writeClaim writes the claim in place of the current record.
func (m *machine) writeClaim() {
	c := m.claim
	c.until = min(max(c.until, c.from, m.end(c.from+m.window())), c.limit)
	c.next = m.node(nodeHeld, c.until, c.carried())
	c.phase = claimSent
	m.request(opAcquire, action{Kind: actionCAS, Key: c.key, Old: c.old, Next: c.next})
}

// settleClaim continues with a claim after a wait.
func (m *machine) settleClaim() {
	switch c := m.claim; {
	case c.phase == claimApplied:
		m.recheck()
	case c.phase == claimSent:
		m.request(opAcquireCheck, action{Kind: actionGet, Key: c.key})
	case m.wanted && c.from+m.window() > m.wall && !m.early(c.from):
		m.writeClaim()
	case bytes.Equal(c.old, c.base):
		m.claim = nil // it is no longer wanted, and was not applied as far as is known
		m.advance()
	default:
		m.drop()
	}
}

// acquired continues after a write of a claim, or after a read of its record if
// the result is unknown. A read shows what to write next; only an applied write
// makes the claim valid.
func (m *machine) acquired(op operation, e event, v []byte) {
	c := m.claim
	if c == nil {
		return // frozen in the meantime
	}
	if op == opAcquire {
		switch {
		case e.Err == nil && e.Applied:
			c.phase = claimApplied
			m.recheck()
		case e.Err == nil && len(c.attempts) == 0:
			m.claim, m.crowded = nil, true
			if m.refusals++; m.refusals > refusalsMost {
				m.fail(fmt.Errorf("grant: %d claims were refused because the records had changed since they were read", m.refusals), 0)
				return
			}
			m.failures = 0
			m.pick()
		case e.Err == nil:
			m.request(opAcquireCheck, action{Kind: actionGet, Key: c.key}) // an earlier attempt may be stored
		case errors.Is(e.Err, ErrNotSent):
			if len(c.attempts) == 0 {
				m.claim = nil
			}
			m.fail(e.Err, 0)
		default:
			c.attempts = remember(c.attempts, c.next)
			m.fail(e.Err, 0)
			m.request(opAcquireCheck, action{Kind: actionGet, Key: c.key})
		}
		return
	}
	switch {
	case e.Err != nil:
		if m.fail(e.Err, 0); !m.wanted {
			m.claim, m.gaveBack, m.kept = nil, false, e.Err // it may block the node ID until its mark
		}
	case bytes.Equal(v, c.base) || contains(c.attempts, v):
		if c.phase = claimAgain; bytes.Equal(v, c.old) && m.mono >= m.notBefore {
			m.fail(errStale, 0) // without a wait this would repeat as fast as the store answers
		}
		c.old = v
	default:
		m.claim = nil
		m.fail(fmt.Errorf("grant: the claim of node ID %d was not applied", c.node), 0)
	}
}

// recheck reads the configuration again, so that nothing is acquired after a
// sequencer was detached, destroyed or fenced. It reads the claim with it: a
// server of the store that shows the claim shows everything written before it,
// and one that was left behind in a failover does not show it.
func (m *machine) recheck() {
	m.request(opRecheck, action{Kind: actionGetMany, Keys: []string{m.claim.key, configKey(m.options.name)}})
}

func (m *machine) rechecked(e event) {
	c := m.claim
	if c == nil {
		return
	}
	if e.Err != nil || len(e.Values) != 2 {
		m.fail(cmp.Or(e.Err, errAnswer), 0) // advance reads it again
		if c.until <= m.wall || !m.wanted {
			m.drop()
		}
		return
	}
	if !bytes.Equal(e.Values[0], c.next) {
		m.fail(fmt.Errorf("grant: the claim of node ID %d has disappeared", c.node), 0)
		m.drop()
		return
	}
	if !m.isConfig(e.Values[1]) || !m.wanted || m.early(c.from) {
		m.drop()
		return
	}
	m.begin()
}

var errAnswer = errors.New("grant: the store did not return a value for each key")

// isConfig reports whether the configuration is the same as when the node ID
// was picked, byte for byte: it may have been changed and changed back.
func (m *machine) isConfig(value []byte) bool {
	return bytes.Equal(value, m.claim.config)
}

// drop gives back an unused claim: the mark returns to where the claim began.
// Its record may be an attempt that a read has shown.
func (m *machine) drop() {
	c := m.claim
	old := c.next
	if c.phase != claimApplied {
		old = c.old
	}
	m.request(opDrop, action{Kind: actionCAS, Key: c.key, Old: old, Next: m.node(nodeFree, c.from, c.carried())})
}

// someKeys returns the keys of up to n different random node IDs of the range.
// The one held before is among them. If there are no more than n, it returns
// all.
func (m *machine) someKeys(n int) []string {
	lo, size := m.lowestNode, m.highestNode-m.lowestNode // less 1, so that it always fits
	if size < uint64(n) {
		keys := make([]string, 0, size+1)
		for i := uint64(0); i <= size; i++ {
			keys = append(keys, m.key(lo+i))
		}
		return keys
	}
	nodes := make([]uint64, 0, n)
	if m.prefer >= 0 && uint64(m.prefer) >= m.lowestNode && uint64(m.prefer) <= m.highestNode {
		nodes = append(nodes, uint64(m.prefer))
	}
	for len(nodes) < n {
		node := m.options.random()
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

func (m *machine) key(node uint64) string {
	return nodeKey(m.options.name, node, m.sequencer.Config.Layout.MaxNode())
}
