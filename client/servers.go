package client

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// A server is one of Config.Servers.
type server struct {
	name string // as in Config.Servers
	base string // of URLs
	http *http.Client
	link *link // nil where HTTP alone is spoken
}

// A health is the state of a server, as a whole or for one sequencer.
type health struct {
	failures int       // since it last worked
	failed   time.Time // time of the last failure
	until    time.Time // it is not used before
	asked    bool      // the server asked for that, so it is not a last resort either
	err      error     // the last failure
}

// How long a server is left out. The time doubles with each failure, up to the
// longest. The shortest is about what a server takes to start.
const (
	shortestPause = 250 * time.Millisecond
	longestPause  = 30 * time.Second
	longestWish   = 5 * time.Minute // from a Retry-After
)

// pause returns how long a server is left out after a number of failures. It is
// random, so that clients that have seen the same failure do not return at
// once.
func pause(failures int) time.Duration {
	d := longestPause
	if n := failures - 1; n < 20 {
		d = min(shortestPause<<n, d)
	}
	return d/2 + rand.N(d/2+1)
}

// fail records the failure of a request that began at start. Concurrent
// requests fail together and count once.
func (h *health) fail(start time.Time, wish time.Duration, err error) {
	now := time.Now()
	if h.failures == 0 || !start.Before(h.failed) {
		h.failures++
		h.failed = now
		h.asked = false
		h.until = now.Add(pause(h.failures))
	}
	h.err = err
	if wish > 0 {
		wish = min(wish, longestWish)
		wish += rand.N(wish/10 + 1) // never less than the server asked for
		h.asked, h.until = true, now.Add(wish)
	}
}

// A roster picks servers. Its methods are safe for concurrent use by multiple
// goroutines.
type roster struct {
	servers []server

	mu     sync.Mutex
	health []health // of the servers, in their order
}

// A view is the list of servers as one sequencer sees it.
type view struct {
	*roster
	own []health // guarded by mu: observations of this sequencer only
}

// A round records what one call has tried.
type round struct {
	start   time.Time
	tried   []bool // by server: at least once
	refused []bool // by server: not to be tried again

	timeouts int
}

func (r *roster) newView() *view { return &view{roster: r, own: make([]health, len(r.servers))} }

func (r *roster) newRound() round {
	n := len(r.servers)
	return round{start: time.Now(), tried: make([]bool, n), refused: make([]bool, n)}
}

// pick chooses a random server among those that are not left out. If all are,
// it chooses the last resort: the server that returns first, among those that
// the call has not tried and that have not asked for the pause themselves.
// Otherwise it returns -1 and the time until a server is available, or 0 if the
// call must give up.
func (v *view) pick(c *round) (i int, wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	chosen, fit := -1, 0
	resort := -1
	var resortAt, soonest time.Time
	for i := range v.servers {
		if c.refused[i] {
			continue
		}
		until := v.health[i].until
		if own := v.own[i].until; own.After(until) {
			until = own
		}
		if !until.After(now) {
			if fit++; rand.IntN(fit) == 0 {
				chosen = i
			}
			continue
		}
		asked := v.health[i].asked && v.health[i].until.After(now) || v.own[i].asked && v.own[i].until.After(now)
		if !c.tried[i] && !asked && (resort < 0 || until.Before(resortAt)) {
			resort, resortAt = i, until
		}
		if soonest.IsZero() || until.Before(soonest) {
			soonest = until
		}
	}
	switch {
	case chosen >= 0:
		return chosen, 0
	case resort >= 0:
		return resort, 0
	case soonest.IsZero():
		return -1, 0
	}
	return -1, soonest.Sub(now)
}

// worked records that a server has answered, and reports whether it had failed
// before.
func (v *view) worked(i int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	had := v.health[i].failures > 0 || v.own[i].failures > 0
	v.health[i], v.own[i] = health{}, health{}
	return had
}

// failed records that a server has failed, for this sequencer or as a whole,
// and reports whether it is the first time since it last worked.
func (v *view) failed(i int, start time.Time, whole bool, wish time.Duration, err error) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := &v.own[i]
	if whole {
		h = &v.health[i]
	}
	first := h.failures == 0
	h.fail(start, wish, err)
	return first
}

// errors returns the last failures of all servers, for a call that gives up.
func (v *view) errors() (errs []error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.servers {
		h, own := v.health[i], v.own[i]
		if own.err != nil && (h.err == nil || own.failed.After(h.failed)) {
			h = own
		}
		if h.err != nil {
			errs = append(errs, h.err)
		}
	}
	return errs
}

// A ServerStatus is the state of a server for a Client.
type ServerStatus struct {
	Server   string    // as in Config.Servers
	Failures int       // since it last worked
	LeftOut  time.Time // until then it is used only if no other is left; zero or past if it is not left out
	Err      error     // the last failure, if it has not worked since
}
