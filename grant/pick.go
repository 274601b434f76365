package grant

import (
	"cmp"
	"slices"
)

const (
	pickSize   = 8               // records read to choose one in the first round
	pickGrowth = 4               // times as many in the next round, if it has no candidate
	pickRounds = 3               // rounds before all records are listed
	listEvery  = int64(2 * 1000) // ms between lists of all records that found none free
)

// A search is what a member remembers while it looks for a free node ID.
type search struct {
	preferred int64 // the node ID held before, or -1
	rounds    int   // rounds of picking without a candidate
	droughts  int   // consecutive lists of all records that found none free
	listAfter int64 // Mono of the next list after these
	listFree  int64 // when the first would be free, by the last one; never if unknown
	refusals  int   // refused claims since a node ID was last acquired
	crowded   bool  // a claim was refused since then: others want the same
}

// pick reads some records to choose a node ID, after the store's clock.
func (m *machine) pick() {
	if m.shouldAskTime() {
		m.request(opTime, action{Kind: actionTime})
	} else {
		keys := m.someKeys(m.roundSize())
		for _, key := range m.comparedKeys() {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		m.request(opPick, action{Kind: actionGetMany, Keys: keys})
	}
}

// roundSize returns how many records to read in this round.
func (m *machine) roundSize() int {
	n := pickSize
	for range m.search.rounds {
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
	best    []candidate   // all that may be taken, best first
	ahead   []int64       // for every held record, how far its writer's clock was ahead of ours
	nodes   []uint64      // the node IDs of ahead
	others  []otherRecord // the records that other members hold or held
	free    int64         // when the first window of the held ones ends, or never
	pending int64         // when the first node ID that no member holds becomes usable, or never
	byStore bool          // one is left to its owner only because the store's clock is far behind ours
	damage  error
}

// An otherRecord is a record of another member.
type otherRecord struct {
	key   string
	value []byte
	wall  int64 // its writer's clock
	until int64 // the mark
}

// evaluate returns what records show: values belong to keys.
func (m *machine) evaluate(keys []string, values [][]byte) sighting {
	s := sighting{free: never, pending: never}
	for i, key := range keys {
		node, err := nodeOf(m.settings.name, key)
		if err != nil || key != m.key(node) {
			continue // belongs to a layout of another width, before a purge
		}
		if node < m.seen.lowestNode || node > m.seen.highestNode {
			continue
		}
		if m.hold != nil && node == m.hold.node && !m.hold.lost {
			continue
		}
		c := candidate{claim: claim{nodeGrant: nodeGrant{node: node, key: key, limit: maxTime}}, mark: never}
		var r nodeRecord
		if i < len(values) && len(values[i]) > 0 {
			c.old = values[i]
			if r, err = decodeNode(key, c.old); err != nil {
				s.damage = err // this node ID is lost until it is repaired by hand; others are not
				continue
			}
			c.mark, c.rank = r.Until, rankFree
			if r.held() {
				c.rank = rankExpired
				if m.leaveToOwner(&s, node, key, c.old, r) {
					continue
				}
			}
		}
		m.placeWindow(&c, r)
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

// leaveToOwner evaluates the record of a held node ID. It reports whether to
// leave it alone: its window has not ended, by our clock or by the store's.
func (m *machine) leaveToOwner(s *sighting, node uint64, key string, value []byte, r nodeRecord) bool {
	if r.Owner != m.owner {
		s.others = append(s.others, otherRecord{key, value, r.Wall, r.Until})
	}
	until := r.Until
	if until >= m.wall {
		s.ahead, s.nodes = append(s.ahead, r.Wall-m.wall), append(s.nodes, node)
	} else if lead, ok := m.storeLead(); ok && m.clocks.alarmed != AlarmStoreClockOff {
		until += lead.most // the end, by the store's clock
		s.byStore = s.byStore || until >= m.wall && lead.least > maxLead
	}
	if until < m.wall {
		return false
	}
	s.free = sooner(s.free, until)
	return true
}

// placeWindow computes where a window of a candidate would begin, how far it
// may go, and which spans its record would have. r is the record that it
// replaces, or the zero one if there is no record.
func (m *machine) placeWindow(c *candidate, r nodeRecord) {
	c.base = c.old
	c.from = max(m.wall, c.mark, m.floor())
	c.gap, c.spoiled, c.replaced = r.Gap, r.Spoiled, recordID{}
	if r.Nonce != "" {
		c.replaced = recordID{r.Until, r.Nonce}
	}
	unused := span{m.unusedFrom(c.mark), c.from} // no window ever covered it
	if s := c.spoiled; s.length() > 0 {
		if max(c.from, m.used) <= s.from-m.seen.info.Config.minWindow().Milliseconds() {
			c.limit = s.from
		} else {
			// Too little is left before the spoiled span: begin after it.
			c.from = max(c.from, s.until)
			unused.until = min(unused.until, s.from)
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
	from := ms(m.seen.info.Created)
	if lead, ok := m.storeLead(); ok && from > m.wall-lead.least+maxLead {
		from = max(ms(m.seen.info.Config.Layout.Epoch()), -maxTime)
	}
	return max(from, m.floor())
}

// leaveGap makes the record of a claim remember the longest span that no window
// covered, so that it can be given back if the claim's clock was wrong. Times
// that have passed by the store's clock are of no use to anyone.
func (m *machine) leaveGap(c *candidate, unused span) {
	if lead, ok := m.storeLead(); ok {
		over := m.wall - lead.most
		if c.gap.until <= over {
			c.gap = span{}
		}
		if unused.until <= over+lead.most-lead.least+m.maxAhead()+maxLead {
			unused = span{}
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

func (m *machine) handlePick(e event) {
	// The driver asked for the keys that it was given.
	switch s := m.evaluate(e.Keys, e.Values); {
	case len(s.best) > 0:
		if m.mayClaim(s) {
			m.acquire(m.choose(s.best))
		}
	case m.clockBehind(s):
	case m.seen.highestNode-m.seen.lowestNode < uint64(m.roundSize()): // these were all
		m.search.rounds = 0
		if !m.disputed(s) {
			m.failExhausted(s)
		}
	case m.search.rounds+1 < pickRounds:
		m.search.rounds++
		m.pick()
	case m.mono < m.search.listAfter && (m.search.listFree == never || m.wall <= m.search.listFree):
		m.search.rounds = 0
		if m.search.listFree != never {
			s.free = m.search.listFree
		}
		m.failExhausted(s)
	default:
		m.search.rounds++
		m.request(opList, action{Kind: actionList, Key: nodesPrefix(m.settings.name)})
	}
}

// disputed continues if node IDs are left alone only because of the store's
// clock, and reports whether there are any. Other members may know that the
// store's clock is wrong. If none does, the error reports that, and not that
// all node IDs are held.
func (m *machine) disputed(s sighting) bool {
	// A member that may claim ahead of the store leaves what others hold.
	disputed := s.byStore && !m.settings.AllowClockAhead
	if disputed && m.mayClaim(s) {
		m.pick()
	}
	return disputed
}

// choose returns the first of some candidates. If a claim was refused, others
// choose at the same time, and all of them want the best one. Then choose
// returns any of those that are about as good.
func (m *machine) choose(best []candidate) candidate {
	if !m.search.crowded {
		return best[0]
	}
	n := 1
	for n < len(best) && max(best[n].rank, 1) == max(best[0].rank, 1) {
		n++
	}
	return best[m.settings.random()%uint64(n)]
}

// handleList chooses among all records: a node ID without one, otherwise one of
// the oldest eighth of the best rank, or of the oldest few if there are few. So
// many members that list at once do not all want the same.
func (m *machine) handleList(e event) {
	m.search.rounds = 0
	s := m.evaluate(e.Keys, e.Values)
	node, absent := m.absentNode(e.Keys)
	c := candidate{claim: claim{nodeGrant: nodeGrant{node: node, key: m.key(node), limit: maxTime}}, mark: never}
	if absent {
		m.placeWindow(&c, nodeRecord{})
		if at := m.usableAt(c); at > m.wall {
			s.pending, absent = sooner(s.pending, at), false
		}
	}
	switch {
	case absent:
		if m.mayClaim(s) {
			m.acquire(c)
		}
	case len(s.best) > 0:
		if m.mayClaim(s) {
			alike := slices.IndexFunc(s.best, func(c candidate) bool { return c.rank != s.best[0].rank })
			if alike < 0 {
				alike = len(s.best)
			}
			oldest := max(alike/8, min(alike, pickSize))
			m.acquire(s.best[m.settings.random()%uint64(oldest)])
		}
	case m.clockBehind(s), m.disputed(s):
	default:
		// This will not change for a while, and the records may be many:
		// meanwhile, random picks find a node ID that was given back.
		m.search.listAfter = m.mono + min(listEvery<<min(m.search.droughts, 10), max(m.window()/4, listEvery))
		m.search.listFree = s.free
		m.search.droughts++
		m.failExhausted(s)
	}
}

// absentNode returns a random node ID of the range that has no record.
func (m *machine) absentNode(keys []string) (uint64, bool) {
	known := make(map[uint64]bool, len(keys))
	for _, key := range keys {
		if node, err := nodeOf(m.settings.name, key); err == nil && key == m.key(node) {
			known[node] = true
		}
	}
	start := m.nodeAt(m.settings.random()) - m.seen.lowestNode
	for i := uint64(0); i <= uint64(len(known)); i++ {
		if node := m.nodeAt(start + i); !known[node] {
			return node, true
		}
		if i == m.seen.highestNode-m.seen.lowestNode {
			break
		}
	}
	return 0, false
}

// nodeAt returns a node ID of the range; an offset beyond its end wraps around.
func (m *machine) nodeAt(offset uint64) uint64 {
	if size := m.seen.highestNode - m.seen.lowestNode + 1; size != 0 { // 0 for all of 64 bits
		offset %= size
	}
	return m.seen.lowestNode + offset
}

// failExhausted records that no node ID is free.
func (m *machine) failExhausted(s sighting) {
	free, ahead := sooner(s.free, s.pending), s.free == never && s.pending != never
	fenced := ahead && free <= m.floor()
	if s.damage != nil && free == never {
		m.fail(s.damage, 1000)
	} else {
		m.fail(&NodesExhaustedError{
			sequencer:  m.settings.name,
			nodes:      NodeRange{m.seen.lowestNode, m.seen.highestNode},
			Free:       timeOf(free),
			Ahead:      ahead,
			Fenced:     fenced,
			atCreation: fenced && ms(m.seen.info.fenceFloor) < free,
		}, 0)
		wait := listEvery
		if free != never {
			wait = min(wait, max(free-m.wall+1, minBackoff))
		}
		m.notBefore = m.mono + min(wait, max(m.window()/4, minBackoff)) + int64(m.settings.random()%64)
	}
}

// someKeys returns the keys of up to n different random node IDs of the range.
// The one held before is among them. If there are no more than n, it returns
// all.
func (m *machine) someKeys(n int) []string {
	if last := m.seen.highestNode - m.seen.lowestNode; last < uint64(n) {
		keys := make([]string, 0, last+1)
		for i := uint64(0); i <= last; i++ {
			keys = append(keys, m.key(m.nodeAt(i)))
		}
		return keys
	}
	nodes := make([]uint64, 0, n)
	if p := m.search.preferred; p >= 0 && uint64(p) >= m.seen.lowestNode && uint64(p) <= m.seen.highestNode {
		nodes = append(nodes, uint64(p))
	}
	for len(nodes) < n {
		if node := m.nodeAt(m.settings.random()); !slices.Contains(nodes, node) {
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
	return nodeKey(m.settings.name, node, m.seen.info.Config.Layout.MaxNode())
}
