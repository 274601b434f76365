package httpapi

import (
	"errors"
	"net/http"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// credentials returns the credentials of a request.
func (h *Handler) credentials(r *http.Request) *auth.Credentials {
	c := auth.FromHeader(r.Header["Authorization"], h.tls(r))
	c.Address = r.RemoteAddr
	return c
}

// sees returns a function that reports whether the caller may see a sequencer
// in a list.
func (h *Handler) sees(r *http.Request) func(name string) bool {
	if h.auth == nil {
		return func(string) bool { return true }
	}
	c := h.credentials(r)
	return func(name string) bool { return h.auth.Allow(c, auth.See, name) == nil }
}

// check calls the Authorizer, if there is one.
func (h *Handler) check(r *http.Request, do auth.Action, name string) *problem {
	if h.auth == nil || do == auth.Anything {
		return nil
	}
	err := h.auth.Allow(h.credentials(r), do, name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrForbidden):
		return problemf(service.Forbidden, "%v", err)
	}
	return problemf(service.Unauthorized, "%v: send a token: Authorization: Bearer firn_…", err)
}
