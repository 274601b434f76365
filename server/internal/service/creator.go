package service

import (
	"errors"
	"fmt"

	"github.com/firnid/firn/server/internal/access/auth"
)

// A Creator is a client that uses a sequencer, and so creates it if it does not
// exist. A nil *Creator is this server itself, which may create all.
type Creator struct {
	credentials auth.Credentials
	auth        auth.Authorizer // nil allows everything
	mustExist   bool            // its request creates no sequencer
	typed       bool            // its request needs a sequencer with a prefix
}

var errNoPrefix = errors.New("the sequencer has no prefix for typed text, and was not created: create it with firn " +
	"sequencer create --prefix, or set prefix in its template; both need a store")

// A createError means that a client may not create the sequencer that it uses.
type createError struct {
	Name  string
	Cause error
}

func (e *createError) Error() string {
	return fmt.Sprintf("sequencer %s does not exist, and was not created: %v", e.Name, e.Cause)
}

func (e *createError) Unwrap() error { return e.Cause }

// client returns the client.
func (c *Creator) client() Client {
	if c == nil {
		return Client{}
	}
	return clientOf(&c.credentials)
}

// check returns why the client may not create a sequencer with this prefix of
// typed text.
func (c *Creator) check(name, prefix string) error {
	if c == nil {
		return nil
	}
	if c.auth != nil {
		if err := c.auth.Allow(&c.credentials, auth.Create, name); err != nil {
			return &createError{Name: name, Cause: err}
		}
	}
	if c.mustExist {
		return fmt.Errorf("%w %s: a GET without a token creates none on this server; send a POST, or create it first",
			ErrNoSequencer, name)
	}
	if c.typed && prefix == "" {
		return errNoPrefix
	}
	return nil
}
