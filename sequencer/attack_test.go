package sequencer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// TestAttackUnusable: the clock steps back between Detach and Attach, and is
// then corrected.
func TestAttackUnusable(t *testing.T) {
	in2026(t, func(t *testing.T) {
		store := new(memstore.Store)
		var back atomic.Int64
		now := func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
		q := open(t, store, &sequencer.Config{Layout: sixteen, Now: now})
		next(t, q, 5)
		if err := q.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		back.Store(int64(2 * time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Log("attach:", q.Attach(ctx))
		cancel()
		back.Store(0)
		for range 5 {
			time.Sleep(time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := q.Next(ctx)
			t.Log("next:", err, q.State())
			cancel()
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		t.Log("attach:", q.Attach(ctx))
		cancel()
		_, err := q.Next(t.Context())
		if err != nil {
			t.Error("stuck for good:", err)
		}
		_ = q.Close(t.Context())
	})
}

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

var four = firn.MustParseLayout("bits=time:44.node:2.seq:4,unit=1ms,epoch=0")

// TestAttackStoreBehind: the store's clock is an hour behind; one of four
// members crashes and restarts, and the others confirm its clock.
func TestAttackStoreBehind(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		in2026(t, func(t *testing.T) {
			mem := new(memstore.Store)
			var good []*sequencer.Sequencer
			for range 3 {
				good = append(good, open(t, mem, &sequencer.Config{Layout: four}))
			}
			b := &brokenStore{Store: mem}
			q := open(t, b, &sequencer.Config{Layout: four})
			node := q.State().Node
			next(t, q, 1)
			crash(t, q, b)
			store := timedStore{mem, -time.Hour}
			began := time.Now()
			var last error
			for time.Since(began) < 10*time.Minute {
				c := &sequencer.Config{WaitForNode: true}
				if pinned {
					c.Nodes = &grant.Range{Lo: node, Hi: node}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				done := make(chan struct{})
				go func() {
					defer close(done)
					p, err := sequencer.Open(ctx, store, "orders", c)
					last = err
					if err == nil {
						_ = p.Close(t.Context())
					}
				}()
			wait:
				for {
					select {
					case <-done:
						break wait
					case <-time.After(time.Second):
						for _, g := range good {
							next(t, g, 1)
						}
					}
				}
				cancel()
				time.Sleep(time.Second)
				if last == nil {
					break
				}
			}
			if (last != nil) != pinned || pinned && !errors.Is(last, grant.ErrClockAhead) {
				t.Errorf("pinned %t: %v after %v", pinned, last, time.Since(began))
			}
			for _, g := range good {
				_ = g.Close(t.Context())
			}
		})
	}
}

// TestAttackStepBackLost: after a step back, the error of Next contains the
// reason.
func TestAttackStepBackLost(t *testing.T) {
	in2026(t, func(t *testing.T) {
		store := new(memstore.Store)
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		ahead.Store(int64(365 * 24 * time.Hour))
		create(t, store, sixteen, time.Minute)
		q := open(t, store, &sequencer.Config{Now: now, AllowClockAhead: true})
		next(t, q, 5)
		ahead.Store(0)
		_, err := q.Next(t.Context())
		t.Log("step back:", err)
		r, err := grant.Repair(t.Context(), store, "orders", nil)
		t.Log("repair:", len(r.Nodes), err)
		time.Sleep(30 * time.Second)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 70*time.Second)
			_, err = q.Next(ctx)
			cancel()
			t.Log("next:", err, q.State())
			time.Sleep(61 * time.Second)
		}
		var ce *firn.ClockError
		if !errors.As(err, &ce) {
			t.Error("no ClockError:", err)
		}
		_ = q.Close(t.Context())
	})
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

func TestAttackStaleMany(t *testing.T) {
	in2026(t, func(t *testing.T) {
		mem := new(memstore.Store)
		create(t, mem, sixteen, time.Minute)
		q := open(t, mem, &sequencer.Config{Layout: sixteen, Nodes: &grant.Range{Lo: 3, Hi: 3}})
		next(t, q, 1)
		s := &staleStore{Store: mem, many: map[string][]byte{}}
		s.on.Store(true)
		go func() { time.Sleep(5 * time.Second); s.on.Store(false) }()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := sequencer.Open(ctx, s, "orders", &sequencer.Config{WaitForNode: true, Nodes: &grant.Range{Lo: 3, Hi: 3}})
		cancel()
		t.Log(err, s.calls.Load(), "reads")
		if s.calls.Load() > 200 {
			t.Errorf("%d reads in 10 s", s.calls.Load())
		}
		_ = q.Close(t.Context())
	})
}
