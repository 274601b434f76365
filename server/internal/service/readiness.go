package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/auth"
)

// readyFor is how long an answer is given again: docs/security.md has the limit
// that follows.
const readyFor = 50 * time.Millisecond

// A Readiness is a Backend that is asked whether it is ready by all protocols.
// Anyone may ask a server that, without a token, and an answer can cost the
// store reads, a List and a claim. So a Readiness asks the Backend once for all
// waiting callers, and gives its answer again for a moment. It must be made by
// NewReadiness, and is safe for concurrent use.
type Readiness struct {
	Backend
	turn chan struct{} // of size 1: guards the fields below
	err  error         // last answer of the Backend
	at   time.Time     // when it answered
}

// NewReadiness makes a Readiness.
func NewReadiness(b Backend) *Readiness {
	return &Readiness{Backend: b, turn: make(chan struct{}, 1)}
}

// Ready returns an answer of the Backend, which may take lookupTimeout. The
// context ends the wait but not the question, because others may wait for it
// too.
func (r *Readiness) Ready(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if time.Since(r.at) >= readyFor {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		r.err = r.Backend.Ready(limited)
		r.at = time.Now()
	}
	return r.err
}

// A scope is what a Kind says of a server that gives no IDs of a sequencer. The
// table in docs/runbooks.md has the consequences of each.
type scope int

const (
	scopeNone      scope = iota // it ends by itself, or concerns a request
	scopeWanted                 // an operator wanted it
	scopeStore                  // Ready looks at the cause itself: the store, or its configurations
	scopeSequencer              // other sequencers may be served
	scopeServer                 // the cause is the server or its store
)

// scopeOf returns the scope of an error.
func scopeOf(err error) scope {
	if err == nil {
		return scopeNone
	}
	return kinds[kindOf(err)].scope
}

// clockRefusal returns why a generator makes no IDs at a time; nil if it does.
func clockRefusal(l firn.Layout, maxAhead, lead time.Duration, now time.Time) error {
	switch {
	case !now.Before(l.End()):
		return firn.ErrTimeOver
	case now.Before(l.Epoch()):
		return &firn.ClockError{Now: now, Last: l.Epoch(), Wait: l.Epoch().Sub(now)}
	case lead-maxAhead > shortWait:
		return &firn.ClockError{Now: now, Last: now.Add(lead), Wait: lead - maxAhead}
	}
	return nil
}

// shortWait is for how long a clock that went back does not make a server
// unready.
const shortWait = time.Second

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

// Holds reports whether a sequencer has an open window.
func Holds(s grant.Status, now time.Time) bool {
	return (s.Phase == grant.Holding || s.Phase == grant.Losing) && s.Until.After(now)
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
		isOpen := Holds(u.Status, now)
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
		if errors.As(u.Refusal, new(*grant.ExhaustedError)) && b.config.Peers != nil && b.config.Peers.CanHelp() {
			u.Refusal = nil
		}
	}
	return all
}

// Usage calls yield for every sequencer in use.
func (b *StoreBackend) Usage(yield func(name string, u *Usage)) {
	for name, u := range b.usage(time.Now().Add(-usedFor)) {
		yield(name, u)
	}
}

// readyKey is read to check whether the store answers. It is never written.
const readyKey = "ready"

// Ready returns nil if this server can make IDs as far as it knows: a sequencer
// has an open window, or the store answers reads and writes, some configuration
// can be read if there are any, and nothing keeps the server from serving those
// in use. If the cause is the server or its store, one is enough to
// make the server unready. Otherwise it is unready if it can serve none, except
// for those that an operator has detached, moved or destroyed. One unreadable
// configuration among others does not make a server unready: no other server
// can read it either.
//
// After a refusal Ready tries again, because clients do not ask a server that
// is not ready. If no node ID was free, another server that can be asked
// (StoreBackendConfig.Peers) is enough. If the clock is refused it is not: this
// server cannot check what others give.
func (b *StoreBackend) Ready(ctx context.Context) error {
	b.mu.RLock()
	sound := b.configsReadable
	b.mu.RUnlock()
	all := b.usage(time.Time{})
	for _, u := range all {
		if u.serves {
			return nil
		}
		sound = sound && !isUnreadable(u.Refusal)
	}
	if _, err := b.store.Get(ctx, readyKey); err != nil {
		return storeError(ctx, err)
	}
	// It may answer reads and refuse writes.
	if silent := b.silence.tooLong(storeUse{writes: true}); silent != nil {
		return silent
	}
	if !sound {
		if err := b.checkConfigs(ctx); err != nil {
			return err
		}
	}
	for {
		name, u := worst(all)
		switch {
		case u == nil:
			return nil
		case u.tried.IsZero(): // an open one keeps trying by itself
			return u.Refusal
		}
		// The sequencer may have been removed; do not create it again here.
		_, err := b.openOwn(ctx, name, func(string) (*auth.Credentials, error) { return nil, auth.ErrForbidden })
		switch {
		case err == nil:
			return nil
		case scopeOf(err) >= scopeSequencer || kindOf(err) == StoreUnavailable:
			return err
		case ctx.Err() != nil: // there was no time to find out
			return u.Refusal
		}
		delete(all, name)
	}
}

// worst returns the sequencer in use that makes a server unready; nil if none
// does. Among several it is an open one if that decides, and otherwise the one
// whose turn to be tried is next.
func worst(all map[string]*Usage) (name string, worst *Usage) {
	served := false
	comesFirst := func(u *Usage, of scope) bool {
		switch {
		case worst == nil || of != scopeOf(worst.Refusal):
			return worst == nil || of > scopeOf(worst.Refusal)
		case u.tried.IsZero() != worst.tried.IsZero():
			return u.tried.IsZero() == (of == scopeServer)
		}
		return u.tried.Before(worst.tried)
	}
	for n, u := range all {
		of := scopeOf(u.Refusal)
		served = served || of == scopeNone
		if of >= scopeSequencer && comesFirst(u, of) {
			name, worst = n, u
		}
	}
	if worst != nil && served && scopeOf(worst.Refusal) == scopeSequencer {
		return "", nil
	}
	return name, worst
}

// isUnreadable reports whether an error means that a record cannot be read.
func isUnreadable(err error) bool {
	return errors.Is(err, grant.ErrDamaged) || errors.Is(err, grant.ErrNewerVersion)
}

// checkConfigs returns an error if the store has configurations that cannot be
// read, and none of a sequencer that could be used.
func (b *StoreBackend) checkConfigs(ctx context.Context) error {
	var first error
	usable := false
	err := grant.Sequencers(ctx, b.store, func(_ string, info grant.Info, err error) bool {
		first = cmp.Or(first, err)
		usable = err == nil && info.State == grant.Attached
		return !usable
	})
	switch {
	case err != nil:
		return storeError(ctx, err)
	case usable || first == nil:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.configsReadable = true
		return nil
	case errors.Is(first, grant.ErrDamaged):
		return fmt.Errorf("%w; do not delete it: restore the store from a backup and fence it (docs/restore.md)", first)
	}
	return first
}
