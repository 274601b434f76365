package server

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
)

// TestKnownClients: a request that the server accepted makes its client known,
// over each protocol. A public one does not, nor one that is not complete, or
// refused. If others hold too much, only the connection of an unknown client is
// closed.
func TestKnownClients(t *testing.T) {
	token, hash := auth.NewToken()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	must.Do(t, os.WriteFile(file, []byte("tokens:\n- {name: all, role: admin, sha256: "+hash+"}\n"), 0o600))
	get := func(path, more string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n"
	}
	put := "PUT /v1/sequencers/made HTTP/1.1\r\nHost: localhost\r\nContent-Length: 24\r\n"
	bearer := "Authorization: Bearer " + token + "\r\n"
	next := recordCalls(t, func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := firnv1.NewIDsClient(conn).Next(ctx, &firnv1.NextRequest{Sequencer: "orders"})
		return err
	})
	health := recordCalls(t, func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := healthpb.NewHealthClient(conn).Check(ctx, new(healthpb.HealthCheckRequest))
		return err
	})
	for what, row := range map[string]struct {
		sent          string
		open, guarded bool // known without, and with tokens
	}{
		"HTTP":              {get("/v1/sequencers/orders/next", ""), true, false},
		"HTTP, a token":     {get("/v1/sequencers/orders/next", bearer), true, true},
		"HTTP, health":      {get("/healthz", bearer), false, false},
		"HTTP, a page":      {get("/create", "Accept: text/html\r\n"), true, false},
		"HTTP, sign in":     {get("/sign-in", "Accept: text/html\r\n"), false, false},
		"HTTP, no end":      {strings.TrimSuffix(get("/v1/sequencers/orders/next", ""), "\r\n"), false, false},
		"HTTP, no body":     {put + "\r\n{", false, false},
		"HTTP, no body yet": {put + bearer + "\r\n{", false, true},
		"RESP":              {"NEXT orders\r\n", true, false},
		"RESP, a token":     {"HELLO 2 AUTH default " + token + "\r\n", true, true},
		"RESP, unknown":     {"*1\r\n$1\r\nx\r\n", false, false},
		"RESP, no end":      {"*2\r\n$4\r\nNEXT\r\n$6\r\n", false, false},
		"gRPC":              {next, true, false},
		"gRPC, health":      {health, false, false},
		"gRPC, preface":     {next[:30], false, false},
	} {
		for guarded, want := range map[bool]bool{false: row.open, true: row.guarded} {
			synctest.Test(t, func(t *testing.T) {
				c := Config{Store: new(memstore.Store), Logger: slog.New(slog.DiscardHandler)}
				if guarded {
					c.TokenFile = file
				}
				_, l := onPipes(t, c)
				dial := func() *memConn {
					client, conn := newMemConn(1 << 20)
					l.Add(conn)
					return client
				}
				first, closed := dial(), make(chan struct{})
				_, _ = io.WriteString(first, row.sent)
				go func() { _, _ = io.Copy(io.Discard, first); close(closed) }()
				synctest.Wait()
				for range 100 {
					other := dial()
					defer other.Close()
					_, _ = io.WriteString(other, "GET /"+strings.Repeat("x", 16<<10))
				}
				synctest.Wait()
				got := true
				select {
				case <-closed:
					got = false
				default:
				}
				if got != want {
					t.Errorf("%s, tokens %v: known is %v, want %v", what, guarded, got, want)
				}
				_ = first.Close()
				<-closed
			})
		}
	}
}
