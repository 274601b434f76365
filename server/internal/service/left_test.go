package service

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/left"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/auth"
)

// TestLineLeft: a call leaves the line however it ends.
func TestLineLeft(t *testing.T) {
	end := func(ctx context.Context, _ int) (Batch, error) { <-ctx.Done(); return Batch{}, ctx.Err() }
	for what, next := range map[string]func(context.Context, int) (Batch, error){
		"answered": func(context.Context, int) (Batch, error) { return Batch{}, nil },
		"failed":   func(context.Context, int) (Batch, error) { return Batch{}, errors.New("broken") },
		"late":     end,
		"panicked": func(context.Context, int) (Batch, error) { panic("boom") },
	} {
		layout := firn.Default()
		l := &queue{layout: &layout, next: next}
		for range 2 {
			func() {
				defer func() { _ = recover() }()
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				_, _ = l.waitInLine(ctx, 1, &firn.WaitError{})
			}()
			if n := l.waiting.Load(); n != 0 {
				t.Errorf("after a call that has %s, %d calls wait", what, n)
			}
		}
	}
}

// TestNothingLeft: calls leave nothing in a StoreBackend, with each of their
// ends.
func TestNothingLeft(t *testing.T) {
	store := new(memstore.Store)
	b := NewStoreBackend(StoreBackendConfig{Admin: NewStoreAdmin(store, nil), Options: sequencer.Options{Layout: firn.MustParseLayout("hazelcast"), MustExist: false}})
	defer b.Close(context.WithoutCancel(t.Context()))
	b.missed.rate.PerSecond, b.creations.rate.PerSecond = math.Inf(1), math.Inf(1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	front := Front{Backend: b, RequestTimeout: time.Minute}
	ask := func(ctx context.Context, name string, n int, q Request) {
		q.Count = n
		_ = front.Take(ctx, new(auth.Credentials), name, &q, new(Batch))
	}
	refuse := Problemf(BadParameter, "refused")
	for what, call := range map[string]func(){
		"an ID":                   func() { ask(t.Context(), "orders", 1, Request{}) },
		"a batch that waits":      func() { ask(t.Context(), "orders", 200, Request{}) },
		"a call that has ended":   func() { ask(gone, "orders", 1, Request{}) },
		"a request that is unfit": func() { ask(t.Context(), "orders", 1, Request{Fit: func(*Sequencer) *Problem { return refuse }}) },
		"an unknown name":         func() { ask(t.Context(), "none", 1, Request{MustExist: true}) },
		"a call that ends meanwhile": func() {
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			ask(ctx, "orders", 100, Request{})
		},
		"a question for readiness": func() { _ = NewReadiness(b).Ready(t.Context()) },
	} {
		left.Nothing(t, what, call)
	}
}
