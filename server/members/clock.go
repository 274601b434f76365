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

// A Comparer tells how far this clock is from those of other members, by what
// these write of themselves. It must be made by NewComparer. Offset is safe for
// use by many goroutines at once.
//
// A member writes the time by its own clock, at regular intervals. When a read
// of its record still finds the old one and a later read the new one, the time
// that it wrote was between the two. So the Comparer reads when it expects a
// write, each time in the middle of the span in which that may be, and halves
// the span. It costs about two reads in ten seconds for each of a few members
// at first, and two a minute later.
//
// It is as exact as the store is fast: what a member needs to write counts as
// if its clock were behind. Do not use it for anything but to show it.
type Comparer struct {
	store grant.Store
	self  func() string
	now   func() time.Time

	peers []*peer // of Run alone

	mu    sync.Mutex // guards what follows
	ahead time.Duration
	known bool
}

const (
	mostPeers   = 3                      // of whose clocks the one in the middle counts
	findEvery   = time.Minute            // how often it is looked for members
	exact       = time.Second            // a span that is no wider tells something
	fine        = 100 * time.Millisecond // one that is no wider need not be halved
	fineCycles  = 6                      // and is looked at again after so many writes
	irregular   = 250 * time.Millisecond // so far from its time no write is that was due
	leastWait   = 20 * time.Millisecond
	readTimeout = 5 * time.Second
)

// A peer is a member that is compared with.
type peer struct {
	key, id string
	every   time.Duration // between its writes
	seen    time.Time     // as it wrote last, by its clock
	sent    time.Time     // when the last read that found this was sent, by this clock
	lo, hi  time.Duration // its clock is ahead of this one by so much, at least and at most
	next    time.Time     // read

	// What is known well is looked at again by two reads, one before a write and
	// one after it. expect is what the first one is to find; it is zero where none
	// is due.
	expect time.Time
	pair   bool // the first one is done
}

// NewComparer makes a Comparer. self returns the ID that this server is listed
// as; now is the clock, and nil is the system's.
func NewComparer(s grant.Store, self func() string, now func() time.Time) *Comparer {
	if now == nil {
		now = time.Now
	}
	return &Comparer{store: s, self: self, now: now}
}

// Offset is how far this clock is ahead of the others, or behind where it is
// negative. It is not known as long as there is no other member, and at first
// for a minute or two.
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
		if !now.Before(find) || find.Sub(now) > findEvery { // or the clock went back
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

// find looks for members to compare with, where there are too few.
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
	_ = c.store.List(call, prefix, func(key string, value []byte) bool { // those that were found are enough
		var m Member
		// Those of the far past are gone, whatever the clocks.
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
		// One that is gone without a word writes no more: that shows at the second
		// read.
		if c.read(ctx, p) {
			c.peers = append(c.peers, p)
		}
	}
}

// read reads the record of a peer, and reports whether it is still there.
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

// note takes what a read has found: the time that the peer wrote. sent and got
// are when the read began and ended. It reports whether the peer still writes.
func (p *peer) note(seen, sent, got time.Time) bool {
	lo := seen.Sub(got)                           // the time was written before the read ended
	hi := seen.Sub(p.sent) + 2*got.Sub(sent)      // and after the last read that did not find it was sent, but for what the store takes
	fresh := seen.Sub(sent) + p.every + p.every/8 // and since the last interval began, as it lives
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
			return false // it is silent for longer than the list would have it
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

// plan says when to read next.
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

// tell notes what is known.
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
