package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn/grant"
)

// readyMost limits how many times a second a Backend is asked whether it is
// ready.
const readyMost = 20

// A Readiness is a Backend that is asked whether it is ready by all protocols.
// Anyone may ask a server that, without a token, and an answer can cost the
// store reads, a List and a claim. So a Readiness asks the Backend once for all
// waiting callers, up to readyMost times a second. It must be made by
// NewReadiness, and is safe for concurrent use.
type Readiness struct {
	Backend
	limit time.Duration
	turn  chan struct{} // of size 1: guards the fields below
	err   error         // last answer of the Backend
	at    time.Time     // when it answered
	since time.Time     // when the current second began
	asked int           // questions in that second
}

// NewReadiness makes a Readiness. limit is how long the Backend may take; 0
// means ReadyLimit, which is also the maximum.
func NewReadiness(b Backend, limit time.Duration) *Readiness {
	if limit <= 0 || limit > ReadyLimit {
		limit = ReadyLimit
	}
	return &Readiness{Backend: b, limit: limit, turn: make(chan struct{}, 1)}
}

// Ready returns the answer of the Backend, or a recent one if it was asked
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
	r.err = r.Backend.Ready(limited)
	r.at = time.Now()
	return r.err
}

// A lack is the reason why this server could acquire no node ID of a sequencer:
// no node ID is free, or the server's clock is refused.
type lack struct {
	name string
	err  error
	full *grant.ExhaustedError // nil if the clock is refused
}

// lackOf returns the lack in an error of a sequencer, or nil.
func lackOf(name string, err error) *lack {
	l := &lack{name: name, err: err}
	switch {
	case errors.As(err, &l.full) && l.full.Sequencer == name:
		return l
	case errors.Is(err, grant.ErrClockAhead), errors.Is(err, grant.ErrClockBehind):
		l.full = nil
		return l
	}
	return nil
}

// noteLack records whether a node ID of a name was available.
func (c *Cluster) noteLack(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sound = c.sound && !isUnreadable(err)
	if l := lackOf(name, err); l != nil {
		c.lack = l
	} else if c.lack != nil && c.lack.name == name {
		c.lack = nil
	}
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
	all, last := c.opened()
	c.mu.RLock()
	sound := c.sound
	c.mu.RUnlock()
	isOpen := false
	for name, e := range all { // not under the lock: statistics read the clock
		s := e.stats().State
		if s.Phase == grant.Holding && s.Until.After(now) {
			return nil
		}
		if l := lackOf(name, s.Err); l != nil {
			last, isOpen = l, true // it keeps trying by itself
		}
		sound = sound && !isUnreadable(s.Err)
	}
	if _, err := c.store.Get(ctx, readyKey); err != nil {
		return storeError(ctx, err)
	}
	if silent := c.patience.vain(need{writes: true}); silent != nil { // it may answer reads and refuse writes
		return silent
	}
	if !sound {
		if err := c.checkConfigs(ctx); err != nil {
			return err
		}
	}
	switch {
	case last == nil || last.full != nil && c.c.Peers != nil && c.c.Peers.CanHelp():
		return nil
	case isOpen:
		return last.err
	}
	err := error(nil)
	if last.full != nil {
		err = c.stillLacks(ctx, last.full)
	}
	if err == nil {
		_, err = c.own(ctx, last.name, nil)
	}
	if lackOf(last.name, err) != nil {
		return err
	}
	if ctx.Err() == nil { // otherwise there was no time to find out
		c.noteLack(last.name, nil)
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

// stillLacks returns nil if a node ID that was not free may be free now.
// Otherwise the error says that none is, or why none is needed any more.
func (c *Cluster) stillLacks(ctx context.Context, was *grant.ExhaustedError) error {
	now := time.Now()
	// The sequencer may have been removed; do not create it again here.
	info, err := grant.Lookup(ctx, c.store, was.Sequencer)
	switch {
	case err != nil:
		return err
	case info.State != grant.Attached:
		return grant.ErrDetached
	case was.Ahead:
		if now.Before(was.Free) {
			return was
		}
		return nil
	}
	info.Config.Nodes = &was.Nodes
	n, first, err := CountNodes(info, now, func(yield func(grant.NodeInfo, error) bool) error {
		return grant.Nodes(ctx, c.store, was.Sequencer, yield)
	})
	if err != nil || n.Free > 0 || n.Held == 0 { // a claim finds out what blocks them
		return err
	}
	return &grant.ExhaustedError{Sequencer: was.Sequencer, Nodes: was.Nodes, Free: first}
}
