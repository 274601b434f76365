package service

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// A RateError means that a client creates sequencers, or uses unknown names, too
// fast.
type RateError struct {
	Wait time.Duration
	what string
}

func (e *RateError) Error() string {
	return fmt.Sprintf("%s: retry in %v", e.what, e.Wait.Round(time.Millisecond))
}

// A rateLimit limits how often each client does something: burst times at once,
// then once per interval. A client is the name of its entry in the token file;
// those without one are one client.
type rateLimit struct {
	burst int
	every time.Duration

	mu   sync.Mutex           // guards paid
	paid map[string]time.Time // by client: when what it has done is paid off
}

// wait returns how long the next one of a client must wait.
func (r *rateLimit) wait(client string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(time.Until(r.paid[client]), 0) - time.Duration(r.burst-1)*r.every
}

// note counts one of a client.
func (r *rateLimit) note(client string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, paid := time.Now(), r.paid[client]
	if paid.Before(now) {
		// Those that owe nothing are not kept.
		maps.DeleteFunc(r.paid, func(_ string, paid time.Time) bool { return paid.Before(now) })
		paid = now
	}
	if r.paid == nil {
		r.paid = make(map[string]time.Time)
	}
	r.paid[client] = paid.Add(r.every)
}
