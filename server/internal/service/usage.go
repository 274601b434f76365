package service

import (
	"context"
	"errors"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

// A Usage is a sequencer in use: one that is open on this server, or that it
// could not open when it was last used.
type Usage struct {
	sequencer.Stats
	Status grant.Status
	Layout firn.Layout // zero if it is not open

	// Refusal is why this server gives no IDs of it; nil if it does, or would
	// as far as it knows.
	Refusal error

	serves bool      // its window is open, and IDs of it can be made
	tried  time.Time // when opening it failed last; zero if it is open
}

// Problem returns the kind of the Refusal, NoProblem without one, and whether
// an operator wanted it.
func (u *Usage) Problem() (k Kind, wanted bool) {
	of := scopeOf(u.Refusal)
	if of == scopeNone {
		return NoProblem, false
	}
	return kindOf(u.Refusal), of == scopeWanted
}

// usedFor is how long a sequencer that could not be opened is in use after the
// last attempt.
const usedFor = 5 * time.Minute

// Usage calls yield for every sequencer in use.
func (b *StoreBackend) Usage(yield func(name string, u *Usage)) {
	for name, u := range b.usage(time.Now().Add(-usedFor)) {
		yield(name, u)
	}
}

// usage returns the sequencers in use by name. Those that could not be opened
// are only those that were tried since a time.
func (b *StoreBackend) usage(since time.Time) map[string]*Usage {
	all := make(map[string]*Usage)
	clock := b.config.Options.Now
	if clock == nil {
		clock = time.Now
	}
	now := clock()
	for name, e := range b.opened() { // not under the lock: statistics read the clock
		config := e.Config()
		u := &Usage{Stats: e.Stats(), Status: e.Status(), Layout: config.Layout}
		isOpen := u.Status.Holds(now)
		u.Refusal = clockRefusal(config.Layout, config.MaxAhead, u.Lead, now)
		u.serves = isOpen && u.Refusal == nil
		if !isOpen && u.Refusal == nil {
			u.Refusal = storeError(context.Background(), u.Status.Err)
		}
		all[name] = u
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for name, f := range b.failed {
		if all[name] == nil && f.at.After(since) {
			all[name] = &Usage{Refusal: f.err, tried: f.at}
		}
	}
	for _, u := range all {
		if errors.As(u.Refusal, new(*grant.NodesExhaustedError)) && b.config.Peers != nil && b.config.Peers.CanHelp() {
			u.Refusal = nil
		}
	}
	return all
}

// clockRefusal returns why a generator makes no IDs at a time; nil if it does.
func clockRefusal(l firn.Layout, maxAhead, lead time.Duration, now time.Time) error {
	if err := l.CheckTime(now); err != nil {
		return err
	}
	if lead-maxAhead > shortWait {
		return &firn.ClockError{Now: now, Last: now.Add(lead), Wait: lead - maxAhead}
	}
	return nil
}

// shortWait is for how long a clock that went back does not make a server
// unready.
const shortWait = time.Second
