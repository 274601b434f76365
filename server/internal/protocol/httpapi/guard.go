package httpapi

import (
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

// maySee reports whether the caller may see a sequencer in a list.
func (h *Handler) maySee(creds *auth.Credentials, name string) bool {
	return h.config.Auth == nil || h.config.Auth.Allow(creds, auth.See, name) == nil
}

// authorize calls the Authorizer, if there is one.
func (h *Handler) authorize(creds *auth.Credentials, do auth.Action, name string) *problem {
	if h.config.Auth == nil || do == auth.Anything {
		return nil
	}
	if err := h.config.Auth.Allow(creds, do, name); err != nil {
		return &problem{Problem: service.DeniedProblem(err, "in the header Authorization: Bearer firn_…")}
	}
	return nil
}
