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

// minHedgeAfter is the shortest time after which another server is asked beside
// one that has not answered.
const minHedgeAfter = 200 * time.Millisecond

// A serverSet is the servers of a Client. Its methods are safe for concurrent
// use by multiple goroutines.
type serverSet struct {
	servers []server
	timeout time.Duration // of a request

	mu     sync.Mutex
	health []health // of the servers, in their order
}

// A serverView is the list of servers as one sequencer sees it.
type serverView struct {
	*serverSet
	name      string   // of the sequencer
	ownHealth []health // guarded by mu: observations of this sequencer only

	// answerTime is how long the first answer to a call takes, a moving
	// average. It is guarded by mu.
	answerTime time.Duration

	// limitedUntil is until when no server is asked, because one has refused
	// this client with status 429. It is guarded by mu.
	limitedUntil time.Time
}

// A callState records what a call has tried to get its IDs.
type callState struct {
	start    time.Time
	count    int         // of IDs to request
	isProbe  bool        // of a probe, not of a call
	timeouts int         // requests that took too long
	refusal  *Error      // the first that says that the request is wrong, or nil
	tries    []serverTry // by server
}

// A serverTry is what a call has done with a server.
type serverTry struct {
	tried   bool  // at least once
	refused error // why it is not to be tried again, or nil
	pending bool  // a request is in progress
}

func (s *serverSet) newView(name string) *serverView {
	return &serverView{serverSet: s, name: name, ownHealth: make([]health, len(s.servers))}
}

func (s *serverSet) newCallState(count int) callState {
	return callState{start: time.Now(), count: count, tries: make([]serverTry, len(s.servers))}
}

// pick chooses a random server among those that are not suspects, and returns
// the suspects to probe beside it. If all are suspects, it chooses a random one
// that is not left out, or else the last resort: the one that returns first,
// among those that the call has not tried and that have not asked for the pause
// themselves. Otherwise, or if the client is limited, it returns -1 and the
// time until a server is available, or 0 if the call must give up.
func (v *serverView) pick(c *callState) (i int, probes []int, wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.limitedUntil.After(now) {
		return -1, nil, v.limitedUntil.Sub(now)
	}
	var good, fit []int
	lastResort := -1
	var lastResortAt, soonest time.Time
	for i := range v.servers {
		if c.tries[i].refused != nil || c.tries[i].pending {
			continue
		}
		h, own := &v.health[i], &v.ownHealth[i]
		if h.err == nil && own.err == nil {
			good = append(good, i)
			continue
		}
		if now.After(h.probeAfter) && now.After(own.probeAfter) {
			probes = append(probes, i)
		}
		until := h.pausedUntil
		if own.pausedUntil.After(until) {
			until = own.pausedUntil
		}
		if !until.After(now) {
			fit = append(fit, i)
			continue
		}
		asked := h.askedToPause && h.pausedUntil.After(now) || own.askedToPause && own.pausedUntil.After(now)
		if !c.tries[i].tried && !asked && (lastResort < 0 || until.Before(lastResortAt)) {
			lastResort, lastResortAt = i, until
		}
		if soonest.IsZero() || until.Before(soonest) {
			soonest = until
		}
	}
	switch {
	case good != nil:
		for _, i := range probes { // no other one before this one has ended
			v.health[i].probeAfter, v.ownHealth[i].probeAfter = now.Add(v.timeout), now.Add(v.timeout)
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
// takes longer than others is slow. The caller holds mu.
func (v *serverView) hedgeAfter() time.Duration { return max(minHedgeAfter, 2*v.answerTime) }

// recordAnswer records that a server has answered a request that began at
// start, and reports whether it had failed before. If the answer is slow, the
// server stays a suspect, and answerTime changes little: it was probably
// stopped.
func (v *serverView) recordAnswer(i int, start time.Time, isProbe bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	had := v.health[i].failures > 0 || v.ownHealth[i].failures > 0
	v.health[i], v.ownHealth[i] = health{}, health{}
	v.limitedUntil = time.Time{}
	took, slow := time.Since(start), v.hedgeAfter()
	if took >= slow {
		v.suspectServer(i, start, v.noAnswerError(i, start))
	}
	if !isProbe {
		v.answerTime += (min(took, 2*slow) - v.answerTime) / 8
	}
	return had
}

// recordFailure records that a server has failed, for this sequencer or as a
// whole, and reports whether it is the first time since it last worked.
func (v *serverView) recordFailure(i int, start time.Time, ofServer bool, retryAfter time.Duration, err error) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := &v.ownHealth[i]
	if ofServer {
		h = &v.health[i]
	}
	first := h.failures == 0
	h.recordFailure(start, retryAfter, err)
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusTooManyRequests &&
		h.pausedUntil.After(v.limitedUntil) {
		v.limitedUntil = h.pausedUntil
	}
	if v.ownHealth[i].err != nil {
		v.ownHealth[i].markSuspect(start, err, true)
	}
	return first
}

// suspectIfLate makes a server a suspect if it has not answered a request that
// began at start for long. A call with little time proves nothing.
func (v *serverView) suspectIfLate(i int, start time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Since(start) >= v.hedgeAfter() {
		v.suspectServer(i, start, v.noAnswerError(i, start))
	}
}

// noAnswerError returns the error of a request without an answer until now.
func (v *serverView) noAnswerError(i int, start time.Time) error {
	took := time.Since(start).Round(time.Millisecond)
	return fmt.Errorf("client: %s: no answer after %v: %w",
		nameAt(v.name, v.servers[i].name), took, context.DeadlineExceeded)
}

// suspectServer makes a server a suspect. It may answer requests of other
// sequencers, so it must also answer one of this one.
func (v *serverView) suspectServer(i int, start time.Time, err error) {
	v.health[i].markSuspect(start, err, false)
	v.ownHealth[i].markSuspect(start, err, false)
}

// lastErrors returns the last failures of all servers, for a call that gives
// up.
func (v *serverView) lastErrors() (errs []error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.servers {
		h, own := v.health[i], v.ownHealth[i]
		if own.err != nil && (h.err == nil || own.failedAt.After(h.failedAt)) {
			h = own
		}
		if h.err != nil {
			errs = append(errs, h.err)
		}
	}
	return errs
}
