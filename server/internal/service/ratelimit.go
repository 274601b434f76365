package service

import (
	"fmt"
	"sync"
	"time"
)

// A RateError means that clients create sequencers, or use unknown names, too
// fast.
type RateError struct {
	Wait time.Duration
	what string
}

func (e *RateError) Error() string {
	return fmt.Sprintf("%s: retry in %v", e.what, e.Wait.Round(time.Millisecond))
}

// A rateLimit limits how often something happens: burst times at once, then once
// per interval.
type rateLimit struct {
	burst int
	every time.Duration

	mu   sync.Mutex // guards paid
	paid time.Time  // when what has happened is paid off
}

// wait returns how long the next one must wait.
func (r *rateLimit) wait() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(time.Until(r.paid), 0) - time.Duration(r.burst-1)*r.every
}

// note counts one.
func (r *rateLimit) note() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.paid.Before(now) {
		r.paid = now
	}
	r.paid = r.paid.Add(r.every)
}
