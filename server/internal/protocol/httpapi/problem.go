package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// A problem is the answer to a failed request (RFC 9457).
type problem struct {
	service.Problem
	allow  string // value of the Allow header
	status int    // instead of that of the kind, if not 0
}

// Error makes a problem an error of service.Terms.
func (p *problem) Error() string { return p.Detail }

// problemf returns a problem with a formatted detail.
func problemf(k service.Kind, format string, a ...any) *problem {
	return &problem{Problem: service.Problem{Kind: k, Detail: fmt.Sprintf(format, a...)}}
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter, r *http.Request) {
	h, status := w.Header(), cmp.Or(p.status, p.Kind.Status())
	if p.Retry > 0 {
		seconds := (p.Retry + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if p.Kind == service.Unauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="firn"`)
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
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
	}{"urn:firn:problem:" + p.Kind.String(), p.Kind.Title(), status, p.Detail, r.URL.EscapedPath(), requestid.Of(r.Context())})
	writeWhole(w, status, "application/problem+json", body.Bytes())
}
