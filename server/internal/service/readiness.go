package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn/grant"
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

// Ready returns an answer of the Backend, which may take ReadyLimit. The context
// ends the wait but not the question, because others may wait for it too.
func (r *Readiness) Ready(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if time.Since(r.at) >= readyFor {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReadyLimit)
		defer cancel()
		r.err = r.Backend.Ready(limited)
		r.at = time.Now()
	}
	return r.err
}

// isLack reports whether an error means that this server could acquire no node
// ID of a sequencer: none is free, or the server's clock is refused.
func isLack(err error) bool {
	return errors.As(err, new(*grant.ExhaustedError)) || errors.Is(err, grant.ErrClockAhead) || errors.Is(err, grant.ErrClockBehind)
}

// lastLack returns the latest lack of a node ID, and the sequencer.
func (c *Cluster) lastLack() (name string, last failure) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for n, f := range c.failed {
		if isLack(f.err) && f.at.After(last.at) {
			name, last = n, f
		}
	}
	return name, last
}

// readyKey is read to check whether the store answers. It is never written.
const readyKey = "ready"

// Ready returns nil if this server can make IDs as far as it knows: a sequencer
// has its node ID, or the store answers reads and writes, some configuration
// can be read if there are any, and no sequencer lacked a node ID. Otherwise
// the error is that of the store, or says which record cannot be read, which
// node IDs are held or why the clock is refused. One unreadable configuration
// among others does not make a server unready: no other server can read it
// either.
//
// After a lack Ready tries again, because clients do not ask a server that is
// not ready. If no node ID was free, another server that can be asked
// (ClusterConfig.Peers) is enough. If the clock is refused it is not: this
// server cannot check what others give.
func (c *Cluster) Ready(ctx context.Context) error {
	now := time.Now()
	name, lack := c.lastLack()
	c.mu.RLock()
	sound := c.sound
	c.mu.RUnlock()
	isOpen := false
	for _, e := range c.opened() { // not under the lock: statistics read the clock
		s := e.Stats().Status
		if s.Phase == grant.Holding && s.Until.After(now) {
			return nil
		}
		if isLack(s.Err) {
			lack.err, isOpen = s.Err, true // it keeps trying by itself
		}
		sound = sound && !isUnreadable(s.Err)
	}
	if _, err := c.store.Get(ctx, readyKey); err != nil {
		return storeError(ctx, err)
	}
	if silent := c.silence.tooLong(need{writes: true}); silent != nil { // it may answer reads and refuse writes
		return silent
	}
	if !sound {
		if err := c.checkConfigs(ctx); err != nil {
			return err
		}
	}
	switch {
	case lack.err == nil || errors.As(lack.err, new(*grant.ExhaustedError)) && c.config.Peers != nil && c.config.Peers.CanHelp():
		return nil
	case isOpen:
		return lack.err
	}
	// The sequencer may have been removed; do not create it again here.
	_, err := c.openOwn(ctx, name, func(string) (*auth.Credentials, error) { return nil, auth.ErrForbidden })
	switch {
	case isLack(err):
		return err
	case err != nil && ctx.Err() != nil: // there was no time to find out
		return lack.err
	}
	return nil
}

// isUnreadable reports whether an error means that a record cannot be read.
func isUnreadable(err error) bool {
	return errors.Is(err, grant.ErrDamaged) || errors.Is(err, grant.ErrNewerVersion)
}

// checkConfigs returns an error if the store has configurations that cannot be
// read, and none of a sequencer that could be used.
func (c *Cluster) checkConfigs(ctx context.Context) error {
	var first error
	usable := false
	err := grant.Sequencers(ctx, c.store, func(_ string, info grant.Info, err error) bool {
		first = cmp.Or(first, err)
		usable = err == nil && info.State == grant.Attached
		return !usable
	})
	switch {
	case err != nil:
		return storeError(ctx, err)
	case usable || first == nil:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sound = true
		return nil
	case errors.Is(first, grant.ErrDamaged):
		return fmt.Errorf("%w; do not delete it: restore the store from a backup and fence it (docs/restore.md)", first)
	}
	return first
}
