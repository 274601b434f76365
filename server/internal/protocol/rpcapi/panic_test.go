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
)

// A panicking source panics on request, instead of giving IDs.
type panicking struct {
	*slow
	panics bool
}

func (p *panicking) Sequencer(context.Context, string, service.Creator) (*service.Sequencer, error) {
	return service.NewSequencer(firn.Default(), p), nil
}

func (p *panicking) NextBatch(ctx context.Context, n int) (firn.Batch, error) {
	if p.panics {
		panic("a secret")
	}
	return p.slow.NextBatch(ctx, n)
}

// TestPanicGivesRoomBack: after a panic in a call for many IDs, of which only
// some may run at once in a connection, others are answered. That the server
// shuts down is checked by serve.
func TestPanicGivesRoomBack(t *testing.T) {
	b := &panicking{slow: fast()}
	ids := firnv1.NewIDsClient(serve(t, Config{Backend: b}))
	for i := range 4 * maxHeldAll / (16 * service.MaxCount) {
		b.panics = i%2 == 0
		if _, err := ids.Next(t.Context(), &firnv1.NextRequest{Count: service.MaxCount}); b.panics != (status.Code(err) == codes.Internal) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Fatalf("panics: %t: %v", b.panics, err)
		}
	}
}
