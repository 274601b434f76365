package rpcapi

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// TestShutdownWaits: once Shutdown has returned, no call runs, even if it gave
// up waiting.
func TestShutdownWaits(t *testing.T) {
	var running atomic.Int64
	s := NewServer(Config{Front: service.Front{RequestTimeout: time.Hour, Backend: blocking(func(ctx context.Context) {
		running.Add(1)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		running.Add(-1)
	})}})
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

// TestAdminLimit: a Detach that has to wait for another process ends at the
// limit, also for clients that set no deadline, and says how far it is.
func TestAdminLimit(t *testing.T) {
	cut := &faultstore.Store{Store: new(memstore.Store)}
	backend := servicetest.NewStoreBackend(t, cut.Store, service.StoreBackendConfig{})
	q := firnv1.NewSequencersClient(serve(t, Config{Front: service.Front{Backend: backend, RequestTimeout: 50 * time.Millisecond}}))
	held := must.Get(sequencer.Open(t.Context(), cut, "orders", &sequencer.Options{Layout: firn.Default()}))(t)
	cut.Cut.Store(true) // it does not see what follows
	if r, err := q.Detach(t.Context(), &firnv1.DetachRequest{Name: "orders"}); err != nil || r.GetSequencer().GetState() != "detaching" {
		t.Errorf("%v, %v, want detaching", r.GetSequencer().GetState(), err)
	}
	cut.Cut.Store(false)
	must.Do(t, held.Close(t.Context()))
}

// A switchedBackend is ready when ready is set.
type switchedBackend struct {
	service.Backend
	ready atomic.Bool
}

func (r *switchedBackend) Ready(context.Context) error {
	if r.ready.Load() {
		return nil
	}
	return errors.New("not yet")
}

// TestHealth: as /readyz, for each service.
func TestHealth(t *testing.T) {
	b := &switchedBackend{Backend: static(t, "default")}
	s := NewServer(Config{Front: service.Front{Backend: b}})
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
	watch := must.Get(h.Watch(t.Context(), &healthpb.HealthCheckRequest{}))(t)
	if r, err := watch.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatal(r, err)
	}
	s.Drain()
	want("draining", healthpb.HealthCheckResponse_NOT_SERVING)
	if r, err := watch.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Error(r, err)
	}
}

// blocking is a Backend without node IDs that calls f first.
func blocking(f func(ctx context.Context)) service.Backend {
	return servicetest.Backend(func(ctx context.Context, _ string) (*service.Sequencer, error) {
		f(ctx)
		return nil, grant.ErrNodesExhausted
	})
}
