package server

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/service"
)

// TestGiveBack: node IDs are given back while the store accepts some, until the
// context of Shutdown ends and for a moment after that.
func TestGiveBack(t *testing.T) {
	for _, row := range []struct {
		limit time.Duration // 0: no limit
		all   bool
		took  time.Duration
	}{
		{0, true, 16 * time.Second},
		{time.Minute, true, 16 * time.Second},
		{6 * time.Second, false, 6*time.Second + minClosing},
		{-1, false, minClosing},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(27 * 365 * 24 * time.Hour)
			var log strings.Builder
			store := &faultstore.Store{Store: new(memstore.Store)}
			// In a long window no keeper writes by itself meanwhile: it would
			// give back after that.
			s := &backends{storeBackend: service.NewStoreBackend(service.StoreBackendConfig{
				Admin: service.NewStoreAdmin(store, nil), Options: sequencer.Options{Window: time.Hour},
			})}
			for i := range 8 * 64 {
				must.Get(s.storeBackend.Sequencer(t.Context(), fmt.Sprintf("n%d", i), nil))(t)
			}
			store.Delay = 2 * time.Second
			ctx := context.Background()
			if row.limit != 0 {
				limited, cancel := context.WithTimeout(ctx, row.limit)
				defer cancel()
				ctx = limited
			}
			begin := time.Now()
			s.close(ctx, slog.New(slog.NewTextHandler(&log, nil)))
			took := time.Since(begin)
			if row.all != (log.Len() == 0) || took != row.took {
				t.Errorf("with a limit of %v: it took %v, want %v: %s", row.limit, took, row.took, &log)
			}
			time.Sleep(time.Minute) // let calls in progress end
		})
	}
}
