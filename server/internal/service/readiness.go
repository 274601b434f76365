package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn/grant"
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

// readyKey is read to check whether the store answers. It is never written.
const readyKey = "ready"

// Ready returns nil if this server can make IDs as far as it knows: a sequencer
// has an open window, or the store answers reads and writes, some configuration
// can be read if there are any, and nothing keeps the server from serving those
// in use. If the cause is the server or its store, one is enough to make the
// server unready. Otherwise it is unready if it can serve none, except for
// those that an operator has detached, moved or destroyed. One unreadable
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
		_, err := b.openOwn(ctx, name, &Creator{mustExist: true})
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
	err := grant.Sequencers(ctx, b.store, func(info grant.Info, err error) bool {
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
