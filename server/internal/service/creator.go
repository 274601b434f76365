package service

import (
	"errors"
	"fmt"

	"github.com/firnid/firn/server/internal/access/auth"
)

// A MayCreate returns the client that uses a sequencer, or an error if that
// client may not create it, with this prefix of typed text, by using it. A nil
// MayCreate allows every sequencer to be created.
type MayCreate func(prefix string) (*auth.Credentials, error)

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

// allowed returns the client that creates a sequencer by using it, or why it
// may not.
func (m MayCreate) allowed(name, prefix string) (*auth.Credentials, error) {
	if m == nil {
		return new(auth.Credentials), nil
	}
	c, err := m(prefix)
	switch {
	case err == errNoPrefix || errors.Is(err, ErrNoSequencer):
		return nil, err
	case err != nil:
		return nil, &createError{Name: name, Cause: err}
	}
	return c, nil
}

// client returns the name of the client, "" without one.
func (m MayCreate) client() string {
	if m != nil {
		if c, _ := m(""); c != nil {
			return c.Name()
		}
	}
	return ""
}
