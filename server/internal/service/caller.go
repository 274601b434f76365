package service

import (
	"context"
	"fmt"

	"github.com/firnid/firn/server/internal/access/auth"
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

// mayCreate returns nil if the client of a call may create a sequencer by using
// it. Calls without an Authorizer may create any.
func mayCreate(ctx context.Context, name string) error {
	k, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		return nil
	}
	mine := k.c
	if err := k.a.Allow(&mine, auth.Create, name); err != nil {
		return &CreateError{Name: name, Cause: err}
	}
	return nil
}
