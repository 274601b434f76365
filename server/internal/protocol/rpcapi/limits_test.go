package rpcapi

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestShutdownEndsStreams: a stream that waits for credit does not delay the
// shutdown, and its client is asked to use another server.
func TestShutdownEndsStreams(t *testing.T) {
	s := NewServer(Config{Backend: static(t, "default")})
	l := nettest.Listen(t)
	go s.Serve(l)
	stream, err := firnv1.NewIDsClient(nettest.DialGRPC(t, l.Addr().String())).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&firnv1.StreamRequest{Credit: 1})
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	_, err = stream.Recv()
	wantCode(t, "stream", err, codes.Unavailable, "draining")
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// TestShutdownWaits: once Shutdown has returned, no call runs, even if it gave
// up waiting.
func TestShutdownWaits(t *testing.T) {
	var running atomic.Int64
	s := NewServer(Config{Limit: time.Hour, Backend: seeing(func(ctx context.Context) {
		running.Add(1)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		running.Add(-1)
	})})
	l := nettest.Listen(t)
	go s.Serve(l)
	conn := nettest.DialGRPC(t, l.Addr().String())
	go firnv1.NewIDsClient(conn).Next(context.WithoutCancel(t.Context()), &firnv1.NextRequest{})
	for running.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || running.Load() != 0 {
		t.Errorf("%v, and %d calls run", err, running.Load())
	}
}

// TestStreamChecksAgain: a token that is taken back while a stream lasts ends
// it.
func TestStreamChecksAgain(t *testing.T) {
	var revoked atomic.Bool
	s := fast()
	ids := firnv1.NewIDsClient(serve(t, Config{Backend: s, Auth: guardFunc(func(string, *tls.ConnectionState) error {
		if revoked.Load() {
			return auth.ErrUnauthorized
		}
		return nil
	})}))
	stream, err := ids.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&firnv1.StreamRequest{Credit: 1})
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	revoked.Store(true)
	_ = stream.Send(&firnv1.StreamRequest{Credit: 1})
	_, err = stream.Recv()
	wantCode(t, "revoked", err, codes.Unauthenticated, "unauthorized")
	if n := s.given.Load(); n != 1 {
		t.Errorf("%d IDs were given, want 1", n)
	}
}

// A stuck Administrator answers nothing until its context is done, but a Lookup
// if there is something to find.
type stuck struct {
	*service.Cluster
	found *grant.Info
}

func (s stuck) Admin() service.Administrator { return s }

func (s stuck) Lookup(ctx context.Context, _ string) (grant.Info, error) {
	if s.found != nil {
		return *s.found, nil
	}
	<-ctx.Done()
	return grant.Info{}, ctx.Err()
}

func (s stuck) Attach(ctx context.Context, _ string) (grant.Info, error) {
	return stuck{}.Lookup(ctx, "")
}

func (s stuck) Detach(ctx context.Context, _ string) (grant.Info, error) {
	return stuck{}.Lookup(ctx, "")
}

func (s stuck) Destroy(ctx context.Context, _ string) (grant.Info, error) {
	return stuck{}.Lookup(ctx, "")
}

// TestAdminLimit: what is asked of the store ends at the limit, also for
// clients that set no deadline. A Detach that has to wait longer says how far
// it is. A Destroy that was not begun is an error.
func TestAdminLimit(t *testing.T) {
	cluster := service.NewCluster(service.ClusterConfig{Admin: service.NewStoreAdmin(new(memstore.Store), nil)})
	q := firnv1.NewSequencersClient(serve(t, Config{Backend: stuck{Cluster: cluster}, Limit: 50 * time.Millisecond}))
	ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
	defer cancel()
	for what, call := range map[string]func() error{
		"Get":    func() error { _, err := q.Get(ctx, &firnv1.GetRequest{Name: "orders"}); return err },
		"Attach": func() error { _, err := q.Attach(ctx, &firnv1.AttachRequest{Name: "orders"}); return err },
	} {
		err := call()
		if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
			t.Errorf("%s: %v, want Unavailable", what, err)
		}
	}
	q = firnv1.NewSequencersClient(serve(t, Config{Backend: stuck{cluster, &grant.Info{State: grant.Detaching}}, Limit: 50 * time.Millisecond}))
	if r, err := q.Detach(ctx, &firnv1.DetachRequest{Name: "orders"}); err != nil || r.GetSequencer().GetState() != "detaching" {
		t.Errorf("%v, %v, want detaching", r.GetSequencer().GetState(), err)
	}
	if _, err := q.Destroy(ctx, &firnv1.DestroyRequest{Name: "orders"}); status.Code(err) != codes.Unavailable {
		t.Errorf("Destroy: %v, want Unavailable", err)
	}
}

// A readying Backend is ready when ready is set.
type readying struct {
	service.Backend
	ready atomic.Bool
}

func (r *readying) Ready(context.Context) error {
	if r.ready.Load() {
		return nil
	}
	return errors.New("not yet")
}

// TestHealth: as /readyz, for each service.
func TestHealth(t *testing.T) {
	b := &readying{Backend: static(t, "default")}
	s := NewServer(Config{Backend: b})
	l := nettest.Listen(t)
	go s.Serve(l)
	defer s.Shutdown(context.Background())
	h := healthpb.NewHealthClient(nettest.DialGRPC(t, l.Addr().String()))
	want := func(when string, want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for _, service := range []string{"", "firn.v1.IDs", "firn.v1.Sequencers"} {
			r, err := h.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
			if err != nil || r.Status != want {
				t.Errorf("%s: %q is %v, %v, want %v", when, service, r.GetStatus(), err, want)
			}
		}
	}
	want("at first", healthpb.HealthCheckResponse_NOT_SERVING)
	b.ready.Store(true)
	want("ready", healthpb.HealthCheckResponse_SERVING)
	if _, err := h.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "x"}); status.Code(err) != codes.NotFound {
		t.Errorf("x: %v, want NotFound", err)
	}
	watch, err := h.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := watch.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatal(r, err)
	}
	s.Drain()
	want("draining", healthpb.HealthCheckResponse_NOT_SERVING)
	if r, err := watch.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Error(r, err)
	}
}

type guardFunc func(token string, state *tls.ConnectionState) error

func (g guardFunc) Allow(c *auth.Credentials, _ auth.Action, _ string) error {
	return g(c.Token, c.TLS)
}
