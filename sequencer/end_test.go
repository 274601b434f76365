package sequencer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// An unhintedStore is a store without its watcher, so that members learn of a
// change only when they read.
type unhintedStore struct{ grant.Store }

// TestNoIDsAfterDestroy checks that members make no IDs once Destroy has
// returned.
func TestNoIDsAfterDestroy(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, s grant.Store) grant.Store{
		// The fence has freed the record of an owner that does not know it yet.
		"after a fence": func(t *testing.T, s grant.Store) grant.Store {
			if _, err := grant.Fence(t.Context(), s, "orders", &grant.FenceOptions{LongestWindow: time.Minute}); err != nil {
				t.Fatal(err)
			}
			return s
		},
		// Another operator has begun and closed nothing. The first List of this
		// one is answered by a server that was replaced before the member
		// joined.
		"by a stale list": func(t *testing.T, s grant.Store) grant.Store {
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := grant.Destroy(ctx, noListStore{s, cancel}, "orders", nil); err == nil {
				t.Fatal("Destroy without a List succeeded")
			}
			return &staleListStore{Store: s}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in2026(t, func(t *testing.T) {
				store := new(memstore.Store)
				q := open(t, unhintedStore{store}, &sequencer.Config{Layout: sixteen})
				defer closeIt(t, q)
				next(t, q, 5)
				if _, err := grant.Destroy(t.Context(), before(t, store), "orders", nil); err != nil {
					t.Fatal(err)
				}
				for range 100 {
					if id, err := q.TryNext(); err == nil {
						t.Fatalf("TryNext() = %v after Destroy had returned", id)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// A noListStore is a store whose lists fail and end a context.
type noListStore struct {
	grant.Store
	cancel context.CancelFunc
}

func (s noListStore) List(context.Context, string, func(string, []byte) bool) error {
	s.cancel()
	return errors.New("no list")
}

// A staleListStore is a store whose lists find nothing until it has applied a
// CAS, because another server answers them.
type staleListStore struct {
	grant.Store
	applied atomic.Bool
}

func (s *staleListStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	ok, err := s.Store.CAS(ctx, key, old, next)
	if ok {
		s.applied.Store(true)
	}
	return ok, err
}

func (s *staleListStore) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	if !s.applied.Load() {
		return nil
	}
	return s.Store.List(ctx, prefix, yield)
}
