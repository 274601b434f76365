package service

import (
	"context"
	"time"
)

// ReadyAge is for how long an answer of a Backend about its readiness is given to others
// that ask. Everyone may ask, and a Backend may ask its store.
const ReadyAge = time.Second

// A Readiness remembers for a moment whether a Backend is ready. It must be made by
// NewReadiness, and is safe for use by many goroutines at once.
type Readiness struct {
	b     Backend
	turn  chan struct{} // of size 1: holds the goroutine that uses what follows
	err   error
	asked time.Time // zero if it was not
}

// NewReadiness makes a Readiness.
func NewReadiness(b Backend) *Readiness { return &Readiness{b: b, turn: make(chan struct{}, 1)} }

// Ask returns what the Backend says, or has said within ReadyAge. One caller asks it, and
// the others wait for the answer.
func (r *Readiness) Ask(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.asked.IsZero() || time.Since(r.asked) >= ReadyAge {
		// The answer is for all, so that a caller that gives up does not spoil it.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReadyLimit)
		defer cancel()
		r.err = r.b.Ready(limited)
		r.asked = time.Now()
	}
	return r.err
}
