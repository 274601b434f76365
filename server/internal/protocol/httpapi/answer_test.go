package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
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

// An answer allocates nothing per ID, whatever its form: only for the batch as
// a whole.
func TestAnswerAllocs(t *testing.T) {
	of := func(m media, f firn.Format, runs bool) nextRequest {
		return nextRequest{service.Request{Form: form.Of(f), Runs: runs}, m}
	}
	for _, layout := range []string{fast, "bits=time:48.seq:20.node:48,epoch=2026-01-01T00:00:00Z"} {
		s, err := service.NewStatic(service.StaticConfig{Layout: firn.MustParseLayout(layout), Node: 1})
		if err != nil {
			t.Fatal(err)
		}
		seq, _ := s.Sequencer(context.Background(), "orders", nil)
		for _, q := range []nextRequest{
			of(mediaJSON, firn.Decimal, false),
			of(mediaJSON, firn.Base62, false),
			of(mediaText, firn.Hex, false),
			of(mediaOctets, firn.Raw, false),
			of(mediaJSON, firn.Decimal, true),
		} {
			// With one ID more, the allocations of Batch.All and of net/http's header
			// are the same.
			allocs := func(count int) float64 {
				q.Count = count
				w := &nullWriter{header: make(http.Header)}
				return testing.AllocsPerRun(100, func() {
					b, err := seq.Take(context.Background(), q.Count)
					if err != nil {
						t.Fatal(err)
					}
					q.answer(w, &b)
				})
			}
			one, many := allocs(1), allocs(1000)
			// The race detector makes a sync.Pool drop some of its items.
			if one > 8 || many > one+4 {
				t.Errorf("%s, %+v: %v allocations for one ID and %v for 1000", layout, q, one, many)
			}
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
	w := &nullWriter{header: make(http.Header)}
	r := httptest.NewRequest("GET", "/v1/sequencers/orders/next", nil)
	r.Host = "localhost"
	h := NewHandler(Config{Backend: s, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	got := testing.AllocsPerRun(1000, func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	})
	t.Logf("%v allocations", got)
	if got > 13 {
		t.Errorf("%v allocations, want at most 13", got)
	}
}
