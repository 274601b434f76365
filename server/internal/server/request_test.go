package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestRequestIDs: the ID that a client has sent comes back in headers, errors
// and log lines, over HTTP and gRPC. An invalid one does not.
func TestRequestIDs(t *testing.T) {
	for what, c := range map[string]Config{"good": {Static: new(service.StaticBackendConfig)}, "bad": {Store: moody(func(context.Context) error { return errors.New("secret") })}} {
		log := new(nettest.Output)
		c.Logger = slog.New(requestid.NewHandler(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		s, address := served(t, c)
		conn := nettest.DialGRPC(t, address)
		ids := firnv1.NewIDsClient(conn)
		web := func(path string) func(sent string) (header, inError string) {
			return func(sent string) (header, inError string) {
				r := httptest.NewRequest("GET", path, nil)
				r.Host = "localhost"
				if sent != "" {
					r.Header.Set("x-request-id", sent)
				}
				w := httptest.NewRecorder()
				s.handler.ServeHTTP(w, r)
				var p struct {
					RequestID string `json:"request_id"`
				}
				_ = json.Unmarshal(w.Body.Bytes(), &p)
				return w.Header().Get(requestid.Header), p.RequestID
			}
		}
		call := func(do func(context.Context, *metadata.MD) error) func(sent string) (header, inError string) {
			return func(sent string) (header, inError string) {
				ctx := t.Context()
				if sent != "" {
					ctx = metadata.AppendToOutgoingContext(ctx, requestid.Metadata, sent)
				}
				var all metadata.MD
				for _, d := range status.Convert(do(ctx, &all)).Details() {
					if info, ok := d.(*errdetails.RequestInfo); ok {
						inError = info.GetRequestId()
					}
				}
				return strings.Join(all.Get(requestid.Metadata), " "), inError
			}
		}
		bad := what == "bad"
		logged := map[bool]int{false: 1, true: 2}[bad] // the request, and its error
		for _, row := range []struct {
			name   string
			ask    func(sent string) (header, inError string)
			fails  bool
			logged int
		}{
			{"next", web("/v1/sequencers/orders/next"), bad, logged},
			{"healthz", web("/healthz"), false, 1},
			{"nowhere", web("/nowhere"), true, 1},
			{"no path", web("//"), true, 1},
			{"Next", call(func(ctx context.Context, header *metadata.MD) error {
				_, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders"}, grpc.Header(header))
				return err
			}), bad, logged},
		} {
			for _, sent := range []string{"", "order-17", "a b", strings.Repeat("x", 129)} {
				before := len(log.String())
				id, inError := row.ask(sent)
				if requestid.Valid(sent) && id != sent || !requestid.Valid(sent) && len(id) != 16 {
					t.Errorf("%s, %s with %q: %q comes back", what, row.name, sent, id)
				}
				if row.fails && inError != id {
					t.Errorf("%s, %s with %q: the error has the ID %q, want %q", what, row.name, sent, inError, id)
				}
				lines := 0
				for line := range strings.Lines(log.String()[before:]) {
					var l struct {
						Msg       string
						RequestID string `json:"request_id"`
					}
					must.Do(t, json.Unmarshal([]byte(line), &l))
					if l.Msg == "request" || strings.HasSuffix(l.Msg, " failed") && l.RequestID != "" {
						lines++
					}
					if l.Msg == "request" && l.RequestID != id {
						t.Errorf("%s, %s: the log has %s, want the ID %s", what, row.name, line, id)
					}
				}
				if lines != row.logged {
					t.Errorf("%s, %s with %q: %d lines of the request, want %d:\n%s", what, row.name, sent, lines, row.logged, log.String()[before:])
				}
			}
		}
	}
}

// TestLifeAfterPanic: a panic ends its own request, logs a line with its stack
// and a request that failed, and later requests are answered, over every
// protocol.
func TestLifeAfterPanic(t *testing.T) {
	var healed atomic.Bool
	store, log := moody(func(context.Context) error {
		if !healed.Load() {
			panic("store")
		}
		return nil
	}), new(nettest.Output)
	_, address := served(t, Config{Store: store, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	conn := nettest.DialGRPC(t, address)
	asks := []func() string{
		func() string {
			_, err := firnv1.NewIDsClient(conn).Next(t.Context(), &firnv1.NextRequest{Sequencer: "orders"})
			return fmt.Sprint(err)
		},
	}
	for _, request := range []string{"POST /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "NEXT orders\r\nQUIT\r\n"} {
		asks = append(asks, func() string {
			c := nettest.Dial(t, address)
			fmt.Fprint(c, request)
			text, _ := io.ReadAll(c)
			return string(text)
		})
	}
	for i, want := range []string{"rpc error: code = Internal desc = see the server's log", "", ""} {
		if got := asks[i](); got != want {
			t.Errorf("answer %d is %q, want %q", i, got, want)
		}
	}
	if text := log.String(); strings.Count(text, `panicked"`) != 3 || strings.Count(text, "panic=store") != 3 || strings.Count(text, "service.(*StoreBackend)") < 3 || strings.Count(text, "status=500") != 1 {
		t.Errorf("the log has %s, want three lines with the panic and its stack, and status 500", text)
	}
	healed.Store(true)
	for i, want := range []string{"<nil>", "HTTP/1.1 200 OK", "$18"} {
		if got := asks[i](); !strings.HasPrefix(got, want) {
			t.Errorf("later answer %d is %q, want %q", i, got, want)
		}
	}
}
