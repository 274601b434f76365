package service

import (
	"fmt"
	"sync"
	"time"
)

// How fast a server creates sequencers that are used and do not exist, and how
// fast it reads the store for unknown names, for all clients together. Both
// protect the store: a sequencer stays in it for ever. A client that uses names
// at random can so delay the first use of other names, and no more.
const (
	createBurst = 1000
	createEvery = time.Second
	missBurst   = 100
	missEvery   = 10 * time.Millisecond
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
// per interval. The zero value has not been used.
type rateLimit struct {
	mu   sync.Mutex // guards paid
	paid time.Time  // when what has happened is paid off
}

// wait returns how long the next one must wait.
func (r *rateLimit) wait(burst int, every time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(time.Until(r.paid), 0) - time.Duration(burst-1)*every
}

// note counts one.
func (r *rateLimit) note(every time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.paid.Before(now) {
		r.paid = now
	}
	r.paid = r.paid.Add(every)
}
