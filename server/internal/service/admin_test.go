package service_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// newMute makes a StoreBackend over a store that reports no changes, like a
// directory or a database, and is observed, as a server's is.
func newMute(t *testing.T, store grant.Store) *service.StoreBackend {
	s := grant.Observe(&faultstore.Store{Store: store}, func(ctx context.Context, _ grant.Request, _ string) (context.Context, func(bool, error)) {
		return ctx, func(bool, error) {}
	})
	return servicetest.NewStoreBackend(t, s, service.StoreBackendConfig{Options: sequencer.Options{Window: time.Minute}})
}

// TestHolderActsAtOnce: a server that detaches or destroys a sequencer gives
// its own node ID of it back at once. After the sequencer was attached or
// created again, the server's next call gets an ID without a delay.
func TestHolderActsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name      string
		end, back func(context.Context, *service.StoreAdmin) (grant.Info, error)
		err       error
	}{
		{"detach", func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) { return a.Detach(ctx, "orders") },
			func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) { return a.Attach(ctx, "orders") }, grant.ErrDetached},
		{"destroy", func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) {
			return a.Destroy(ctx, "orders")
		},
			func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) {
				return a.Create(ctx, "orders", grant.DefaultConfig(a.Store(), firn.Default(), nil))
			}, grant.ErrDestroyed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
				ctx := t.Context()
				backend := newMute(t, new(memstore.Store))
				q := must.Get(backend.Sequencer(ctx, "orders", nil))(t)
				last := uint64(0)
				for round := range 3 {
					b, err := q.Take(ctx, 10)
					if err != nil {
						t.Fatalf("round %d: %v", round, err)
					}
					for id := range b.All {
						if id.Uint64() <= last {
							t.Fatalf("round %d: %d after %d", round, id.Uint64(), last)
						}
						last = id.Uint64()
					}
					time.Sleep(7 * time.Second) // the member has read the configuration long ago

					ended := make(chan error, 1)
					start := time.Now()
					go func() {
						_, err := tt.end(ctx, backend.Admin())
						ended <- err
					}()
					synctest.Wait() // the first write, and what the member makes of it
					if _, err := q.Try(1); !errors.Is(err, tt.err) {
						t.Errorf("round %d: right after it began, TryNext = %v, want %v", round, err, tt.err)
					}
					if err := <-ended; err != nil || time.Since(start) > time.Second {
						t.Fatalf("round %d: %v after %v", round, err, time.Since(start))
					}
					if _, err := q.Take(ctx, 1); !errors.Is(err, tt.err) {
						t.Errorf("round %d: NextBatch = %v, want %v", round, err, tt.err)
					}

					start = time.Now()
					must.Get(tt.back(ctx, backend.Admin()))(t)
					synctest.Wait() // the member hears of it in its own goroutine
					b, err = q.Try(1)
					if err != nil || b.At(0).Uint64() <= last || time.Since(start) > 100*time.Millisecond {
						t.Errorf("round %d: right after it is back, Try = %v after %v", round, err, time.Since(start))
					}
				}
			})
		})
	}
}

// TestCreatedWithAnotherLayout: the server that held a sequencer purges it and
// creates it again with another layout. Its next call uses that layout.
func TestCreatedWithAnotherLayout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
		ctx := t.Context()
		store := new(memstore.Store)
		b := newMute(t, store)
		must.Get(b.Sequencer(ctx, "orders", nil))(t)
		must.Get(b.Admin().Destroy(ctx, "orders"))(t)
		must.Get(grant.Purge(ctx, store, "orders"))(t)
		config := grant.DefaultConfig(b.Admin().Store(), firn.MustParseLayout("hazelcast"), nil)
		must.Get(b.Admin().Create(ctx, "orders", config))(t)
		q, err := b.Sequencer(ctx, "orders", nil)
		if err != nil || q.Layout.String() != "hazelcast" {
			t.Fatalf("the layout is %v, %v", q.Layout, err)
		}
		must.Get(q.Take(ctx, 1))(t)
	})
}

// The settings of a template are those of sequencers that are created by use.
func TestTemplate(t *testing.T) {
	b := servicetest.NewStoreBackend(t, new(memstore.Store), service.StoreBackendConfig{
		Template: func(_ string, c *sequencer.Options) error {
			c.Prefix, c.Layout = "order", firn.MustParseLayout("default,even=7")
			return nil
		},
	})
	old := grant.DefaultConfig(b.Admin().Store(), firn.Default(), nil)
	must.Get(b.Admin().Create(t.Context(), "old", old))(t)
	for name, want := range map[string]sequencer.Options{"orders": {Prefix: "order", Layout: firn.MustParseLayout("default,even=7")}, "old": {Layout: firn.Default()}} {
		q, err := b.Sequencer(t.Context(), name, nil)
		if err != nil || q.Prefix != want.Prefix {
			t.Fatalf("%s: %+v, %v, want prefix %q", name, q, err, want.Prefix)
		}
		info, err := b.Admin().Lookup(t.Context(), name)
		if err != nil || info.Config.Prefix != want.Prefix || info.Config.Layout != want.Layout {
			t.Errorf("%s: %+v, %v, want %+v", name, info.Config, err, want)
		}
	}
}
