package console

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/internal/service"
)

// A brittle store panics once when it is listed, if told to.
type brittle struct {
	grant.Store
	panics atomic.Bool
}

func (s *brittle) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	if s.panics.Swap(false) {
		panic("store")
	}
	return s.Store.List(ctx, prefix, yield)
}

// TestPagesThatPanic: after a page that panics, the pages are shown, and none
// waits for what it held.
func TestPagesThatPanic(t *testing.T) {
	for _, path := range []string{"/", "/members"} {
		store := &brittle{Store: new(memstore.Store)}
		store.panics.Store(true)
		h, _, _ := newWorld(t, func(c *Config) {
			c.Front.Backend = service.NewStoreBackend(service.StoreBackendConfig{Admin: service.NewStoreAdmin(store, nil)})
		})
		func() {
			defer func() { _ = recover() }() // as net/http does
			get(h, path)
		}()
		if store.panics.Load() {
			t.Errorf("%s does not read the store", path)
		}
		for _, again := range []string{"/", "/members"} {
			if w := get(h, again); w.Code != http.StatusOK {
				t.Errorf("%s after a panic in %s: %d", again, path, w.Code)
			}
		}
	}
}
