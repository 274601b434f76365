package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestDrainLosesNothing: clients behind a balancer, which heeds /readyz for new
// connections alone, lose no request when a server drains and stops, over HTTP
// and gRPC, although all of them keep their connections.
func TestDrainLosesNothing(t *testing.T) {
	const clients = 20
	first, firstAt := served(t, Config{Static: new(service.StaticBackendConfig)})
	_, secondAt := served(t, Config{Static: new(service.StaticBackendConfig)})
	var connecting sync.RWMutex // read-locked between a check and its connection
	balance := func(ctx context.Context, _, _ string) (net.Conn, error) {
		connecting.RLock()
		defer connecting.RUnlock()
		to := firstAt
		if r, err := http.Get("http://" + firstAt + "/readyz"); err != nil {
			to = secondAt
		} else {
			if r.StatusCode != 200 {
				to = secondAt
			}
			r.Body.Close()
		}
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	}
	var all sync.WaitGroup
	var failed atomic.Int64
	var done []*atomic.Int64 // requests of each client
	stop := make(chan struct{})
	run := func(ask func() error) {
		mine := new(atomic.Int64)
		done = append(done, mine)
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
				if err := ask(); err != nil {
					failed.Add(1)
					t.Log(err)
				}
				mine.Add(1)
			}
		})
	}
	// more waits until every client has made n more requests.
	more := func(n int64) {
		var targets []int64
		for _, requests := range done {
			targets = append(targets, requests.Load()+n)
		}
		for i, requests := range done {
			for requests.Load() < targets[i] {
				time.Sleep(time.Millisecond)
			}
		}
	}
	for range clients {
		web := &http.Client{Transport: &http.Transport{DialContext: balance}}
		defer web.CloseIdleConnections()
		run(func() error {
			// A POST is not sent again by the client itself.
			r, err := web.Post("http://localhost/v1/sequencers/orders/next", "", nil)
			if err != nil {
				return err
			}
			defer r.Body.Close()
			_, err = io.Copy(io.Discard, r.Body)
			return err
		})
		conn := nettest.DialGRPC(t, "localhost", grpc.WithDisableRetry(),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return balance(ctx, "", "") }))
		run(func() error {
			_, err := firnv1.NewIDsClient(conn).Next(t.Context(), &firnv1.NextRequest{})
			return err
		})
	}
	more(5)
	// In place of a delay such as --drain-delay: clients that have found the
	// server ready connect, and their connections are accepted.
	connecting.Lock()
	first.Drain()
	connecting.Unlock()
	more(2)
	must.Do(t, first.Shutdown(t.Context()))
	more(5)
	close(stop)
	all.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d requests failed, want 0", n)
	}
	if _, err := http.Get("http://" + firstAt + "/readyz"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the server that has stopped: %v", err)
	}
}
