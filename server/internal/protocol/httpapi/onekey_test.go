package httpapi

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/fleet/health"
	"github.com/firnid/firn/server/internal/service"
)

// A partial store takes no writes of one sequencer: for example, another
// session has locked its row, or permissions end at a prefix.
type partial struct {
	memstore.Store
	on atomic.Bool
}

func (p *partial) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if p.on.Load() && strings.HasPrefix(key, "v1/orders/") {
		return false, errDown
	}
	return p.Store.CAS(ctx, key, old, next)
}

// TestOneKeyFails: a store that takes no writes of one sequencer does not
// affect the others.
func TestOneKeyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
		m := new(partial)
		answers := new(health.Answers)
		c := service.NewCluster(service.ClusterConfig{Fleet: service.NewFleet(grant.Observe(m, answers.Observe), answers.Silent), Config: sequencer.Config{Window: 30 * time.Second}})
		h := NewHandler(Config{Backend: c})
		for _, name := range []string{"orders", "users"} {
			if w := do(h, "POST", "/v1/sequencers/"+name+"/next"); w.Code != 200 {
				t.Fatal(w.Code, w.Body)
			}
		}
		time.Sleep(2 * time.Minute) // idle until the windows have ended
		m.on.Store(true)
		refusedFor := make(map[string]int)
		for i := range 30 {
			do(h, "POST", "/v1/sequencers/orders/next")
			for _, name := range []string{"fresh", "users"} {
				if i < 10 {
					continue
				}
				begin := time.Now()
				if w := do(h, "POST", "/v1/sequencers/"+name+"/next"); w.Code != 200 {
					refusedFor[name]++
					t.Logf("%d: %s: %d after %v: %s", i, name, w.Code, time.Since(begin), w.Body)
				}
			}
			time.Sleep(time.Second)
		}
		for name, n := range refusedFor {
			if n > 1 { // the first one begins to open it or to renew its window
				t.Errorf("%d calls for %s refused though the store takes their writes", n, name)
			}
		}
		m.on.Store(false)
		time.Sleep(10 * time.Second)
		c.Close(t.Context())
	})
}
