package respapi

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// logLines receives the lines of a log.
type logLines chan string

func (l logLines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// TestPanicEndsItsConnection: a panic in a command closes its connection only,
// and logs one line. serveTCP checks that the server still shuts down.
func TestPanicEndsItsConnection(t *testing.T) {
	log := make(logLines, 10)
	var armed atomic.Bool
	static := newStatic(t, "default")
	s := NewServer(Config{
		Backend: servicetest.Backend(func(ctx context.Context, name string) (*service.Sequencer, error) {
			if name == "bad" && armed.Load() {
				panic("backend")
			}
			return static.Sequencer(ctx, name, nil)
		}),
		Trace: func(ctx context.Context) (context.Context, func(string, int, int, int)) {
			return ctx, func(string, int, int, int) {}
		},
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	addr := serveTCP(t, s)
	other := dialTCP(t, addr)
	if got := other.do("PING"); got != "+PONG" {
		t.Fatal(got)
	}
	armed.Store(true)
	c := dialTCP(t, addr)
	if got := c.do("NEXT bad"); got != "read: "+io.EOF.Error() {
		t.Errorf("NEXT bad = %s, want the end of the connection", got)
	}
	armed.Store(false)
	if got := other.do("NEXT bad"); strings.HasPrefix(got, "-") || strings.HasPrefix(got, "read") {
		t.Errorf("on another connection NEXT bad = %s", got)
	}
	if text := <-log; !strings.Contains(text, "connection panicked") || !strings.Contains(text, "panic=backend") || !strings.Contains(text, "panic_test.go") || len(log) > 0 {
		t.Errorf("the log has %s and %d lines more, want one with the panic and its stack", text, len(log))
	}
	if n := s.Conns(); n != 1 {
		t.Errorf("there are %d connections, want 1", n)
	}
}
