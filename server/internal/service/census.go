package service

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// NodeCounts are the node IDs of a sequencer by state, of those that members of
// this store may take.
type NodeCounts struct {
	Held    uint64 // by a member
	Blocked uint64 // by a fence, or by a clock far ahead
	Free    uint64
}

// countEvery is how old counts may be. Each count lists all records of a
// sequencer.
const countEvery = time.Minute

// countMost is how long a count may take.
const countMost = 10 * time.Second

// A census has the counts of sequencers by name. The zero value is empty.
type census struct {
	mu     sync.Mutex
	counts map[string]tallied
	busy   bool // recount runs
}

type tallied struct {
	NodeCounts
	ok    bool      // they were counted
	tried time.Time // the beginning of the last count
}

// NodeCounts returns the last counts of an open sequencer. If they are old, it
// lets all old ones be counted again in the background. ok is false before the
// first successful count.
func (c *Cluster) NodeCounts(name string, now time.Time) (n NodeCounts, ok bool) {
	s := &c.census
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.counts[name]
	if !s.busy && now.Sub(last.tried) >= countEvery {
		c.mu.Lock()
		if !c.closed {
			s.busy = true
			c.openings.Go(c.recount)
		}
		c.mu.Unlock()
	}
	return last.NodeCounts, last.ok
}

// recount counts the node IDs of the open sequencers whose counts are old, one
// sequencer after the other, and drops the counts of closed ones.
func (c *Cluster) recount() {
	open := c.opened()
	for name := range open {
		c.count(name)
	}
	s := &c.census
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.counts, func(name string, _ tallied) bool { return open[name] == nil })
	s.busy = false
}

// count counts the node IDs of a sequencer if its counts are old.
func (c *Cluster) count(name string) {
	s, now := &c.census, time.Now()
	s.mu.Lock()
	last := s.counts[name]
	s.mu.Unlock()
	if now.Sub(last.tried) < countEvery {
		return
	}
	ctx, cancel := context.WithTimeout(c.openingUntil, countMost)
	defer cancel()
	n, err := countNodes(ctx, c.store, name, now)
	if err != nil {
		n = last.NodeCounts // firn_store_up shows the failure
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[string]tallied)
	}
	s.counts[name] = tallied{n, last.ok || err == nil, now}
}

func countNodes(ctx context.Context, s grant.Store, name string, now time.Time) (n NodeCounts, err error) {
	info, err := grant.Lookup(ctx, s, name)
	if err != nil {
		return n, err
	}
	n, _, err = CountNodes(info, now, func(yield func(grant.NodeInfo, error) bool) error { return grant.Nodes(ctx, s, name, yield) })
	return n, err
}

// CountNodes counts the node IDs of a sequencer, whose records each yields, as
// far as members of this store may take them. first is when the first of those
// that are not free becomes free if its window is not renewed.
func CountNodes(info grant.Info, now time.Time, each func(yield func(grant.NodeInfo, error) bool) error) (n NodeCounts, first time.Time, err error) {
	lo, hi := uint64(0), info.Config.Layout.MaxNode()
	if r := info.Config.Nodes; r != nil {
		lo, hi = r.Lo, r.Hi
	}
	usable := now.Add(info.Config.MaxAhead)
	err = each(func(one grant.NodeInfo, err error) bool {
		held := one.Held && one.Until.After(now)
		switch {
		case one.Node < lo || one.Node > hi:
			return true
		case err != nil: // a damaged record
			n.Blocked++
			return true
		case held:
			n.Held++
		case one.Until.After(usable):
			n.Blocked++
		default:
			return true
		}
		if first.IsZero() || one.Until.Before(first) {
			first = one.Until
		}
		return true
	})
	n.Free = hi - lo + 1 - n.Held - n.Blocked
	if info.Floor.After(usable) {
		n.Blocked, n.Free = n.Blocked+n.Free, 0
	}
	return n, first, err
}
