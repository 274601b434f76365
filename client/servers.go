package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// A server is one of Config.Servers.
type server struct {
	name string // as in Config.Servers
	pool *pool  // of RESP connections; nil over HTTP
	base string // of URLs
	http *http.Client
}

// slowAfter is the shortest time after which another server is asked beside one
// that has not answered.
const slowAfter = 200 * time.Millisecond

// A roster picks servers. Its methods are safe for concurrent use by multiple
// goroutines.
type roster struct {
	servers []server
	timeout time.Duration // of a request

	mu     sync.Mutex
	health []health // of the servers, in their order
}

// A shortlist is the list of servers as one sequencer sees it.
type shortlist struct {
	*roster
	name string   // of the sequencer
	own  []health // guarded by mu: observations of this sequencer only

	// answerTime is how long the first answer to a call takes, a moving
	// average. It is guarded by mu.
	answerTime time.Duration

	// limited is until when no server is asked, because one has refused this client
	// with status 429. It is guarded by mu.
	limited time.Time
}

// A search records what a call has tried to get its IDs.
type search struct {
	start    time.Time
	count    int      // of IDs to request
	probe    bool     // of a probe, not of a call
	timeouts int      // requests that took too long
	refusal  *Error   // the first that says that the request is wrong, or nil
	done     []effort // by server
}

// An effort is what a call has done with a server.
type effort struct {
	tried   bool  // at least once
	refused error // why it is not to be tried again, or nil
	pending bool  // a request is in progress
}

func (r *roster) newShortlist(name string) *shortlist {
	return &shortlist{roster: r, name: name, own: make([]health, len(r.servers))}
}

func (r *roster) newSearch(count int) search {
	return search{start: time.Now(), count: count, done: make([]effort, len(r.servers))}
}

// pick chooses a random server among those that are not suspects, and returns
// the suspects to probe beside it. If all are suspects, it chooses a random one
// that is not left out, or else the last resort: the one that returns first,
// among those that the call has not tried and that have not asked for the pause
// themselves. Otherwise, or if the client is limited, it returns -1 and the time
// until a server is available, or 0 if the call must give up.
func (l *shortlist) pick(c *search) (i int, probes []int, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.limited.After(now) {
		return -1, nil, l.limited.Sub(now)
	}
	var good, fit []int
	lastResort := -1
	var lastResortAt, soonest time.Time
	for i := range l.servers {
		if c.done[i].refused != nil || c.done[i].pending {
			continue
		}
		h, own := &l.health[i], &l.own[i]
		if h.err == nil && own.err == nil {
			good = append(good, i)
			continue
		}
		if now.After(h.probe) && now.After(own.probe) {
			probes = append(probes, i)
		}
		until := h.until
		if own.until.After(until) {
			until = own.until
		}
		if !until.After(now) {
			fit = append(fit, i)
			continue
		}
		asked := h.asked && h.until.After(now) || own.asked && own.until.After(now)
		if !c.done[i].tried && !asked && (lastResort < 0 || until.Before(lastResortAt)) {
			lastResort, lastResortAt = i, until
		}
		if soonest.IsZero() || until.Before(soonest) {
			soonest = until
		}
	}
	switch {
	case good != nil:
		for _, i := range probes { // no other one before this one has ended
			l.health[i].probe, l.own[i].probe = now.Add(l.timeout), now.Add(l.timeout)
		}
		return good[rand.IntN(len(good))], probes, 0
	case fit != nil:
		return fit[rand.IntN(len(fit))], nil, 0
	case lastResort >= 0:
		return lastResort, nil, 0
	case soonest.IsZero():
		return -1, nil, 0
	}
	return -1, nil, soonest.Sub(now)
}

// hedgeAfter returns how long a request of this sequencer may take before
// another server is asked. It depends on the fastest servers: one that always
// takes longer than others is slow.
func (l *shortlist) hedgeAfter() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow()
}

// slow is hedgeAfter for a caller that holds mu.
func (l *shortlist) slow() time.Duration { return max(slowAfter, 2*l.answerTime) }

// worked records that a server has answered a request that began at start, and
// reports whether it had failed before. If the answer is slow, the server stays
// a suspect, and answerTime changes little: it was probably stopped.
func (l *shortlist) worked(i int, start time.Time, probe bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	had := l.health[i].failures > 0 || l.own[i].failures > 0
	l.health[i], l.own[i] = health{}, health{}
	l.limited = time.Time{}
	took, slow := time.Since(start), l.slow()
	if took >= slow {
		l.suspect(i, start, l.noAnswer(i, start))
	}
	if !probe {
		l.answerTime += (min(took, 2*slow) - l.answerTime) / 8
	}
	return had
}

// failed records that a server has failed, for this sequencer or as a whole,
// and reports whether it is the first time since it last worked.
func (l *shortlist) failed(i int, start time.Time, ofServer bool, retryAfter time.Duration, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &l.own[i]
	if ofServer {
		h = &l.health[i]
	}
	first := h.failures == 0
	h.fail(start, retryAfter, err)
	if e := (*Error)(nil); errors.As(err, &e) && e.Status == http.StatusTooManyRequests && h.until.After(l.limited) {
		l.limited = h.until
	}
	if l.own[i].err != nil {
		l.own[i].suspect(start, err, true)
	}
	return first
}

// late makes a server a suspect if it has not answered a request that began at
// start for long. A call with little time proves nothing.
func (l *shortlist) late(i int, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(start) >= l.slow() {
		l.suspect(i, start, l.noAnswer(i, start))
	}
}

// noAnswer returns the error of a request without an answer until now.
func (l *shortlist) noAnswer(i int, start time.Time) error {
	took := time.Since(start).Round(time.Millisecond)
	return fmt.Errorf("client: %s: no answer after %v: %w",
		place(l.name, l.servers[i].name), took, context.DeadlineExceeded)
}

// suspect makes a server a suspect. It may answer requests of other sequencers,
// so it must also answer one of this.
func (l *shortlist) suspect(i int, start time.Time, err error) {
	l.health[i].suspect(start, err, false)
	l.own[i].suspect(start, err, false)
}

// errors returns the last failures of all servers, for a call that gives up.
func (l *shortlist) errors() (errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.servers {
		h, own := l.health[i], l.own[i]
		if own.err != nil && (h.err == nil || own.failed.After(h.failed)) {
			h = own
		}
		if h.err != nil {
			errs = append(errs, h.err)
		}
	}
	return errs
}
