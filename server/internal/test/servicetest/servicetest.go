// Package servicetest has Backends for tests of protocols.
package servicetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/service"
)

// A Backend is a service.Backend that is a function. None of its sequencers
// is open.
type Backend func(ctx context.Context, name string) (*service.Sequencer, error)

// Sequencer calls the function.
func (f Backend) Sequencer(ctx context.Context, name string, _ *service.Creator) (*service.Sequencer, error) {
	return f(ctx, name)
}

// Opened returns nil.
func (Backend) Opened(string) *service.Sequencer { return nil }

// Ready returns nil.
func (Backend) Ready(context.Context) error { return nil }

// Admin returns nil.
func (Backend) Admin() *service.StoreAdmin { return nil }

// Open is a Backend with one source of 64-bit IDs for all names, which are
// open.
func Open(f Source) service.Backend {
	s := service.NewSequencer(firn.Default(), f)
	return openBackend{func(context.Context, string) (*service.Sequencer, error) { return s, nil }, s}
}

type openBackend struct {
	Backend
	s *service.Sequencer
}

func (o openBackend) Opened(name string) *service.Sequencer {
	if grant.CheckName(name) != nil {
		return nil
	}
	return o.s
}

// A Source is a source of IDs that is a function. It does not wait if the
// context is done.
type Source func(ctx context.Context, n int) (firn.Batch, error)

// NextBatch calls the function.
func (f Source) NextBatch(ctx context.Context, n int) (firn.Batch, error) { return f(ctx, n) }

// TryNextBatch calls the function with a context that is done.
func (f Source) TryNextBatch(n int) (firn.Batch, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return f(ctx, n)
}

// Config returns the default configuration of a sequencer.
func Config(l firn.Layout) grant.Config {
	return grant.DefaultConfig(nil, l, nil)
}

// NewStoreBackend makes a StoreBackend on a store, and closes it when the test
// ends.
func NewStoreBackend(t testing.TB, s grant.Store, c service.StoreBackendConfig) *service.StoreBackend {
	t.Helper()
	c.Admin = service.NewStoreAdmin(s, nil)
	b := service.NewStoreBackend(c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = b.Close(ctx) // a second call is harmless
	})
	return b
}

// day is the time at which the clock of NewStaticBackend begins.
var day = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// NewStaticBackend makes a Static of a layout, with node 5. Its clock advances
// by ten seconds at every reading, so that no test waits for real time.
func NewStaticBackend(t testing.TB, layout string) *service.StaticBackend {
	t.Helper()
	l := firn.MustParseLayout(layout)
	var n atomic.Int64
	s, err := service.NewStaticBackend(service.StaticBackendConfig{
		Layout: l,
		Node:   min(5, l.MaxNode()),
		Options: &firn.Options{
			Now:      func() time.Time { return day.Add(time.Duration(n.Add(1)) * 10 * time.Second) },
			MaxAhead: l.DefaultMaxAhead(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
