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
