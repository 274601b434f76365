package rpcapi

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// panicking is a Backend that panics on request: when it finds a sequencer,
// gives its IDs, or reports whether it is ready.
type panicking struct {
	*service.Cluster
	at atomic.Pointer[string]
}

func (p *panicking) maybe(at string) {
	if a := p.at.Load(); a != nil && *a == at {
		panic("backend: " + at)
	}
}

func (p *panicking) Sequencer(ctx context.Context, name string, _ service.Creator) (*service.Sequencer, error) {
	p.maybe("find")
	g, err := firn.NewGenerator(firn.Default(), firn.StaticGrant(1), nil)
	return service.NewSequencer(firn.Default(), sourceFunc(func(ctx context.Context, n int) (firn.Batch, error) {
		p.maybe("take")
		return g.NextBatch(ctx, n)
	})), err
}

// Opened is false, so that calls ask Sequencer.
func (*panicking) Opened(string) *service.Sequencer { return nil }

// TestPanicEndsItsCall: a panic in a call is INTERNAL for its client. Calls
// after it are answered, also those for many IDs, of which only some may run at
// once in a connection. That the server shuts down is checked by serve.
func TestPanicEndsItsCall(t *testing.T) {
	b := &panicking{Cluster: service.NewCluster(service.ClusterConfig{Fleet: service.NewFleet(new(memstore.Store), nil)})}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	ids := firnv1.NewIDsClient(serve(t, Config{Backend: b}))
	for range 2 * maxHeldAll / (16 * service.MaxCount) {
		for _, at := range []string{"find", "take"} {
			for _, count := range []uint32{1, 100_000} {
				ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
				b.at.Store(&at)
				if _, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders", Count: count}); status.Code(err) != codes.Internal {
					t.Fatalf("a panic of %s, %d IDs: %v, want INTERNAL", at, count, err)
				}
				b.at.Store(nil)
				if r, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders", Count: count}); err != nil || len(r.Ids) != int(count) {
					t.Fatalf("after a panic of %s, %d IDs: %v", at, count, err)
				}
				cancel()
			}
		}
	}
}
