package httpapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/service"
)

// A timed store reports its time.
type timed struct {
	memstore.Store
	behind time.Duration // of this machine's clock
}

func (t *timed) Time(context.Context) (time.Time, time.Duration, error) {
	return time.Now().Add(-t.behind), time.Millisecond, nil
}

// TestClockAhead: a server whose clock is ahead reports that, and not a silent
// store or an internal error, both without a node ID and after losing one.
func TestClockAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
		m := &timed{behind: time.Hour}
		c := service.NewCluster(service.ClusterConfig{Fleet: service.NewFleet(m, nil), Config: sequencer.Config{Window: 30 * time.Second}})
		h := NewHandler(Config{Backend: c})
		wantProblem(t, do(h, "POST", "/v1/sequencers/orders/next"), service.ClockAhead, "ahead of the store's")
		wantProblem(t, do(h, "GET", "/readyz"), service.ClockAhead, "ahead of the store's")
		m.behind = 0
		time.Sleep(2 * time.Minute) // until the server reads the store's time again
		if w := do(h, "GET", "/readyz"); w.Code != 200 {
			t.Errorf("/readyz with the clock set right: %d %s", w.Code, w.Body)
		}
		if w := do(h, "POST", "/v1/sequencers/orders/next"); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		m.behind = time.Hour
		time.Sleep(2 * time.Minute) // the window ends, and another member takes the node ID
		if _, err := grant.Fence(t.Context(), m, "orders", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		wantProblem(t, do(h, "POST", "/v1/sequencers/orders/next"), service.ClockAhead, "ahead of the store's")
		wantProblem(t, do(h, "GET", "/readyz"), service.ClockAhead, "ahead of the store's")
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
