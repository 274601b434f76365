package httpapi

import (
	"errors"
	"net/http"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// credentials returns the credentials of a request.
func (h *Handler) credentials(r *http.Request) *auth.Credentials {
	c := auth.FromHeader(r.Header["Authorization"], r.TLS)
	c.Address = r.RemoteAddr
	return c
}

// sees reports whether the caller may see a sequencer in a list.
func (h *Handler) sees(who *auth.Credentials, name string) bool {
	return h.c.Auth == nil || h.c.Auth.Allow(who, auth.See, name) == nil
}

// check calls the Authorizer, if there is one.
func (h *Handler) check(who *auth.Credentials, do auth.Action, name string) *problem {
	if h.c.Auth == nil || do == auth.Anything {
		return nil
	}
	err := h.c.Auth.Allow(who, do, name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrForbidden):
		return problemf(service.Forbidden, "%v", err)
	}
	return problemf(service.Unauthorized, "%v: send a token: Authorization: Bearer firn_…", err)
}
