package httpapi

import (
	"errors"
	"net/http"
)

// A Need is what a client must be allowed to do.
type Need int

// The needs. Each is of a role; what a role may do beside it is the Guard's business.
const (
	Anything Need = iota // whoever asks: health, and what this is
	Generate             // IDs of the sequencer that is named
	Inspect              // what an ID says
	Read                 // what the fleet does: of a sequencer where one is named, else at all
	ReadAll              // what it does, of every sequencer
	Admin                // to change it
)

// A Guard knows who may do what. It must be safe for use by many goroutines at once.
type Guard interface {
	// Check returns nil if whoever sent the request may do that, with the sequencer
	// that is named where there is one. Else it returns an error that is
	// ErrUnauthorized or ErrForbidden.
	Check(r *http.Request, need Need, name string) error
}

// Errors of a Guard.
var (
	ErrUnauthorized = errors.New("who asks is not known")
	ErrForbidden    = errors.New("who asks may not do that")
)

// mayRead reports whether whoever asks sees the sequencer of this name, where they may ask
// for lists.
func (h *Handler) mayRead(r *http.Request, name string) bool {
	return h.guard == nil || h.guard.Check(r, Read, name) == nil
}

// check asks the Guard, where there is one.
func (h *Handler) check(r *http.Request, need Need, name string) *problem {
	if h.guard == nil || need == Anything {
		return nil
	}
	err := h.guard.Check(r, need, name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrForbidden):
		return problemf(forbidden, "%v", err)
	}
	return problemf(unauthorized, "%v: send a token, as in Authorization: Bearer firn_…", err)
}
