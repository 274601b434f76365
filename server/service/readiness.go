package service

import (
	"context"
	"time"
)

// readyMost is how often a second a Backend is asked whether it is ready,
// whoever wants to know.
const readyMost = 20

// A Readiness tells whether a Backend is ready. Anyone may ask a server that,
// without a token, and an answer can cost reads of the store, a List and a
// claim. So it asks the Backend once at a time, for all who wait, and readyMost
// times a second. It must be made by NewReadiness, and is safe for use by many
// goroutines at once.
type Readiness struct {
	backend Backend
	limit   time.Duration
	turn    chan struct{} // of size 1: guards what follows
	err     error         // that the Backend answered last
	at      time.Time     // when it did
	since   time.Time     // the beginning of a second
	asked   int           // how often in that second
}

// NewReadiness makes a Readiness. The limit is how long the Backend may take; 0
// means ReadyLimit, which it never exceeds.
func NewReadiness(b Backend, limit time.Duration) *Readiness {
	if limit <= 0 || limit > ReadyLimit {
		limit = ReadyLimit
	}
	return &Readiness{backend: b, limit: limit, turn: make(chan struct{}, 1)}
}

// Ready is what Backend.Ready says, or has said within the last second if it
// was asked often enough. The context ends the wait and not the question, as
// others want to know too.
func (r *Readiness) Ready(ctx context.Context) error {
	came := time.Now()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.at.After(came) {
		return r.err // of a question that was under way
	}
	if came.Sub(r.since) >= time.Second {
		r.since, r.asked = came, 0
	}
	if r.asked++; r.asked > readyMost {
		return r.err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.limit)
	defer cancel()
	r.err = r.backend.Ready(limited)
	r.at = time.Now()
	return r.err
}
