package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// TestRequestID: the ID that a client has sent comes back in answers, problems
// and log lines. An invalid one does not.
func TestRequestID(t *testing.T) {
	var log bytes.Buffer
	backend := failing{here: errors.New("secret")}
	h := NewHandler(Config{Backend: backend, Log: slog.New(requestid.NewHandler(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))})
	for _, tt := range []struct{ path, sent string }{
		{"/v1/sequencers/orders/next", "7c-1"}, {"/v1/sequencers/orders/next", ""}, {"/v1/sequencers/orders/next", "a b"},
		{"/healthz", "h1"}, {"/nowhere", "n1"}, {"//", "n2"}, {"/healthz?x=1", strings.Repeat("x", 129)},
	} {
		log.Reset()
		r := httptest.NewRequest("GET", tt.path, nil)
		r.Host = "localhost"
		if tt.sent != "" {
			r.Header.Set("x-request-id", tt.sent)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		id := w.Header().Get("X-Request-Id")
		if requestid.Valid(tt.sent) && id != tt.sent || !requestid.Valid(tt.sent) && len(id) != 16 {
			t.Errorf("%s with %q: %q comes back", tt.path, tt.sent, id)
		}
		var p struct {
			RequestID string `json:"request_id"`
		}
		if w.Code != 200 && (json.Unmarshal(w.Body.Bytes(), &p) != nil || p.RequestID != id) {
			t.Errorf("%s: the problem is %s, want the ID %s", tt.path, w.Body, id)
		}
		lines := 0
		for line := range bytes.Lines(log.Bytes()) {
			var l struct {
				Msg, Level string
				Status     int
				RequestID  string `json:"request_id"`
			}
			if err := json.Unmarshal(line, &l); err != nil || l.RequestID != id {
				t.Errorf("the log has %s, want the ID %s", line, id)
			}
			if l.Msg == "request" && (l.Status != w.Code || l.Level != "DEBUG") {
				t.Errorf("the log has %s, want the status %d", line, w.Code)
			}
			lines++
		}
		if want := 1 + strings.Count(tt.path, "next"); lines != want {
			t.Errorf("%s: %d log lines, want %d:\n%s", tt.path, lines, want, &log)
		}
	}
}

// TestAllocations: what a request for one ID allocates besides net/http. Three
// of these are for the request ID; without tracing, none is for traces.
func TestAllocations(t *testing.T) {
	s, err := service.NewStatic(service.StaticConfig{Layout: firn.MustParseLayout(fast)})
	if err != nil {
		t.Fatal(err)
	}
	w := &null{header: make(http.Header)}
	r := httptest.NewRequest("GET", "/v1/sequencers/orders/next", nil)
	r.Host = "localhost"
	h := NewHandler(Config{Backend: s, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	got := testing.AllocsPerRun(1000, func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	})
	t.Logf("%v allocations", got)
	if got > 13 {
		t.Errorf("%v allocations, want at most 13", got)
	}
}
