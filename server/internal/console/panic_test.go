package console

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
)

// TestPagesThatPanic: after a page that panics, the pages are shown, and none
// waits for what it held.
func TestPagesThatPanic(t *testing.T) {
	for _, path := range []string{"/", "/members"} {
		var panicked atomic.Bool
		store := &faultstore.Store{Store: new(memstore.Store), Fault: func(_ context.Context, r faultstore.Request) error {
			if r.Kind == grant.RequestList && !panicked.Swap(true) {
				panic("store")
			}
			return r.Do()
		}}
		h, _, _ := worldOn(t, store, nil)
		func() {
			defer func() { _ = recover() }() // as net/http does
			get(h, path)
		}()
		if !panicked.Load() {
			t.Errorf("%s does not read the store", path)
		}
		for _, again := range []string{"/", "/members"} {
			if w := get(h, again); w.Code != http.StatusOK {
				t.Errorf("%s after a panic in %s: %d", again, path, w.Code)
			}
		}
	}
}
