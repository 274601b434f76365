package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/service"
)

// A nullWriter discards everything.
type nullWriter struct {
	header http.Header
	writes int
	err    error
}

func (w *nullWriter) Header() http.Header { return w.header }
func (w *nullWriter) WriteHeader(int)     {}
func (w *nullWriter) Write(b []byte) (int, error) {
	w.writes++
	return len(b), w.err
}

// fast is a layout with room for everything that a benchmark requests.
const fast = "bits=time:40.node:2.seq:20,epoch=2026-01-01T00:00:00Z"

// TestAllocations: what a request for one ID allocates besides net/http. Three
// of these are for the request ID; without tracing, none is for traces.
func TestAllocations(t *testing.T) {
	s := must.Get(service.NewStaticBackend(service.StaticBackendConfig{Layout: firn.MustParseLayout(fast)}))(t)
	w := &nullWriter{header: make(http.Header)}
	r := httptest.NewRequest("GET", "/v1/sequencers/orders/next", nil)
	r.Host = "localhost"
	h := NewHandler(Config{Front: service.Front{Backend: s, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}})
	got := testing.AllocsPerRun(1000, func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	})
	t.Logf("%v allocations", got)
	if got > 13 {
		t.Errorf("%v allocations, want at most 13", got)
	}
}
