package nettest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firnid/firn/internal/test/must"
)

// A recorder is a connection that records what is written to it.
type recorder struct {
	net.Conn
	mu   sync.Mutex
	sent bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.sent.Write(b)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// Recorded returns what a real gRPC client sends during do. Some of it, such as
// acknowledgements, it sends only in response to answers, so it must be
// recorded before it is cut.
func Recorded(t testing.TB, addr string, do func(context.Context, *grpc.ClientConn) error) string {
	t.Helper()
	var r *recorder
	conn, err := grpc.NewClient("passthrough:///firn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		// Without fixed windows the client also sends pings whenever it gets an
		// answer. Replayed without the answers in between, the server takes them for
		// a flood.
		grpc.WithInitialWindowSize(1<<20), grpc.WithInitialConnWindowSize(1<<20),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			if r != nil {
				return nil, errors.New("a second connection")
			}
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			r = &recorder{Conn: c}
			return r, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), must.Patience)
	defer cancel()
	must.Do(t, do(ctx, conn))
	_ = conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent.String()
}
