package replicated

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/storetest"
)

// TestStore: while its standby follows, it is a store like any other.
func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) grant.Store { return new(Store) }, &storetest.Options{Time: 100 * time.Millisecond})
}

// TestStoreLoses: what was read is lost, what an applied CAS has settled
// is not, and one server never shows another's writes.
func TestStoreLoses(t *testing.T) {
	for _, test := range []struct {
		name string
		// settle does something about the unknown result "b" of key a, which
		// Get shows, and returns what it believes that the key has.
		settle func(t *testing.T, r *Store) string
		kept   bool // what it believes is true after a failover
	}{
		{"by a read", func(t *testing.T, r *Store) string {
			value, err := r.Get(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			return string(value)
		}, false},
		{"by a refused CAS", func(t *testing.T, r *Store) string {
			if ok, err := r.CAS(t.Context(), "a", []byte("a"), []byte("c")); ok || err != nil {
				t.Fatal(ok, err)
			}
			return "b" // b must survive: the refusal has shown it
		}, false},
		{"by a list after the standby is back", func(t *testing.T, r *Store) string {
			r.StartStandby()
			got := ""
			if err := r.List(t.Context(), "", func(_ string, value []byte) bool { got = string(value); return true }); err != nil {
				t.Fatal(err)
			}
			return got
		}, true}, // but nothing has said so
		{"by a CAS", func(t *testing.T, r *Store) string {
			r.StartStandby()
			if ok, err := r.CAS(t.Context(), "a", []byte("b"), []byte("c")); !ok || err != nil {
				t.Fatal(ok, err)
			}
			return "c"
		}, true},
	} {
		for how, end := range map[string]func(*Store, context.CancelFunc){
			"timeout": func(_ *Store, cancel context.CancelFunc) { cancel() },
			"cancel":  func(r *Store, _ context.CancelFunc) { r.CancelWaits() },
		} {
			t.Run(test.name+" after a "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := new(Store)
					if ok, err := r.CAS(t.Context(), "a", nil, []byte("a")); !ok || err != nil {
						t.Fatal(ok, err)
					}
					r.StopStandby()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					done := make(chan struct{})
					go func() {
						defer close(done)
						ok, err := r.CAS(ctx, "a", []byte("a"), []byte("b"))
						if ok || err == nil || errors.Is(err, grant.ErrNotSent) {
							t.Errorf("CAS = %v, %v, want an unknown result", ok, err)
						}
					}()
					synctest.Wait() // until it waits
					end(r, cancel)
					<-done
					believed := test.settle(t, r)
					r.Failover()
					value, err := r.Get(t.Context(), "a")
					if err != nil || (string(value) == believed) != test.kept {
						t.Errorf("after the failover the key has %q (%v), and %q was believed: true %v, want %v", value, err, believed, string(value) == believed, test.kept)
					}
					// The server that was replaced knows nothing of it, and confirms
					// nothing any more.
					old := r.Old()
					if ok, err := r.CAS(t.Context(), "a", value, []byte("new")); !ok || err != nil {
						t.Fatal(ok, err)
					}
					stale, err := old.Get(t.Context(), "a")
					if err != nil || string(stale) == "new" {
						t.Errorf("the old primary shows %q, %v", stale, err)
					}
					if ok, err := old.CAS(t.Context(), "a", stale, []byte("z")); ok || err == nil || errors.Is(err, grant.ErrNotSent) {
						t.Errorf("CAS at the old primary = %v, %v, want an unknown result", ok, err)
					}
					if value, err := r.Get(t.Context(), "a"); string(value) != "new" || err != nil {
						t.Errorf("the primary shows %q, %v, want new", value, err)
					}
				})
			})
		}
	}
}
