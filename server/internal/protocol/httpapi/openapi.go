package httpapi

import (
	_ "embed"
	"net/http"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// openAPI describes the HTTP API. TestOpenAPI checks it against the server.
//
//go:embed openapi.yaml
var openAPI []byte

// openapi answers with the description of the API.
func (h *Handler) openapi(w http.ResponseWriter, _ *http.Request, _ *auth.Credentials) *service.Problem {
	return writeWhole(w, http.StatusOK, "application/yaml", openAPI)
}
