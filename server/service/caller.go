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

// Find returns the sequencer of a name for a client, which may already take IDs
// of it. If there is no such sequencer, it is created if the client may do
// that, too. Without an Authorizer everyone may. The credentials are asked for
// only if the sequencer is not open.
func Find(ctx context.Context, b Backend, name string, a auth.Authorizer, c func() *auth.Credentials) (Sequencer, error) {
	if q, ok := b.Opened(name); ok {
		return q, nil
	}
	if a != nil {
		// A copy: an opening may outlast the call.
		ctx = context.WithValue(ctx, callerKey{}, &caller{a, *c()})
	}
	return b.Sequencer(ctx, name)
}

// A CreateError says that a client may not create the sequencer that it uses.
type CreateError struct {
	Name  string
	Cause error
}

func (e *CreateError) Error() string {
	return fmt.Sprintf("sequencer %s does not exist, and was not created: %v", e.Name, e.Cause)
}

func (e *CreateError) Unwrap() error { return e.Cause }

// mayCreate returns nil if the client of a call may create a sequencer by using
// it. That counts as a creation.
func mayCreate(ctx context.Context, name string) error {
	k, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		return nil
	}
	mine := k.c
	err := k.a.Allow(&mine, auth.Create, name)
	if err == nil {
		return nil
	}
	return &CreateError{Name: name, Cause: err}
}

// mayLook returns nil if the client of a call may have the store asked for a
// sequencer that is not open.
func mayLook(ctx context.Context, name string) error {
	k, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		return nil
	}
	mine := k.c
	var pace *auth.PaceError // who may take its IDs, may look for it
	if err := k.a.Allow(&mine, auth.Look, name); errors.As(err, &pace) {
		return fmt.Errorf("sequencer %s was not looked for: %w", name, err)
	}
	return nil
}

// missed counts a sequencer that the store does not have.
func missed(ctx context.Context, name string) {
	if k, ok := ctx.Value(callerKey{}).(*caller); ok {
		mine := k.c
		_ = k.a.Allow(&mine, auth.Missed, name) // whatever it says, it is counted
	}
}

// mayTake reports whether the client of a call may know of another sequencer.
func mayTake(ctx context.Context, name string) bool {
	k, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		return true
	}
	mine := k.c
	return k.a.Allow(&mine, auth.Take, name) == nil
}

// How often names are looked for that are like one that does not exist. Anyone
// who may take IDs can have it done.
const (
	namesEvery   = 10 * time.Second       // between lists of the store
	suggestEvery = 250 * time.Millisecond // between suggestions
	mostNames    = 10_000
)

// suggestions are the names of a store. The zero value is empty.
type suggestions struct {
	mu    sync.Mutex // guards what follows, and is held while the store is asked
	names []string
	read  time.Time
	next  time.Time
}

// noSequencer is the error of a name that must exist, with the nearest one that
// does and that the client may use, if there was time to look.
func (c *Cluster) noSequencer(ctx context.Context, name string) error {
	if near := c.near.of(ctx, c.store, name); near != "" {
		return fmt.Errorf("%w %s: did you mean %s? One that is not there must be created first, as this server creates none", ErrNoSequencer, name, near)
	}
	return fmt.Errorf("%w %s: it must be created first, as this server creates none", ErrNoSequencer, name)
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
		if config.IsNear(name, n) && mayTake(ctx, n) {
			may = append(may, n)
		}
	}
	return config.Nearest(name, may)
}
