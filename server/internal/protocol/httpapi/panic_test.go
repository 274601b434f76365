package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// recovered makes a request as net/http does, and returns the value of a panic.
func recovered(h http.Handler, method, target string) (w *httptest.ResponseRecorder, what any) {
	defer func() { what = recover() }()
	return do(h, method, target), nil
}

// inRequest reports whether the caller runs in the goroutine of a request: a
// panic elsewhere ends the process, as it should.
func inRequest() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "httpapi.(*Handler).ServeHTTP") {
			return true
		}
		if !more {
			return false
		}
	}
}

// TestRequestsThatPanic: wherever in a request a clock panics, later requests
// are answered, and no lock stays held.
func TestRequestsThatPanic(t *testing.T) {
	const next = "/v1/sequencers/orders/next"
	for _, target := range []string{next, next + "?count=5000", "/readyz", "/v1/sequencers/orders"} {
		panics := 0
		for _, isOpen := range []bool{false, true} {
			n := int32(1)
			for panicsAt(t, target, isOpen, n) {
				n++
			}
			panics += int(n - 1)
		}
		if panics == 0 && target != "/v1/sequencers/orders" {
			t.Errorf("%s does not use the clock", target)
		}
		t.Logf("report: %s: %d panics", target, panics)
	}
}

// panicsAt makes the clock panic at the nth use in a request, and then sends
// other requests. It reports whether the clock was used n times.
func panicsAt(t *testing.T, target string, isOpen bool, n int32) bool {
	t.Helper()
	where := fmt.Sprintf("%s, open before: %t, a panic at the clock's use %d", target, isOpen, n)
	var left atomic.Int32
	ahead := time.Duration(0) // many IDs wait for the clock
	cluster := service.NewCluster(service.ClusterConfig{Admin: service.NewStoreAdmin(new(memstore.Store), nil), Options: sequencer.Options{
		Layout:   firn.Default(),
		MaxAhead: &ahead,
		Member: grant.Member{Now: func() time.Time {
			if left.Load() > 0 && inRequest() && left.Add(-1) == 0 {
				panic("clock")
			}
			return time.Now()
		}},
	}})
	h := NewHandler(Config{Backend: cluster, Limit: 30 * time.Second})
	if isOpen {
		do(h, "POST", "/v1/sequencers/orders/next")
	}
	left.Store(n)
	_, what := recovered(h, "GET", target)
	did := left.Swap(0) == 0
	if did != (what == http.ErrAbortHandler) {
		t.Fatalf("%s: it ends with %v", where, what)
	}
	for _, again := range []string{"/v1/sequencers/orders/next", "/readyz", "/v1/sequencers/orders", target} {
		if w, what := recovered(h, "GET", again); what != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: then %s ends with %v, %v", where, again, what, w)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	if err := cluster.Close(ctx); err != nil {
		t.Errorf("%s: Close: %v", where, err)
	}
	return did
}

// TestPanicIsLogged: a request that panics logs one line with the stack, and is
// a failure of the server in traces and request logs too.
func TestPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	var traced int
	observed := service.NoProblem
	h := NewHandler(Config{
		Backend: servicetest.Backend(func(context.Context, string) (*service.Sequencer, error) { panic("backend") }),
		Logger:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: func(k service.Kind, _ time.Duration) { observed = k },
		Trace: func(r *http.Request, _ string) (context.Context, func(int)) {
			return r.Context(), func(status int) { traced = status }
		},
	})
	if _, what := recovered(h, "GET", "/v1/sequencers/orders/next"); what != http.ErrAbortHandler {
		t.Errorf("it ends with %v, want ErrAbortHandler", what)
	}
	if observed != service.Internal || traced != 500 || strings.Count(log.String(), "status=500") != 1 {
		t.Errorf("observed %s, traced %d, want internal and 500; the log has %s", observed, traced, &log)
	}
	if text := log.String(); strings.Count(text, "request panicked") != 1 || !strings.Contains(text, "panic=backend") || !strings.Contains(text, "panic_test.go") {
		t.Errorf("the log has %s, want one line with the panic and its stack", text)
	}
}
