package rpcapi

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn"
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
	stream, err := firnv1.NewIDsClient(dialTo(t, l.Addr().String())).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&firnv1.StreamRequest{Credit: 1}); err != nil {
		t.Fatal(err)
	}
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
	b := new(slow)
	s := NewServer(Config{Limit: time.Hour, Backend: seeing(func(ctx context.Context) {
		running.Add(1)
		b.calls.Add(1)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		running.Add(-1)
	})})
	l := nettest.Listen(t)
	go s.Serve(l)
	conn := dialTo(t, l.Addr().String())
	go firnv1.NewIDsClient(conn).Next(context.WithoutCancel(t.Context()), &firnv1.NextRequest{})
	for b.calls.Load() == 0 {
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
	s := &slow{free: make(chan struct{})}
	close(s.free)
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

// TestSlowReader: a client that gives much credit and does not read takes few
// IDs.
func TestSlowReader(t *testing.T) {
	for _, batch := range []uint32{1, 1000, maxBatch} {
		s := &slow{free: make(chan struct{})}
		close(s.free)
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := firnv1.NewIDsClient(serve(t, Config{Backend: s})).Stream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&firnv1.StreamRequest{Credit: maxCredit, Batch: batch}); err != nil {
			t.Fatal(err)
		}
		for last := int64(0); last == 0 || s.given.Load() != last; time.Sleep(100 * time.Millisecond) {
			last = s.given.Load()
		}
		// The windows of a stream and of its connection, of 64 KiB each, what the
		// server has written ahead, and a response.
		if n, most := s.given.Load(), int64(3*64<<10/8)+2*int64(batch); n > most || n == 0 {
			t.Errorf("batches of %d: %d IDs were taken, want at most %d", batch, n, most)
		}
		cancel()
	}
}

// A stuck Administrator answers nothing until its context is done.
type stuck struct{ *service.Cluster }

func (s stuck) Admin() service.Administrator { return s }

func (s stuck) Lookup(ctx context.Context, _ string) (grant.Info, error) {
	<-ctx.Done()
	return grant.Info{}, ctx.Err()
}

func (s stuck) Attach(ctx context.Context, _ string) (grant.Info, error) {
	return s.Lookup(ctx, "")
}

func (s stuck) Detach(ctx context.Context, _ string) (grant.Info, error) {
	return s.Lookup(ctx, "")
}

// TestAdminLimit: what is asked of the store ends at the limit, also for
// clients that set no deadline, and is not said to be about IDs.
func TestAdminLimit(t *testing.T) {
	cluster := service.NewCluster(service.ClusterConfig{Fleet: service.NewFleet(new(memstore.Store), nil)})
	q := firnv1.NewSequencersClient(serve(t, Config{Backend: stuck{cluster}, Limit: 50 * time.Millisecond}))
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
}

// TestDetachGoesOn: a Detach that has to wait longer than it may says how far
// it is.
func TestDetachGoesOn(t *testing.T) { synctest.Test(t, testDetachGoesOn) }

func testDetachGoesOn(t *testing.T) {
	time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
	store := new(memstore.Store)
	away := &cutOff{Store: store}
	other := service.NewCluster(service.ClusterConfig{Fleet: service.NewFleet(away, nil)})
	// It holds a number, and then hears of nothing.
	if s, err := other.Sequencer(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	} else if _, err := s.Take(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	away.cut.Store(true)
	defer func() {
		away.cut.Store(false)
		_ = other.Close(context.Background())
	}()
	cluster := service.NewCluster(service.ClusterConfig{Fleet: service.NewFleet(store, nil)})
	defer cluster.Close(context.Background())
	s := NewServer(Config{Backend: cluster, Limit: 500 * time.Millisecond})
	r, err := s.Detach(within(t.Context(), s), &firnv1.DetachRequest{Name: "orders"})
	if err != nil || r.GetSequencer().GetState() != "detaching" {
		t.Errorf("%v, %v, want detaching", r.GetSequencer().GetState(), err)
	}
}

// A cutOff Store does not answer while it is cut off.
type cutOff struct {
	grant.Store
	cut atomic.Bool
}

func (s *cutOff) Get(ctx context.Context, key string) ([]byte, error) {
	if s.cut.Load() {
		return nil, errors.New("cut off")
	}
	return s.Store.Get(ctx, key)
}

func (s *cutOff) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if s.cut.Load() {
		return false, grant.ErrNotSent
	}
	return s.Store.CAS(ctx, key, old, next)
}

// TestPanic: a fault of the program in one call ends that call.
func TestPanic(t *testing.T) {
	first := true
	ids := firnv1.NewIDsClient(serve(t, Config{Backend: seeing(func(context.Context) {
		if first {
			first = false
			panic("a secret")
		}
	})}))
	_, err := ids.Next(t.Context(), &firnv1.NextRequest{})
	wantCode(t, "panic", err, codes.Internal, "internal")
	if strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	_, err = ids.Next(t.Context(), &firnv1.NextRequest{})
	wantCode(t, "after it", err, codes.ResourceExhausted, "nodes-exhausted")
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
	h := healthpb.NewHealthClient(dialTo(t, l.Addr().String()))
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

// TestTokens: one token, however its scheme is written.
func TestTokens(t *testing.T) {
	var got atomic.Value
	ids := firnv1.NewIDsClient(serve(t, Config{Backend: static(t, "default"), Auth: guardFunc(func(token string, _ *tls.ConnectionState) error {
		got.Store(token)
		return nil
	})}))
	for _, test := range []struct {
		headers []string
		want    string
	}{
		{nil, ""},
		{[]string{"authorization", "Bearer a"}, "a"},
		{[]string{"authorization", "bearer a"}, "a"},
		{[]string{"authorization", "Basic a"}, ""},
		{[]string{"authorization", "Bearer a", "authorization", "Bearer b"}, ""},
	} {
		got.Store("?")
		if _, err := ids.Next(metadata.AppendToOutgoingContext(t.Context(), test.headers...), &firnv1.NextRequest{}); err != nil {
			t.Error(err)
		}
		if got.Load() != test.want {
			t.Errorf("%q: token %q, want %q", test.headers, got.Load(), test.want)
		}
	}
}

// TestBadRequest: what is wrong with a request names the field.
func TestBadRequest(t *testing.T) {
	conn := serve(t, Config{})
	ids, q := firnv1.NewIDsClient(conn), firnv1.NewSequencersClient(conn)
	for field, call := range map[string]func() error{
		"count": func() error {
			_, err := ids.Next(t.Context(), &firnv1.NextRequest{Count: service.MaxCount + 1})
			return err
		},
		"sequencer": func() error { _, err := ids.Next(t.Context(), &firnv1.NextRequest{Sequencer: "/"}); return err },
		"form":      func() error { _, err := ids.Next(t.Context(), &firnv1.NextRequest{Form: 9}); return err },
		"name":      func() error { _, err := q.Get(t.Context(), &firnv1.GetRequest{}); return err },
		"layout": func() error {
			_, err := q.Create(t.Context(), &firnv1.CreateRequest{Name: "a", Layout: "x"})
			return err
		},
	} {
		got := ""
		for _, d := range status.Convert(call()).Details() {
			if bad, ok := d.(*errdetails.BadRequest); ok {
				got = bad.GetFieldViolations()[0].GetField()
			}
		}
		if got != field {
			t.Errorf("the field is %q, want %q", got, field)
		}
	}
}

func dialTo(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

type guardFunc func(token string, state *tls.ConnectionState) error

func (g guardFunc) Allow(c *auth.Credentials, _ auth.Action, _ string) error {
	return g(c.Token, c.TLS)
}

type sourceFunc func(context.Context, int) (firn.Batch, error)

func (f sourceFunc) NextBatch(ctx context.Context, n int) (firn.Batch, error) { return f(ctx, n) }
