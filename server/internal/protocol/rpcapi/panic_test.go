package rpcapi

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A panicking Backend panics on request: when it finds a sequencer, or gives its
// IDs.
type panicking struct {
	*slow
	at string
}

func (p *panicking) Sequencer(context.Context, string, service.Creator) (*service.Sequencer, error) {
	if p.at == "find" {
		panic("a secret")
	}
	return service.NewSequencer(firn.Default(), p), nil
}

func (p *panicking) NextBatch(ctx context.Context, n int) (firn.Batch, error) {
	if p.at == "take" {
		panic("a secret")
	}
	return p.slow.NextBatch(ctx, n)
}

// TestPanicEndsItsCall: a panic in a call is INTERNAL for its client. Calls
// after it are answered, also those for many IDs, of which only some may run at
// once in a connection. That the server shuts down is checked by serve.
func TestPanicEndsItsCall(t *testing.T) {
	b := &panicking{slow: fast()}
	ids := firnv1.NewIDsClient(serve(t, Config{Backend: b}))
	for range 2 * maxHeldAll / (16 * service.MaxCount) {
		for _, at := range []string{"find", "take"} {
			for _, count := range []uint32{1, 100_000} {
				ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
				b.at = at
				if _, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders", Count: count}); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
					t.Fatalf("a panic of %s, %d IDs: %v, want INTERNAL", at, count, err)
				}
				b.at = ""
				if r, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders", Count: count}); err != nil || len(r.Ids) != int(count) {
					t.Fatalf("after a panic of %s, %d IDs: %v", at, count, err)
				}
				cancel()
			}
		}
	}
}
