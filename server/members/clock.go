package members

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// A Comparer measures how far this clock is from those of other members, by
// their records. It must be made by NewComparer. Offset is safe for concurrent
// use.
//
// A member writes the time of its own clock at regular intervals. If a read
// still finds the old record and a later read finds the new one, the member
// wrote its time between the two. So the Comparer reads when it expects a
// write, each time in the middle of the span in which the write may be, and
// halves the span. This costs about two reads in ten seconds for each of a few
// members at first, and two a minute later.
//
// It is only as exact as the store is fast: the time of a member's write
// appears as if its clock were behind. Use it for display only.
type Comparer struct {
	store grant.Store
	self  func() string
	now   func() time.Time

	peers []*peer // used by Run only

	mu    sync.Mutex // guards the fields below
	ahead time.Duration
	known bool
}

const (
	mostPeers   = 3                      // peers, of whose clocks the median is used
	findEvery   = time.Minute            // how often to look for members
	exact       = time.Second            // spans up to this width are meaningful
	fine        = 100 * time.Millisecond // spans up to this width need not be halved
	fineCycles  = 6                      // writes after which a fine span is checked again
	irregular   = 250 * time.Millisecond // a regular write is never this far from its time
	leastWait   = 20 * time.Millisecond
	readTimeout = 5 * time.Second
)

// A peer is a member to compare with.
type peer struct {
	key, id string
	every   time.Duration // between its writes
	seen    time.Time     // its last time, by its clock
	sent    time.Time     // when the last read that found it was sent, by this clock
	lo, hi  time.Duration // bounds of how far its clock is ahead of this one
	next    time.Time     // next read

	// A fine span is checked by two reads, one before a write and one after it.
	// expect is what the first one should find; zero if none is due.
	expect time.Time
	pair   bool // the first read is done
}

// NewComparer makes a Comparer. self returns the ID under which this server is
// listed; now is the clock, nil means the system's.
func NewComparer(s grant.Store, self func() string, now func() time.Time) *Comparer {
	if now == nil {
		now = time.Now
	}
	return &Comparer{store: s, self: self, now: now}
}

// Offset returns how far this clock is ahead of the others, or behind if
// negative. It is unknown while there is no other member, and at first for a
// minute or two.
func (c *Comparer) Offset() (ahead time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, c.known
}

// Run compares until ctx is done.
func (c *Comparer) Run(ctx context.Context) {
	find := c.now()
	for ctx.Err() == nil {
		now := c.now()
		if !now.Before(find) || find.Sub(now) > findEvery { // or the clock was set back
			c.find(ctx, now)
			find = c.now().Add(findEvery)
		}
		c.peers = slices.DeleteFunc(c.peers, func(p *peer) bool {
			now := c.now()
			if now.Before(p.next) && p.next.Sub(now) < 2*fineCycles*p.every {
				return false
			}
			return !c.read(ctx, p)
		})
		c.tell()
		wait := find.Sub(c.now())
		for _, p := range c.peers {
			wait = min(wait, p.next.Sub(c.now()))
		}
		select {
		case <-time.After(min(max(wait, leastWait), findEvery)):
		case <-ctx.Done():
		}
	}
}

// find looks for members to compare with if there are too few.
func (c *Comparer) find(ctx context.Context, now time.Time) {
	if len(c.peers) >= mostPeers {
		return
	}
	known := func(id string) bool {
		return id == c.self() || slices.ContainsFunc(c.peers, func(p *peer) bool { return p.id == id })
	}
	var found []*peer
	call, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	_ = c.store.List(call, prefix, func(key string, value []byte) bool { // use those that were found
		var m Member
		// Those from the distant past are gone, whatever the clocks.
		if json.Unmarshal(value, &m) == nil && m.Until.After(m.Seen) && m.ID != "" && !known(m.ID) {
			found = append(found, &peer{key: strings.Clone(key), id: m.ID, next: now})
		}
		return true
	})
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	for _, p := range found {
		if len(c.peers) == mostPeers {
			return
		}
		// A member that has gone without notice writes no more: the second read shows
		// that.
		if c.read(ctx, p) {
			c.peers = append(c.peers, p)
		}
	}
}

// read reads the record of a peer, and reports whether the peer is still there.
func (c *Comparer) read(ctx context.Context, p *peer) bool {
	call, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	sent := c.now()
	value, err := c.store.Get(call, p.key)
	got := c.now()
	if err != nil {
		p.next = got.Add(findEvery / 4)
		return true
	}
	var m Member
	if json.Unmarshal(value, &m) != nil || m.ID != p.id || !m.Until.After(m.Seen) {
		return false
	}
	p.every = min(max(m.Until.Sub(m.Seen)/3, 100*time.Millisecond), 10*time.Minute)
	return p.note(m.Seen, sent, got)
}

// note evaluates a read that found the time seen. sent and got are when the
// read began and ended. It reports whether the peer still writes.
func (p *peer) note(seen, sent, got time.Time) bool {
	lo := seen.Sub(got)                           // the time was written before the read ended
	hi := seen.Sub(p.sent) + 2*got.Sub(sent)      // and after the last read that did not find it was sent, apart from delays of the store
	fresh := seen.Sub(sent) + p.every + p.every/8 // and within the last interval, as it is alive
	expect, pair := p.expect, p.pair
	p.expect, p.pair = time.Time{}, false
	switch {
	case p.seen.IsZero():
		p.lo, p.hi = lo, fresh
	case !expect.IsZero():
		if d := seen.Sub(expect); d > irregular || d < -irregular {
			p.lo, p.hi = lo, fresh // a clock was set
		} else {
			p.pair = true
		}
	case seen.Equal(p.seen):
		if lo < p.lo-4*p.every {
			return false // silent for longer than the list allows
		}
		p.pair = pair
	case pair:
		p.lo, p.hi = lo, max(lo, hi)
	case max(p.lo, lo) <= min(p.hi, hi):
		p.lo, p.hi = max(p.lo, lo), min(p.hi, hi)
	default: // a clock was set, or a write was late
		p.lo, p.hi = lo, max(lo, min(hi, fresh))
	}
	p.seen, p.sent = seen, sent
	p.plan(got)
	return true
}

// plan determines when to read next.
func (p *peer) plan(now time.Time) {
	// The next write is expected in this span, by this clock.
	from, to := p.seen.Add(p.every-p.hi), p.seen.Add(p.every-p.lo)
	middle := from.Add(to.Sub(from) / 2)
	switch {
	case !p.pair && to.Sub(from) <= fine && now.Before(from):
		p.expect = p.seen.Add(p.every * (fineCycles - 1))
		p.next = from.Add(p.every*(fineCycles-1) - leastWait)
	case !p.pair && now.Before(middle):
		p.next = middle
	case now.Before(to):
		p.next = to.Add(leastWait)
	default:
		p.next = now.Add(p.every / 4) // it is late
	}
}

// tell publishes the offset.
func (c *Comparer) tell() {
	var all []time.Duration
	for _, p := range c.peers {
		if p.hi-p.lo <= exact {
			all = append(all, p.lo+(p.hi-p.lo)/2)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = len(all) > 0
	if c.known {
		slices.Sort(all)
		n := len(all)
		c.ahead = -(all[(n-1)/2] + all[n/2]) / 2
	}
}
