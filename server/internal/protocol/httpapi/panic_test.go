package httpapi

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// TestPanicIsLogged: a request that panics logs one line with the stack, and is
// a failure of the server in traces and request logs too.
func TestPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	var traced int
	observed := service.NoProblem
	h := NewHandler(Config{
		Front: service.Front{
			Backend: servicetest.Backend(func(context.Context, string) (*service.Sequencer, error) { panic("backend") }),
			Logger:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Observe: func(k service.Kind, _ time.Duration, _ int) { observed = k },
		},
		Trace: func(r *http.Request, _ string) (context.Context, func(int)) {
			return r.Context(), func(status int) { traced = status }
		},
	})
	func() {
		defer func() {
			if what := recover(); what != http.ErrAbortHandler {
				t.Errorf("it ends with %v, want ErrAbortHandler", what)
			}
		}()
		do(h, "GET", "/v1/sequencers/orders/next")
	}()
	if observed != service.Internal || traced != 500 || strings.Count(log.String(), "status=500") != 1 {
		t.Errorf("observed %s, traced %d, want internal and 500; the log has %s", observed, traced, &log)
	}
	if text := log.String(); strings.Count(text, "request panicked") != 1 || !strings.Contains(text, "panic=backend") || !strings.Contains(text, "panic_test.go") {
		t.Errorf("the log has %s, want one line with the panic and its stack", text)
	}
}
