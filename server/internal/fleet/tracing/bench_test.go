package tracing

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/tracingtest"
)

// BenchmarkHTTP and BenchmarkRESP are what traces cost: off, on and not
// sampled, on and sampled.
func BenchmarkHTTP(b *testing.B) {
	backend, err := service.NewStatic(service.StaticConfig{Layout: firn.MustParseLayout("bits=time:40.node:2.seq:20,epoch=2026-01-01T00:00:00Z")})
	if err != nil {
		b.Fatal(err)
	}
	each(b, func(b *testing.B, t *Tracer) {
		h := httpapi.NewHandler(httpapi.Config{Backend: backend, Trace: t.HTTP(false)})
		w := &nowhere{header: make(http.Header)}
		r := httptest.NewRequest("GET", "/v1/sequencers/orders/next", nil)
		r.Host = "localhost"
		for b.Loop() {
			clear(w.header)
			h.ServeHTTP(w, r)
		}
	})
}

func BenchmarkRESP(b *testing.B) {
	each(b, func(b *testing.B, t *Tracer) {
		trace := t.RESP()
		for b.Loop() {
			if trace != nil {
				_, end := trace(b.Context())
				end(Commands{First: "next", Commands: 1, IDs: 1})
			}
		}
	})
}

func each(b *testing.B, run func(*testing.B, *Tracer)) {
	c := tracingtest.New(b)
	zero := 0.0
	for _, row := range []struct {
		name  string
		ratio *float64
	}{{"off", nil}, {"not sampled", &zero}, {"sampled", all()}} {
		b.Run(row.name, func(b *testing.B) {
			var t *Tracer
			if row.ratio != nil {
				var err error
				if t, err = Start(b.Context(), Config{Endpoint: "http://" + c.GRPC, Ratio: row.ratio}); err != nil {
					b.Fatal(err)
				}
				defer t.Shutdown(b.Context())
			}
			b.ReportAllocs()
			run(b, t)
		})
	}
}

// A nowhere is a ResponseWriter that throws away what is written.
type nowhere struct{ header http.Header }

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w *nowhere) WriteHeader(int)             {}
