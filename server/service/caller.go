package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/config"
)

// A caller is the client of a call.
type caller struct {
	a auth.Authorizer
	c auth.Credentials
}

type callerKey struct{}

// Find returns the sequencer of a name for a client that is already authorized
// to take its IDs. If the sequencer does not exist, it is created if the client
// may do that too; without an Authorizer every client may. The credentials are
// requested only if the sequencer is not open.
func Find(ctx context.Context, b Backend, name string, a auth.Authorizer, c func() *auth.Credentials) (Sequencer, error) {
	if q, ok := b.Opened(name); ok {
		return q, nil
	}
	if a != nil {
		// A copy, because opening the sequencer may outlast the call.
		ctx = context.WithValue(ctx, callerKey{}, &caller{a, *c()})
	}
	return b.Sequencer(ctx, name)
}

// A CreateError means that a client may not create the sequencer that it uses.
type CreateError struct {
	Name  string
	Cause error
}

func (e *CreateError) Error() string {
	return fmt.Sprintf("sequencer %s does not exist, and was not created: %v", e.Name, e.Cause)
}

func (e *CreateError) Unwrap() error { return e.Cause }

// allow asks the Authorizer whether the client of a call may do something with
// a sequencer. Calls without an Authorizer may do everything.
func allow(ctx context.Context, do auth.Action, name string) error {
	k, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		return nil
	}
	mine := k.c
	return k.a.Allow(&mine, do, name)
}

// mayCreate returns nil if the client of a call may create a sequencer by using
// it, and counts that as a creation.
func mayCreate(ctx context.Context, name string) error {
	if err := allow(ctx, auth.Create, name); err != nil {
		return &CreateError{Name: name, Cause: err}
	}
	return nil
}

// mayLook returns nil if the client of a call may look in the store for a
// sequencer that is not open. Clients that may take its IDs may do so, at a
// limited pace.
func mayLook(ctx context.Context, name string) error {
	err := allow(ctx, auth.Look, name)
	if _, ok := errors.AsType[*auth.PaceError](err); ok {
		return fmt.Errorf("sequencer %s was not looked up: %w", name, err)
	}
	return nil
}

// missed counts a use of a sequencer that the store does not have.
func missed(ctx context.Context, name string) {
	_ = allow(ctx, auth.Missed, name) // counted whatever the result
}

// How often the Cluster looks for names similar to one that does not exist. Any
// client that may take IDs can trigger this.
const (
	namesEvery   = 10 * time.Second       // between lists of the store
	suggestEvery = 250 * time.Millisecond // between suggestions
	mostNames    = 10_000
)

// suggestions are the names of a store. The zero value is empty.
type suggestions struct {
	mu    sync.Mutex // guards the fields below; held while the store is read
	names []string
	read  time.Time
	next  time.Time
}

// noSequencer is the error for a name that must exist. It suggests the most
// similar name that exists and that the client may use, if there was time to
// look.
func (c *Cluster) noSequencer(ctx context.Context, name string) error {
	if near := c.near.of(ctx, c.store, name); near != "" {
		return fmt.Errorf("%w %s: did you mean %s? This server does not create sequencers by use; create it first", ErrNoSequencer, name, near)
	}
	return fmt.Errorf("%w %s: this server does not create sequencers by use; create it first", ErrNoSequencer, name)
}

func (s *suggestions) of(ctx context.Context, store grant.Store, name string) string {
	if Forwarded(ctx) || !s.mu.TryLock() {
		return ""
	}
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.next) {
		return ""
	}
	s.next = now.Add(suggestEvery)
	if s.read.IsZero() || now.Sub(s.read) >= namesEvery {
		s.names, s.read = nil, now
		_ = grant.Sequencers(ctx, store, func(name string, _ grant.Info, _ error) bool {
			s.names = append(s.names, name)
			return len(s.names) < mostNames
		})
	}
	var may []string
	for _, n := range s.names {
		if config.IsNear(name, n) && allow(ctx, auth.Take, n) == nil {
			may = append(may, n)
		}
	}
	return config.Nearest(name, may)
}
