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
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// TestPanicGivesRoomBack: after a panic in a call for many IDs, of which only
// some may run at once in a connection, others are answered. That the server
// shuts down is checked by serve.
func TestPanicGivesRoomBack(t *testing.T) {
	panics := false
	ids := firnv1.NewIDsClient(serve(t, Config{Backend: servicetest.Open(func(_ context.Context, n int) (firn.Batch, error) {
		if panics {
			panic("a secret")
		}
		return firn.BatchFromRuns(firn.Run{First: 1, Step: 1, Count: n}), nil
	})}))
	for i := range 4 * maxHeldAll / (16 * service.MaxCount) {
		panics = i%2 == 0
		if _, err := ids.Next(t.Context(), &firnv1.NextRequest{Count: service.MaxCount}); panics != (status.Code(err) == codes.Internal) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Fatalf("panics: %t: %v", panics, err)
		}
	}
}
