package httpapi

import (
	"errors"
	"net/http"

	"github.com/firnid/firn/server/service"
)

// A Guard knows who may do what. It must be safe for use by many goroutines at once.
type Guard interface {
	// Check returns nil if whoever sent the request may do that, with the sequencer
	// that is named where there is one. Else it returns an error that is
	// ErrUnauthorized or ErrForbidden.
	Check(r *http.Request, need service.Need, name string) error
}

// mayRead reports whether whoever asks sees the sequencer of this name, where they may ask
// for lists.
func (h *Handler) mayRead(r *http.Request, name string) bool {
	return h.guard == nil || h.guard.Check(r, service.Read, name) == nil
}

// check asks the Guard, where there is one.
func (h *Handler) check(r *http.Request, need service.Need, name string) *problem {
	if h.guard == nil || need == service.Anything {
		return nil
	}
	err := h.guard.Check(r, need, name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, service.ErrForbidden):
		return problemf(service.Forbidden, "%v", err)
	}
	return problemf(service.Unauthorized, "%v: send a token, as in Authorization: Bearer firn_…", err)
}
