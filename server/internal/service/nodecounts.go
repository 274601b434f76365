package service

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// NodeCounts are the node IDs of a sequencer by state, of those that users of
// this store may take.
type NodeCounts struct {
	Held    uint64 // by a process
	Blocked uint64 // by a fence or a clock far ahead, or with a damaged record
	Free    uint64
}

// NodeState returns the state of a node ID as people read it: "held"; "closing",
// if its owner has to give it back; "over", if its window has ended; or "free",
// if it was given back or fenced.
func NodeState(n grant.NodeInfo, now time.Time) string {
	switch {
	case !n.Held:
		return "free"
	case !n.HeldAt(now):
		return "over"
	case n.Closing:
		return "closing"
	}
	return "held"
}

// countEvery is how old counts may be. Each count lists all records of a
// sequencer.
const countEvery = time.Minute

// countTimeout is how long a count may take.
const countTimeout = 10 * time.Second

// A nodeCounter has the last counts of open sequencers by name. The zero value
// has none.
type nodeCounter struct {
	mu      sync.Mutex // guards the fields below
	counts  map[string]NodeCounts
	began   time.Time // the last round
	running bool
}

// NodeCounts returns the last counts of an open sequencer. If they are old, a
// round in the background counts those of all. ok is false before the first
// successful count.
func (b *StoreBackend) NodeCounts(name string, now time.Time) (n NodeCounts, ok bool) {
	s := &b.nodes
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok = s.counts[name]
	if !s.running && now.Sub(s.began) >= countEvery {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.closed {
			s.running, s.began = true, now
			b.background.Go(b.countAll)
		}
	}
	return n, ok
}

// countAll counts the node IDs of the open sequencers, one sequencer after the
// other. If a count fails, the one before it is kept.
func (b *StoreBackend) countAll() {
	s := &b.nodes
	s.mu.Lock()
	before := s.counts
	s.mu.Unlock()
	counts := make(map[string]NodeCounts)
	for name := range b.opened() {
		ctx, cancel := context.WithTimeout(b.countingCtx, countTimeout)
		n, err := countNodes(ctx, b.store, name, time.Now())
		cancel()
		old, counted := before[name]
		if err != nil { // firn_store_up shows the failure
			n = old
		}
		if err == nil || counted {
			counts[name] = n
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts, s.running = counts, false
}

func countNodes(ctx context.Context, s grant.Store, name string, now time.Time) (n NodeCounts, err error) {
	info, err := grant.Lookup(ctx, s, name)
	if err != nil {
		return n, err
	}
	n, _, err = CountNodes(info, now, func(yield func(grant.NodeInfo, error) bool) error {
		return grant.Nodes(ctx, s, name, yield)
	})
	return n, err
}

// CountNodes counts the node IDs of a sequencer, whose records each yields, as
// far as users of this store may take them. first is when the first of those
// that are not free becomes free if its window is not renewed.
func CountNodes(info grant.Info, now time.Time, each func(yield func(grant.NodeInfo,
	error) bool) error) (n NodeCounts, first time.Time, err error) {
	lo, hi := uint64(0), info.Config.Layout.MaxNode()
	if r := info.Config.Nodes; r != nil {
		lo, hi = r.Lo, r.Hi
	}
	usable := now.Add(info.Config.MaxAhead)
	err = each(func(one grant.NodeInfo, err error) bool {
		held := one.HeldAt(now)
		switch {
		case one.Node < lo || one.Node > hi:
			return true
		case err != nil: // no member takes it
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
	if info.Floor.After(usable) {
		n.Blocked = countWithout(lo, hi, n.Held)
	} else {
		n.Free = countWithout(lo, hi, n.Held+n.Blocked)
	}
	return n, first, err
}

// countWithout counts the node IDs from lo to hi without some of them. All of
// 64 bits are one more than a uint64 holds, which then has its highest value.
func countWithout(lo, hi, without uint64) uint64 {
	if n := hi - lo + 1 - without; n > 0 || without > 0 {
		return n
	}
	return math.MaxUint64
}
