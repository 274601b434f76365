package httpapi

import (
	"net/http"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/service"
)

// members answers with the servers of the store; none without one.
func (h *Handler) members(w http.ResponseWriter, r *http.Request, creds *auth.Credentials) *service.Problem {
	all := []members.Server{}
	if a, p := h.front.Admin(creds); p == nil {
		ctx, cancel := h.front.Limited(r.Context())
		defer cancel()
		listed, err := a.Members(ctx)
		if err != nil {
			return service.ProblemOf(err, h.front.RequestTimeout, ctx.Err() != nil)
		}
		all = append(all, listed...)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"members": all})
}
