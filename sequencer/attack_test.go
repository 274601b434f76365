package sequencer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

type notSentStore struct {
	grant.Store
	on    atomic.Bool
	reads []time.Time
}

func (s *notSentStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if s.on.Load() {
		return false, fmt.Errorf("%w: read-only", grant.ErrNotSent)
	}
	return s.Store.CAS(ctx, key, old, next)
}
func (s *notSentStore) Get(ctx context.Context, key string) ([]byte, error) {
	if s.on.Load() && key == "v1/orders/config" {
		s.reads = append(s.reads, time.Now())
	}
	return s.Store.Get(ctx, key)
}

// TestAttackConfigStarved: renewals that are not sent prevent the configuration
// from being read.
func TestAttackConfigStarved(t *testing.T) {
	in2026(t, func(t *testing.T) {
		store := &notSentStore{Store: new(memstore.Store)}
		q := open(t, store, &sequencer.Config{Layout: sixteen, Window: 10 * time.Minute})
		next(t, q, 5)
		store.on.Store(true)
		began := time.Now()
		for time.Since(began) < 9*time.Minute {
			next(t, q, 1)
			time.Sleep(time.Second)
		}
		last := began
		for _, r := range store.reads {
			if d := r.Sub(last); d > 20*time.Second {
				t.Errorf("no read of the configuration for %v", d)
			}
			last = r
		}
		if d := time.Since(last); d > 20*time.Second {
			t.Errorf("no read of the configuration for the last %v", d)
		}
		store.on.Store(false)
		_ = q.Close(t.Context())
	})
}

// TestAttackCreateFar: a clock beyond the last time of a record creates
// nothing.
func TestAttackCreateFar(t *testing.T) {
	store := new(memstore.Store)
	c := grant.NewConfig(sixteen, 0)
	_, err := grant.Create(t.Context(), store, "orders", c, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
	_, err2 := grant.Lookup(t.Context(), store, "orders")
	t.Log("create:", err, "lookup:", err2)
	if err == nil && err2 != nil {
		t.Error("created, and damaged for good")
	}
}

// A staleStore is the store of a member whose reads of several keys are stale.
type staleStore struct {
	grant.Store
	many  map[string][]byte
	on    atomic.Bool
	calls atomic.Int64
}

func (s *staleStore) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	if s.calls.Add(1) > 20000 {
		panic("20000 reads")
	}
	time.Sleep(time.Millisecond)
	values := make([][]byte, len(keys))
	for i, k := range keys {
		if s.on.Load() {
			values[i] = s.many[k]
			continue
		}
		values[i], _ = s.Store.Get(ctx, k)
	}
	return values, nil
}
