package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
)

// TestNodeCounts: node IDs are counted by state, inside the range that members
// may take, before and after a fence.
func TestNodeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), new(memstore.Store)
		b := NewStoreBackend(StoreBackendConfig{Admin: NewStoreAdmin(store, nil)})
		defer b.Close(ctx)
		must.Get(b.Sequencer(ctx, "orders", nil))(t)
		want := func(step string, want NodeCounts) {
			t.Helper()
			time.Sleep(countEvery)
			b.NodeCounts("orders", time.Now())
			synctest.Wait()
			if got, ok := b.NodeCounts("orders", time.Now()); !ok || got != want {
				t.Errorf("%s: %+v, %v, want %+v", step, got, ok, want)
			}
		}
		if _, ok := b.NodeCounts("orders", time.Now()); ok {
			t.Error("counts before the first count")
		}
		synctest.Wait()
		if got, ok := b.NodeCounts("orders", time.Now()); !ok || got != (NodeCounts{1, 0, 1023}) {
			t.Errorf("at first: %+v, %v", got, ok)
		}
		must.Get(grant.SetNodes(ctx, store, "orders", &grant.NodeRange{Lo: 0, Hi: 1023}, nil))(t)
		want("idle, its window has ended", NodeCounts{0, 0, 1024})
		must.Get(grant.Fence(ctx, store, "orders", &grant.FenceOptions{LongestWindow: time.Hour}))(t)
		want("fenced", NodeCounts{0, 1024, 0})
		time.Sleep(3 * time.Hour)
		want("later", NodeCounts{0, 0, 1024})
	})
}

// TestNodeCountsFail: a failed count is never the figure zero.
func TestNodeCountsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), &unlisted{Store: new(memstore.Store), fails: true}
		b := NewStoreBackend(StoreBackendConfig{Admin: NewStoreAdmin(store, nil)})
		defer b.Close(ctx)
		must.Get(b.Sequencer(ctx, "orders", nil))(t)
		for _, step := range []struct{ fails, ok bool }{{true, false}, {false, true}, {true, true}} {
			store.fails = step.fails
			b.NodeCounts("orders", time.Now())
			synctest.Wait()
			if n, ok := b.NodeCounts("orders", time.Now()); ok != step.ok || ok && n.Free == 0 {
				t.Errorf("fails %v: %+v, %v, want %v", step.fails, n, ok, step.ok)
			}
			time.Sleep(countEvery)
		}
	})
}

// TestCloseWhileCounting: a server that stops during a count does not wait for
// it, and gives its node IDs back.
func TestCloseWhileCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &unlisted{Store: new(memstore.Store)}
		b := NewStoreBackend(StoreBackendConfig{Admin: NewStoreAdmin(store, nil)})
		for _, name := range []string{"orders", "users"} {
			must.Get(b.Sequencer(t.Context(), name, nil))(t)
		}
		store.hangs = true
		b.NodeCounts("orders", time.Now())
		synctest.Wait()
		limited, cancel := context.WithTimeout(t.Context(), countTimeout/2)
		defer cancel()
		must.Do(t, b.Close(limited))
	})
}

// An unlisted store cannot list keys while fails is set, and does not answer
// while hangs is set.
type unlisted struct {
	grant.Store
	fails, hangs bool
}

func (s *unlisted) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.fails {
		return errors.New("the store refuses to list")
	}
	return s.Store.List(ctx, prefix, yield)
}
