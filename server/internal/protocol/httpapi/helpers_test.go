package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// day is the time of the tests.
var day = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newStatic(t testing.TB, layout string) *service.StaticBackend {
	return servicetest.NewStaticBackend(t, layout)
}

// handlerOn makes a Handler whose Backend is a StoreBackend on a store.
func handlerOn(t *testing.T, s grant.Store, f service.Front) *Handler {
	t.Helper()
	f.Backend = servicetest.NewStoreBackend(t, s, service.StoreBackendConfig{})
	return NewHandler(Config{Front: f})
}

// stats returns the statistics of a sequencer's generator.
func stats(t testing.TB, b service.Backend, name string) (found firn.Stats) {
	t.Helper()
	must.Get(b.Sequencer(context.Background(), name, nil))(t)
	b.(*service.StaticBackend).Usage(func(n string, s *service.Usage) {
		if n == name {
			found = s.Stats.Stats
		}
	})
	return found
}

// do sends a request without a body to a handler.
func do(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	w := nettest.Ask(h, method, target, "", headers...)
	if n := w.Header().Get("Content-Length"); w.Body.Len() > 2048 && n != fmt.Sprint(w.Body.Len()) {
		panic(fmt.Sprintf("%s %s: Content-Length %q of %d bytes", method, target, n, w.Body.Len()))
	}
	return w
}

// A problemJSON is a problem as a client reads it.
type problemJSON struct {
	Type, Title, Detail, Instance string
	Status                        int
}

// wantProblem checks that w is a complete problem of this kind, with each of
// the texts in its detail.
func wantProblem(t testing.TB, w *httptest.ResponseRecorder, k service.Kind, texts ...string) problemJSON {
	t.Helper()
	var p problemJSON
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
	}
	if got, want := w.Header().Get("Content-Type"), "application/problem+json"; got != want {
		t.Errorf("Content-Type = %q, want %q", got, want)
	}
	if w.Code != k.Status() || p.Status != k.Status() || p.Type != "urn:firn:problem:"+k.String() || p.Title != k.Title() {
		t.Errorf("status %d and problem %+v, want %+v", w.Code, p, k)
	}
	if p.Detail == "" || !strings.HasPrefix(p.Instance, "/") {
		t.Errorf("problem %+v, want a detail and an instance", p)
	}
	for _, text := range texts {
		if !strings.Contains(p.Detail, text) {
			t.Errorf("detail %q does not say %q", p.Detail, text)
		}
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control = %q, want no-store", got)
	}
	return p
}
