package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// writeProblem answers a failed request (RFC 9457).
func writeProblem(w http.ResponseWriter, r *http.Request, status int, p *service.Problem) {
	h := w.Header()
	if p.Retry > 0 {
		seconds := (p.Retry + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if p.Kind == service.Unauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="firn"`)
		if credentials(r).OfCertificate() {
			h.Set("Connection", "close")
		}
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // for people, and never shown as HTML
	enc.Encode(struct {      // strings and a number never fail
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Detail    string `json:"detail"`
		Instance  string `json:"instance"`
		RequestID string `json:"request_id,omitempty"`
	}{p.Kind.Type(), p.Kind.Title(), status, p.Detail, r.URL.EscapedPath(),
		requestid.Of(r.Context())})
	writeWhole(w, status, "application/problem+json", body.Bytes())
}
