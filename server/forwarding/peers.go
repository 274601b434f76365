package forwarding

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn/server/members"
)

const (
	fresh    = 2 * time.Second // how long a list of servers is valid
	loadTime = 2 * time.Second // how long the store may take for a new list if there is an old one

	mostShunned = 10_000 // maximum number of remembered failures
)

// peers are the other servers of the store. They are safe for concurrent use.
type peers struct {
	load func(context.Context) ([]members.Member, error)
	self string

	mu      sync.Mutex // guards the fields below
	list    []members.Member
	read    time.Time
	loading bool
	shunned map[subject]shunned
	slow    map[string]time.Time // until when servers, by ID, count as slow: they did not answer in time for some sequencer
}

// A subject is what a failure concerns: a server, by ID, so that it is asked
// again after a restart; or one sequencer at a server.
type subject struct {
	id        string
	sequencer string // "" for the server as a whole
}

// A shunned server failed recently.
type shunned struct {
	why   result
	until time.Time
}

// A peer is another server, with the result of asking it recently: gave if
// nothing is known against it.
type peer struct {
	members.Member
	shunned result
	slow    bool // it recently did not answer in time for some sequencer
}

func newPeers(load func(context.Context) ([]members.Member, error), self string) *peers {
	return &peers{load: load, self: self, shunned: make(map[subject]shunned), slow: make(map[string]time.Time)}
}

// forCall returns the servers to ask for a sequencer, in random order: first
// those that announce a node ID of it, then those that may have one without
// listing it; in each group, slow ones last.
func (p *peers) forCall(ctx context.Context, name string) ([]peer, error) {
	list, err := p.all(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var found []peer
	p.mu.Lock()
	for _, m := range list {
		if m.Address == "" || m.ID == p.self || !m.Until.After(now) {
			continue
		}
		why := gave
		for _, of := range [...]subject{{m.ID, ""}, {m.ID, name}} {
			if s, ok := p.shunned[of]; ok && s.until.After(now) {
				why = s.why
				break
			}
		}
		found = append(found, peer{m, why, p.slow[m.ID].After(now)})
	}
	p.mu.Unlock()
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	rank := func(p peer) (n int) {
		switch {
		case lists(p.Member, name):
		case isFull(p.Member):
			n = 2
		default:
			n = 4
		}
		if p.slow {
			n++
		}
		return n
	}
	slices.SortStableFunc(found, func(a, b peer) int { return cmp.Compare(rank(a), rank(b)) })
	return found, nil
}

// all returns the list. One call reads a new one; meanwhile, and while the
// store does not answer, other calls use the old one.
func (p *peers) all(ctx context.Context) ([]members.Member, error) {
	p.mu.Lock()
	list, old := p.list, !p.read.IsZero()
	if old && (time.Since(p.read) <= fresh || p.loading) {
		p.mu.Unlock()
		return list, nil
	}
	p.loading = true
	p.mu.Unlock()
	next, err := []members.Member(nil), errors.New("the store panicked")
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.loading = false
		switch {
		case err == nil:
			p.list, p.read = next, time.Now()
		case old:
			p.read = time.Now().Add(-fresh / 2) // retry a little later
		}
	}()
	if old {
		limited, cancel := context.WithTimeout(ctx, loadTime)
		defer cancel()
		ctx = limited
	}
	if next, err = p.load(ctx); err != nil && old {
		return list, nil
	}
	return next, err
}

// shun records that a server failed when it was asked for a sequencer.
func (p *peers) shun(id, name string, r result) {
	if resultTable[r].shun == 0 {
		return
	}
	of := subject{id, ""}
	if !resultTable[r].whole {
		of.sequencer = strings.Clone(name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for of, s := range p.shunned {
		if !s.until.After(now) {
			delete(p.shunned, of)
		}
	}
	if len(p.shunned) >= mostShunned {
		clear(p.shunned)
	}
	for id, until := range p.slow {
		if !until.After(now) {
			delete(p.slow, id)
		}
	}
	if r == slow {
		p.slow[id] = now.Add(resultTable[r].shun)
	}
	p.shunned[of] = shunned{r, now.Add(resultTable[r].shun)}
}

// lists reports whether a server announces a node ID of a sequencer.
func lists(m members.Member, name string) bool {
	return slices.ContainsFunc(m.Holds, func(h members.Held) bool { return h.Sequencer == name })
}

// isFull reports whether a server may hold more node IDs than it lists. If the
// names of sequencers are as long as possible, a record has room for half of
// MaxHeld.
func isFull(m members.Member) bool { return len(m.Holds) >= members.MaxHeld/2 }
