package respapi

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// TestRequestID: the log lines of a command have one request ID, which the
// backend sees too. Another command has another.
func TestRequestID(t *testing.T) {
	var log strings.Builder
	var seen []string
	backend := servicetest.Open(func(ctx context.Context, _ int) (firn.Batch, error) {
		if ctx.Err() != nil {
			return firn.Batch{}, ctx.Err() // a call that may not wait
		}
		seen = append(seen, requestid.Of(ctx))
		return firn.Batch{}, errors.New("secret")
	})
	s := NewServer(Config{Front: service.Front{Backend: backend, Logger: slog.New(requestid.NewHandler(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))}})
	talk(s, line("NEXT orders")+line("PING")+line("NEXT users"))
	if len(seen) != 2 || seen[0] == seen[1] || !requestid.Valid(seen[0]) {
		t.Fatalf("the backend saw %q", seen)
	}
	for _, want := range []string{
		"level=ERROR msg=\"command failed\" sequencer=orders error=secret request_id=" + seen[0],
		"level=ERROR msg=\"command failed\" sequencer=users error=secret request_id=" + seen[1],
		"command=ping commands=1 ids=0 failed=false",
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log has no %s:\n%s", want, &log)
		}
	}
	for _, id := range seen {
		if n := strings.Count(log.String(), "request_id="+id); n != 2 {
			t.Errorf("%d lines have the ID %s, want 2:\n%s", n, id, &log)
		}
	}
	if n := strings.Count(log.String(), "msg=request "); n != 3 {
		t.Errorf("%d lines are of commands, want 3:\n%s", n, &log)
	}
}

type traceKey struct{}

// TestTrace: commands that arrive together are traced together, and their calls
// have the context of the trace.
func TestTrace(t *testing.T) {
	var told []tally
	calls := 0
	count := counting()
	backend := servicetest.Backend(func(ctx context.Context, name string) (*service.Sequencer, error) {
		if ctx.Value(traceKey{}) == nil {
			return nil, errors.New("it is not open yet")
		}
		calls++
		return count.Sequencer(ctx, name, nil)
	})
	s := NewServer(Config{Front: service.Front{Backend: backend}, Trace: func(ctx context.Context) (context.Context, func(string, int, int, int)) {
		return context.WithValue(ctx, traceKey{}, true), func(first string, commands, ids, errors int) {
			told = append(told, tally{first, commands, ids, errors})
		}
	}})
	talk(s, strings.Repeat(line("NEXT orders"), 5)+line("NEXT orders 100")+line("NOTHING")+line("PING"))
	if want := (tally{"next", 8, 105, 1}); len(told) != 1 || told[0] != want {
		t.Errorf("told %+v, want %+v", told, want)
	}
	if calls != 6 {
		t.Errorf("%d calls of the backend have the context, want 6", calls)
	}
	told = nil
	talk(s, "*-5\r\n")
	if want := (tally{"invalid", 1, 0, 1}); len(told) != 1 || told[0] != want {
		t.Errorf("told %+v, want %+v", told, want)
	}
}
