package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// A counted Backend counts the questions whether it is ready; an answer takes a
// while.
type counted struct {
	Backend
	asked, at atomic.Int64
	err       atomic.Pointer[error]
}

func (c *counted) Ready(ctx context.Context) error {
	c.asked.Add(1)
	if c.at.Add(1) > 1 {
		return errors.New("asked twice at a time")
	}
	defer c.at.Add(-1)
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done(): // as a store ends a call
		return ctx.Err()
	}
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

// TestReadiness: many callers at once, of which some give up, cost the Backend
// one question, and so does a caller right after them. A moment later the answer
// is a new one.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(counted)
		r := NewReadiness(b)
		wrong := errors.New("wrong")
		ask := func(patience time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err, want := r.Ready(ctx), b.err.Load(); ctx.Err() == nil && (err == nil) != (want == nil) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		for _, err := range []*error{nil, &wrong, nil} {
			b.err.Store(err)
			b.asked.Store(0)
			var all sync.WaitGroup
			for i := range 100 { // the first, whose question it is, leaves
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond / 2)
					ask([]time.Duration{time.Millisecond, time.Second}[i%2])
				})
			}
			all.Wait()
			if n := b.asked.Load(); n != 1 {
				t.Errorf("100 at once: %d questions, want 1", n)
			}
			ask(time.Second)
			if n := b.asked.Load(); n != 1 {
				t.Errorf("right after them: %d questions, want 1", n)
			}
			time.Sleep(readyFor)
		}
	})
}

// TestBeforeEpoch: a sequencer that begins tomorrow, or that was destroyed
// before it began, does not make a server unready that can serve another one.
func TestBeforeEpoch(t *testing.T) {
	store := new(memstore.Store)
	inStoreBackend(t, StoreBackendConfig{Options: sequencer.Options{Window: time.Minute}}, store, func(t *testing.T, b *StoreBackend) {
		tomorrow := time.Now().Add(24 * time.Hour)
		late := grant.DefaultConfig(store, firn.Default().WithEpoch(tomorrow), nil)
		must.Get(grant.Create(t.Context(), store, "late", late, &grant.CreateOptions{Now: func() time.Time { return tomorrow.Add(time.Hour) }}))(t)
		for _, want := range []string{"clock false", "destroyed true"} {
			takeOne(t, b, "orders")
			time.Sleep(10 * time.Minute) // until no window is open
			if _, err := b.Sequencer(t.Context(), "late", nil); err == nil {
				t.Error("late: no error")
			}
			if err := b.Ready(t.Context()); err != nil {
				t.Errorf("unready: %v", err)
			}
			var got string
			b.Usage(func(name string, u *Usage) {
				if name == "late" {
					kind, wanted := u.Problem()
					got = fmt.Sprint(kind, wanted)
				}
			})
			if got != want {
				t.Errorf("late: %q, want %q", got, want)
			}
			must.Get(grant.Destroy(t.Context(), store, "late", nil))(t)
		}
	})
}
