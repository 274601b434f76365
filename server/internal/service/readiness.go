package service

import (
	"context"
	"time"
)

// readyMost limits how many times a second a Backend is asked whether it is
// ready.
const readyMost = 20

// A Readiness reports whether a Backend is ready. Anyone may ask a server that,
// without a token, and an answer can cost the store reads, a List and a claim.
// So a Readiness asks the Backend once for all waiting callers, up to readyMost
// times a second. It must be made by NewReadiness, and is safe for concurrent
// use.
type Readiness struct {
	backend Backend
	limit   time.Duration
	turn    chan struct{} // of size 1: guards the fields below
	err     error         // last answer of the Backend
	at      time.Time     // when it answered
	since   time.Time     // when the current second began
	asked   int           // questions in that second
}

// NewReadiness makes a Readiness. limit is how long the Backend may take; 0
// means ReadyLimit, which is also the maximum.
func NewReadiness(b Backend, limit time.Duration) *Readiness {
	if limit <= 0 || limit > ReadyLimit {
		limit = ReadyLimit
	}
	return &Readiness{backend: b, limit: limit, turn: make(chan struct{}, 1)}
}

// Ready returns the answer of Backend.Ready, or a recent one if it was asked
// often enough in the last second. The context ends the wait but not the
// question, because others may wait for it too.
func (r *Readiness) Ready(ctx context.Context) error {
	came := time.Now()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.at.After(came) {
		return r.err // of a question that was in progress
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
