package httpapi

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/service"
)

// TestAfterFence: after a fence, the detail, the status and Retry-After agree:
// with a node ID that was lost, without one, and when the time has come.
func TestAfterFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour) // after the layout's epoch
		store := new(memstore.Store)
		config := sequencer.Options{Window: 20 * time.Second}
		holder := newCluster(t, service.ClusterConfig{Admin: service.NewStoreAdmin(store, nil), Options: config})
		late := newCluster(t, service.ClusterConfig{Admin: service.NewStoreAdmin(store, nil), Options: config})
		if w := do(NewHandler(Config{Backend: holder}), "POST", "/v1/sequencers/orders/next"); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if _, err := grant.Fence(t.Context(), store, "orders", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(21 * time.Second) // the window of the holder ends
		info, err := grant.Lookup(t.Context(), store, "orders")
		if err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]*service.Cluster{"it had a node ID": holder, "it has none": late} {
			h := NewHandler(Config{Backend: c})
			free := info.Floor.Add(-info.Config.MaxAhead)
			w := do(h, "POST", "/v1/sequencers/orders/next")
			p := wantProblem(t, w, service.NotYet, "sequencer orders was fenced, continuing at "+free.UTC().Format("2006-01-02T15:04:05.000Z"))
			retry, err := time.ParseDuration(w.Header().Get("Retry-After") + "s")
			if left := time.Until(free); err != nil || retry < left || retry >= left+time.Second {
				t.Errorf("%s: Retry-After is %v, and the time of the detail is in %v", what, retry, left)
			}
			if strings.Contains(p.Title, "others") {
				t.Errorf("%s: the title is %q", what, p.Title)
			}
			wantProblem(t, do(h, "GET", "/readyz"), service.NotYet)
		}
		time.Sleep(time.Until(info.Floor))
		for what, c := range map[string]*service.Cluster{"it had a node ID": holder, "it has none": late} {
			if w := do(NewHandler(Config{Backend: c}), "POST", "/v1/sequencers/orders/next"); w.Code != 200 {
				t.Errorf("%s: %d %s", what, w.Code, w.Body)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
