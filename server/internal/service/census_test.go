package service

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// TestNodeCounts: node IDs are counted by state, inside the range that members
// may take, before and after a fence.
func TestNodeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), new(memstore.Store)
		c := NewCluster(ClusterConfig{Admin: NewStoreAdmin(store, nil)})
		defer c.Close(ctx)
		if _, err := c.Sequencer(ctx, "orders", nil); err != nil {
			t.Fatal(err)
		}
		want := func(step string, want NodeCounts) {
			t.Helper()
			time.Sleep(countEvery)
			c.NodeCounts("orders", time.Now())
			synctest.Wait()
			if got, ok := c.NodeCounts("orders", time.Now()); !ok || got != want {
				t.Errorf("%s: %+v, %v, want %+v", step, got, ok, want)
			}
		}
		if _, ok := c.NodeCounts("orders", time.Now()); ok {
			t.Error("counts before the first count")
		}
		synctest.Wait()
		if got, ok := c.NodeCounts("orders", time.Now()); !ok || got != (NodeCounts{1, 0, 1023}) {
			t.Errorf("at first: %+v, %v", got, ok)
		}
		if _, err := grant.SetNodes(ctx, store, "orders", &grant.Range{Lo: 0, Hi: 1023}, nil); err != nil {
			t.Fatal(err)
		}
		want("idle, its window has ended", NodeCounts{0, 0, 1024})
		if _, err := grant.Fence(ctx, store, "orders", &grant.FenceOptions{LongestWindow: time.Hour}); err != nil {
			t.Fatal(err)
		}
		want("fenced", NodeCounts{0, 1024, 0})
		time.Sleep(3 * time.Hour)
		want("later", NodeCounts{0, 0, 1024})
	})
}
