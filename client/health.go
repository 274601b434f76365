package client

import (
	"math/rand/v2"
	"time"
)

// A health is the state of a server, as a whole or for one sequencer. A server
// whose last request failed, or takes long, is a suspect: as long as another
// one works, calls do not wait for it, and only probes are sent to it.
type health struct {
	failures     int       // since it last worked
	failedAt     time.Time // time of the last failure
	pausedUntil  time.Time // it is not used before
	probeAfter   time.Time // no probe is sent before
	askedToPause bool      // the server asked for the pause, so it is not a last resort either
	err          error     // why it is a suspect; nil if it is not
}

// How long a server is left out. The time doubles with each failure, up to the
// longest. The shortest is about what a server takes to start.
const (
	minPause      = 250 * time.Millisecond
	maxPause      = 10 * time.Second
	maxRetryAfter = 5 * time.Minute // from a Retry-After
)

// randomPause returns how long a server is left out after a number of failures.
// It is random, so that clients that have seen the same failure do not return
// at once.
func randomPause(failures int) time.Duration {
	d := maxPause
	if n := failures - 1; n < 20 {
		d = min(minPause<<n, d)
	}
	return d/2 + rand.N(d/2+1)
}

// recordFailure records the failure of a request that began at start.
// Concurrent requests fail together and count once.
func (h *health) recordFailure(start time.Time, retryAfter time.Duration, err error) {
	now := time.Now()
	if h.failures == 0 || !start.Before(h.failedAt) {
		h.failures++
		h.failedAt = now
		h.askedToPause = false
		h.pausedUntil = now.Add(randomPause(h.failures))
	}
	if retryAfter > 0 {
		retryAfter = min(retryAfter, maxRetryAfter)
		retryAfter += rand.N(retryAfter/10 + 1) // never less than the server asked for
		h.askedToPause, h.pausedUntil = true, now.Add(retryAfter)
	}
	h.markSuspect(start, err, true)
}

// markSuspect makes the server a suspect because of a request that began at
// start. The next probe waits at least as long as that request took. One that
// only takes long does not hide why the previous one failed.
func (h *health) markSuspect(start time.Time, err error, failed bool) {
	now := time.Now()
	if failed || h.failures == 0 {
		h.err = err
	}
	h.probeAfter = now.Add(max(h.pausedUntil.Sub(now), now.Sub(start), randomPause(1)))
}
