package grant

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/firnid/firn/internal/mutant"
)

// clocks is what a member knows of other clocks than its own: the store's, and
// those of members that write records while it looks. It decides who may claim
// a number, so that a machine whose clock is wrong does not spoil numbers for
// others. The uniqueness of IDs never rests on it.
type clocks struct {
	store  int64 // the store's time, at the earliest
	within int64 // and by how much it may have been later
	at     int64 // Mono: when it was so
	asked  bool  // the store was asked, at that moment
	known  bool  // and has said it

	told AlarmKind // what was told last of clocks that differ

	// Records of others, read again and again to see who renews.
	watching bool
	since    int64             // Mono: when it began
	listed   bool              // all records were read since
	read     int64             // Mono: when they were read last
	records  map[string][]byte // by key
	leads    map[string]lead   // of our clock over those of members that wrote since
	clear    bool              // they were watched for long enough, and none says that ours is ahead
	clearAt  int64             // Mono: when that was
}

// A lead is by how much our clock is ahead of another, at least and at most.
type lead struct{ least, most int64 }

const (
	stepMost  = int64(1000)      // ms a clock may step without other clocks being asked again
	clockFor  = int64(60 * 1000) // ms that an answer about other clocks serves
	clockFail = int64(5 * 1000)  // ms after which a store that did not say its time is asked again
	watchMost = 32               // records that are watched
	watchEach = int64(1000)      // ms between two reads of them
)

// reset forgets all, as our own clock has stepped.
func (c *clocks) reset() { *c = clocks{told: c.told} }

func (c *clocks) clone() clocks {
	d := *c
	d.records, d.leads = maps.Clone(c.records), maps.Clone(c.leads)
	return d
}

// asksTime reports whether the store is to be asked for its time.
func (m *Machine) asksTime() bool {
	c := &m.clocks
	serves := clockFor
	if !c.known {
		serves = clockFail
	}
	return m.set.StoreClock && !(c.asked && m.mono-c.at < serves)
}

// timed takes the store's time. Without it, the records have to do.
func (m *Machine) timed(e Event) {
	c := &m.clocks
	c.asked, c.at, c.known = true, m.mono, e.Err == nil
	c.store, c.within = e.Time, e.Within
	if m.hold == nil || m.hold.lost {
		m.pick()
	}
}

// storeLead is by how much our clock is ahead of the store's, while that is
// known.
func (m *Machine) storeLead() (lead, bool) {
	c := &m.clocks
	most := m.wall - (c.store + m.mono - c.at)
	return lead{most - c.within, most}, c.known
}

// mayClaim reports whether our clock is fit for a claim, as far as is known
// after a look at some records. If it is not, or is not known to be yet, it has
// noted why and when to look again.
func (m *Machine) mayClaim(l sighting) bool {
	store, known := m.storeLead()
	if err := m.clockBehind(l); err != nil {
		m.fail(err, 1000)
		return false
	}
	if m.set.AllowClockAhead || mutant.On(mutant.ClaimAhead) || known && store.least <= aheadMost {
		m.clocks.watching = false
		return true
	}
	c := &m.clocks
	if !known && (c.clear && m.mono-c.clearAt < clockFor || !c.watching && !m.looksAhead(l)) {
		return true
	}
	m.watch(l)
	ahead, agree := m.leadOverOthers()
	switch {
	case ahead.least > aheadMost:
		m.fail(m.aheadError(ahead), watchEach)
		return false
	case known && agree >= 2:
		// The store alone disagrees with members that agree with each other.
		m.tellClocks(StoreClockOff, store.least)
		return true
	case known && !c.listed && len(c.records) < 2:
		// The store says so, and few of many numbers were read: others may know
		// better.
		c.listed = true
		m.request(opList, Action{Kind: List, Key: nodesPrefix(m.set.Name)})
		return false
	case known:
		err := m.aheadError(store)
		err.Comparing = m.mono-c.since <= m.window()/2 && l.alive(m.wall-store.least) >= 2
		m.fail(err, watchEach)
		return false
	case agree > 0 || m.mono-c.since > m.window()/2:
		c.clear, c.clearAt, c.watching = true, m.mono, false
		return true
	}
	m.fail(&ClockAheadError{Sequencer: m.set.Name, Clock: timeOf(m.wall), Comparing: true}, watchEach)
	return false
}

// alive is how many of the records belong to members that may be alive, if it
// is now: they hold a window.
func (l sighting) alive(now int64) (n int) {
	for _, o := range l.others {
		if o.until >= now {
			n++
		}
	}
	return n
}

// looksAhead reports whether records say that our clock could be far ahead: one
// that is held was last written long ago, so its owner is dead or idle, or its
// clock is right and ours is not.
func (m *Machine) looksAhead(l sighting) bool {
	return slices.ContainsFunc(l.others, func(o other) bool {
		return m.wall-o.wall > aheadMost+m.window()/2
	})
}

// watch notes which records have changed since they were read last: their
// writers were alive in between.
func (m *Machine) watch(l sighting) {
	c := &m.clocks
	if !c.watching {
		c.watching, c.listed, c.since = true, false, m.mono
		c.records, c.leads = make(map[string][]byte), make(map[string]lead)
	}
	elapsed := m.mono - c.read
	c.read = m.mono
	// Where there are too many, those whose clocks may agree with ours.
	slices.SortStableFunc(l.others, func(a, b other) int {
		return cmp.Compare(max(m.wall-a.wall, a.wall-m.wall), max(m.wall-b.wall, b.wall-m.wall))
	})
	for _, o := range l.others {
		before, ok := c.records[o.key]
		if !ok && len(c.records) >= watchMost {
			continue
		}
		if ok && !bytes.Equal(before, o.value) {
			// It was written since: our clock showed something between then and now.
			c.leads[o.key] = lead{m.wall - elapsed - o.wall, m.wall - o.wall}
		}
		c.records[o.key] = o.value
	}
}

// watched are the keys of the records that are watched, or nil.
func (m *Machine) watched() []string {
	if !m.clocks.watching {
		return nil
	}
	return slices.Sorted(maps.Keys(m.clocks.records))
}

// leadOverOthers is the median of our clock's leads over those of members that
// wrote while we looked, and how many of their clocks agree with it for
// certain.
func (m *Machine) leadOverOthers() (median lead, agree int) {
	all := slices.SortedFunc(maps.Values(m.clocks.leads), func(a, b lead) int { return cmp.Compare(a.least, b.least) })
	for _, l := range all {
		if l.most <= aheadMost && l.least >= -behindMost {
			agree++
		}
	}
	if len(all) == 0 {
		return lead{}, 0
	}
	return all[(len(all)-1)/2], agree
}

func (m *Machine) aheadError(by lead) *ClockAheadError {
	return &ClockAheadError{
		Sequencer: m.set.Name, Ahead: time.Duration(by.least) * time.Millisecond,
		Clock: timeOf(m.wall), Other: timeOf(m.wall - by.least), Store: len(m.clocks.leads) == 0,
	}
}

// clockBehind refuses a clock that is far behind those of others, unless the
// store's clock agrees with ours: then it is theirs that are wrong.
func (m *Machine) clockBehind(l sighting) error {
	by := l.behind()
	store, known := m.storeLead()
	switch {
	case by <= behindMost:
		if known && store.most < -aheadMost {
			m.tellClocks(StoreClockOff, store.most)
		} else if known && store.least <= aheadMost {
			m.clocks.told = 0
		}
	case m.set.AllowClockBehind:
	case known && store.most >= -behindMost:
		m.tellClocks(MembersAhead, by)
	default:
		return &ClockBehindError{Sequencer: m.set.Name, Behind: time.Duration(by) * time.Millisecond, Nodes: l.nodes}
	}
	return nil
}

// tellClocks tells once that clocks differ.
func (m *Machine) tellClocks(kind AlarmKind, by int64) {
	if m.clocks.told != kind {
		m.clocks.told = kind
		m.alarm(AlarmInfo{Kind: kind, By: time.Duration(by) * time.Millisecond})
	}
}
