package service

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

// TestNodeCounts: node IDs are counted by state, inside the range that members
// may take, before and after a fence.
func TestNodeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
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

// TestNodeCountsOf64Bits: all of 2^64 node IDs are one more than a number has
// room for.
func TestNodeCountsOf64Bits(t *testing.T) {
	now := time.Now()
	held := grant.NodeInfo{Node: 7, Held: true, Until: now.Add(time.Minute)}
	blocked := grant.NodeInfo{Node: 8, Until: now.Add(time.Minute)}
	for _, row := range []struct {
		nodes []grant.NodeInfo
		floor time.Time
		want  NodeCounts
	}{
		{nil, time.Time{}, NodeCounts{0, 0, math.MaxUint64}},
		{[]grant.NodeInfo{held}, time.Time{}, NodeCounts{1, 0, math.MaxUint64}},
		{[]grant.NodeInfo{held, blocked}, time.Time{}, NodeCounts{1, 1, math.MaxUint64 - 1}},
		{nil, now.Add(time.Hour), NodeCounts{0, math.MaxUint64, 0}},
		{[]grant.NodeInfo{held}, now.Add(time.Hour), NodeCounts{1, math.MaxUint64, 0}},
		{[]grant.NodeInfo{blocked}, now.Add(time.Hour), NodeCounts{0, math.MaxUint64, 0}},
	} {
		layout := must.Get(firn.ParseLayout("bits=time:42.node:64.seq:12,unit=1ms,epoch=2026-01-01T00:00:00Z"))(t)
		info := grant.Info{Config: grant.Config{Layout: layout}, Floor: row.floor}
		got, _, err := CountNodes(info, now, func(yield func(grant.NodeInfo, error) bool) error {
			for _, n := range row.nodes {
				yield(n, nil)
			}
			return nil
		})
		if err != nil || got != row.want {
			t.Errorf("of %v, not before %v: %+v, %v, want %+v", row.nodes, row.floor, got, err, row.want)
		}
	}
}

// TestNodeCountsFail: a failed count is never the figure zero.
func TestNodeCountsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
		ctx, fails := t.Context(), true
		store := &faultstore.Store{Store: new(memstore.Store), Fault: func(_ context.Context, r faultstore.Request) error {
			if r.Kind == grant.RequestList && fails {
				return errors.New("the store refuses to list")
			}
			return r.Do()
		}}
		b := NewStoreBackend(StoreBackendConfig{Admin: NewStoreAdmin(store, nil)})
		defer b.Close(ctx)
		must.Get(b.Sequencer(ctx, "orders", nil))(t)
		for _, step := range []struct{ fails, ok bool }{{true, false}, {false, true}, {true, true}} {
			fails = step.fails
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
		time.Sleep(27 * 365 * 24 * time.Hour)
		store := &faultstore.Store{Store: new(memstore.Store)}
		b := NewStoreBackend(StoreBackendConfig{Admin: NewStoreAdmin(store, nil)})
		for _, name := range []string{"orders", "users"} {
			must.Get(b.Sequencer(t.Context(), name, nil))(t)
		}
		store.Fault = func(ctx context.Context, r faultstore.Request) error {
			if r.Kind != grant.RequestList {
				return r.Do()
			}
			<-ctx.Done()
			return ctx.Err()
		}
		b.NodeCounts("orders", time.Now())
		synctest.Wait()
		limited, cancel := context.WithTimeout(t.Context(), countTimeout/2)
		defer cancel()
		must.Do(t, b.Close(limited))
	})
}

// TestNodeState: the words are those of firn node list --json, which programs
// read.
func TestNodeState(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		is   grant.NodeInfo
		want string
	}{
		{grant.NodeInfo{Held: true, Until: now.Add(1)}, "held"},
		{grant.NodeInfo{Held: true, Until: now.Add(1), Closing: true}, "closing"},
		{grant.NodeInfo{Held: true, Until: now, Closing: true}, "over"},
		{grant.NodeInfo{Held: true, Until: now}, "over"},
		{grant.NodeInfo{Until: now.Add(1)}, "free"},
	} {
		if got := NodeState(row.is, now); got != row.want {
			t.Errorf("NodeState(%+v) = %q, want %q", row.is, got, row.want)
		}
	}
}
