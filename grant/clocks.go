package grant

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"
)

// clocks holds what a member knows of other clocks: the store's, and those of
// members that write records while it compares. It decides who may claim a node
// ID, so that a machine with a wrong clock does not spoil node IDs for others.
// The uniqueness of IDs never depends on it.
type clocks struct {
	store    int64 // the earliest time that the store's clock may have shown
	within   int64 // how much later it may have been
	askedAt  int64 // Mono at that moment
	asked    bool  // the store was asked at that moment
	answered bool  // and returned its time

	alarmed Alarm // the last alarm about clocks that differ

	// Records of other members, read repeatedly to see who renews.
	comparing      bool
	comparingSince int64             // Mono when comparing began
	listed         bool              // all records have been read since
	readAt         int64             // Mono when they were last read
	records        map[string][]byte // by key
	leads          map[string]lead   // of our clock over those of members that have written since
	cleared        bool              // they were compared long enough, and none shows that our clock is ahead
	clearedAt      int64             // Mono when that was
}

// A lead is how far our clock is ahead of another: at least and at most.
type lead struct{ least, most int64 }

const (
	maxBehind    = int64(10 * 1000) // ms that our clock may be behind the median of others
	maxLead      = int64(10 * 1000) // ms that our clock may be ahead of the store's, or of others'
	maxStep      = int64(1000)      // ms that a clock may step before other clocks are compared again
	clockValid   = int64(60 * 1000) // ms for which an answer about other clocks is used
	clockRetry   = int64(5 * 1000)  // ms after which a store that did not return its time is asked again
	maxCompared  = 32               // number of records that are compared
	compareEvery = int64(1000)      // ms between two reads of these
)

// reset discards all readings, because our own clock has stepped.
func (c *clocks) reset() { *c = clocks{alarmed: c.alarmed} }

// shouldAskTime reports whether to ask the store for its time.
func (m *machine) shouldAskTime() bool {
	c := &m.clocks
	serves := clockValid
	if !c.answered {
		serves = clockRetry
	}
	return m.settings.storeClock && !(c.asked && m.mono-c.askedAt < serves)
}

// handleTime records the store's time. If the store returned none, only the
// records of others are left to compare.
func (m *machine) handleTime(e event) {
	c := &m.clocks
	c.asked, c.askedAt, c.answered = true, m.mono, e.Err == nil
	c.store, c.within = e.Time, e.Within
	if m.hold == nil || m.hold.lost {
		m.pick()
	}
}

// storeLead returns how far our clock is ahead of the store's, as long as that
// is known.
func (m *machine) storeLead() (lead, bool) {
	c := &m.clocks
	most := m.wall - (c.store + m.mono - c.askedAt)
	return lead{most - c.within, most}, c.answered
}

// mayClaim reports whether our clock permits a claim, as far as some records
// show. If it does not, or if that is not known yet, mayClaim has recorded the
// reason and when to look again.
func (m *machine) mayClaim(s sighting) bool {
	c := &m.clocks
	store, known := m.storeLead()
	switch {
	case m.clockBehind(s):
		return false
	case m.settings.AllowClockAhead || known && store.least <= maxLead:
		c.comparing = false
		return true
	case !known && (c.cleared && m.mono-c.clearedAt < clockValid || !c.comparing && !m.looksAhead(s)):
		return true
	}
	return m.othersPermitClaim(s, store, known)
}

// othersPermitClaim reports whether the clocks of other members permit a claim.
func (m *machine) othersPermitClaim(s sighting, store lead, known bool) bool {
	c := &m.clocks
	m.compareClocks(s)
	ahead, agree := m.leadOverOthers()
	long := m.mono-c.comparingSince > m.window()/2
	var err error
	switch {
	case ahead.least > maxLead:
		err = m.aheadError(ahead, "those of members that renew their node IDs", ErrClockAhead)
	case known && agree >= 2:
		// Only the store disagrees, and the members agree with each other.
		m.alarmOnce(AlarmStoreClockOff, store.least)
	case known && !c.listed && len(c.records) < 2:
		// Only the store indicates it, and few of many records were read:
		// others may know better.
		c.listed = true
		m.request(opList, action{Kind: actionList, Key: nodesPrefix(m.settings.name)})
		return false
	case known && !long && s.countAlive(m.wall-store.least) >= 2:
		err = m.aheadError(store, "the store's", ErrComparingClocks)
	case known:
		err = m.aheadError(store, "the store's", ErrClockAhead)
	case agree > 0 || long:
		c.cleared, c.clearedAt, c.comparing = true, m.mono, false
	default:
		err = kindErrorf(ErrComparingClocks, "sequencer %s: "+
			"no node ID is claimed yet: the records of other members look old, "+
			"and this machine's clock may be ahead; watching whether they renew", m.settings.name)
	}
	if err != nil {
		m.fail(err, compareEvery)
	}
	return err == nil
}

// countAlive returns how many of the records belong to members that may be
// alive, if the time is now: they hold a window.
func (s sighting) countAlive(now int64) (n int) {
	for _, o := range s.others {
		if o.until >= now {
			n++
		}
	}
	return n
}

// looksAhead reports whether the records suggest that our clock is far ahead: a
// held record was last written long ago. Then either its owner is dead or idle,
// or our clock is wrong.
func (m *machine) looksAhead(s sighting) bool {
	return slices.ContainsFunc(s.others, func(o otherRecord) bool {
		return m.wall-o.wall > maxLead+m.window()/2
	})
}

// compareClocks determines which records have changed since they were last
// read: their writers were alive in between.
func (m *machine) compareClocks(s sighting) {
	c := &m.clocks
	if !c.comparing {
		c.comparing, c.listed, c.comparingSince = true, false, m.mono
		c.records, c.leads = make(map[string][]byte), make(map[string]lead)
	}
	elapsed := m.mono - c.readAt
	c.readAt = m.mono
	// If there are too many, prefer those whose clocks may agree with ours.
	slices.SortStableFunc(s.others, func(a, b otherRecord) int {
		return cmp.Compare(max(m.wall-a.wall, a.wall-m.wall), max(m.wall-b.wall, b.wall-m.wall))
	})
	for _, o := range s.others {
		before, ok := c.records[o.key]
		if !ok && len(c.records) >= maxCompared {
			continue
		}
		if ok && !bytes.Equal(before, o.value) {
			// It was written since, at a time that our clock passed between
			// then and now.
			c.leads[o.key] = lead{m.wall - elapsed - o.wall, m.wall - o.wall}
		}
		c.records[o.key] = o.value
	}
}

// comparedKeys returns the keys of the records that are compared, or nil.
func (m *machine) comparedKeys() []string {
	if !m.clocks.comparing {
		return nil
	}
	return slices.Sorted(maps.Keys(m.clocks.records))
}

// leadOverOthers returns the median of our clock's leads over those of members
// that wrote in the meantime, and how many of their clocks certainly agree with
// it.
func (m *machine) leadOverOthers() (median lead, agree int) {
	all := slices.SortedFunc(maps.Values(m.clocks.leads), func(a, b lead) int { return cmp.Compare(a.least, b.least) })
	for _, l := range all {
		if l.most <= maxLead && l.least >= -maxBehind {
			agree++
		}
	}
	if len(all) == 0 {
		return lead{}, 0
	}
	return all[(len(all)-1)/2], agree
}

// aheadError returns an error of a kind: our clock is ahead of others, which
// whose names.
func (m *machine) aheadError(by lead, whose string, kind error) error {
	return kindErrorf(kind, "sequencer %s: this machine's clock is %v ahead of %s (%s, not %s), so no node ID is "+
		"claimed: set the clock, or allow it explicitly (AllowClockAhead)",
		m.settings.name, time.Duration(by.least)*time.Millisecond, whose,
		timeText(timeOf(m.wall)), timeText(timeOf(m.wall-by.least)))
}

// clockBehind reports whether our clock is far behind those of others. If it
// is, it has recorded the reason and when to look again. If the store's clock
// agrees with ours, theirs are wrong.
func (m *machine) clockBehind(s sighting) bool {
	by := s.behind()
	store, known := m.storeLead()
	switch {
	case by <= maxBehind:
		if known && store.most < -maxLead {
			m.alarmOnce(AlarmStoreClockOff, store.most)
		} else if known && store.least <= maxLead {
			m.clocks.alarmed = 0
		}
	case m.settings.AllowClockBehind:
	case known && store.most >= -maxBehind:
		m.alarmOnce(AlarmMembersAhead, by)
	default:
		m.fail(kindErrorf(ErrClockBehind, "sequencer %s: this machine's clock is %v "+
			"behind those of the members that wrote node IDs %v: compare both with a time server; "+
			"if this clock is right, run \"firn node repair\", or allow it explicitly (AllowClockBehind)",
			m.settings.name, time.Duration(by)*time.Millisecond, s.nodes), 1000)
		return true
	}
	return false
}

// alarmOnce raises an alarm, once, that clocks differ.
func (m *machine) alarmOnce(kind Alarm, by int64) {
	if m.clocks.alarmed != kind {
		m.clocks.alarmed = kind
		m.alarm(raisedAlarm{Kind: kind, By: time.Duration(by) * time.Millisecond})
	}
}
