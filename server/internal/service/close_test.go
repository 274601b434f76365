package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/sequencer"
)

// TestCloseWhileOpening: whenever a server stops while it opens a sequencer,
// its node ID is free at once for its successor.
func TestCloseWhileOpening(t *testing.T) {
	for moment := range 16 {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(27 * 365 * 24 * time.Hour)
			m := &faultstore.Store{Store: new(memstore.Store), Delay: 100 * time.Millisecond}
			config := StoreBackendConfig{Admin: NewStoreAdmin(m, nil), Options: sequencer.Options{Nodes: &grant.NodeRange{}}}
			b := NewStoreBackend(config)
			asked := make(chan struct{})
			go func() {
				defer close(asked)
				limited, cancel := context.WithTimeout(t.Context(), DefaultRequestTimeout)
				defer cancel()
				if s, err := b.Sequencer(limited, "orders", nil); err == nil {
					_, _ = s.Take(limited, 1)
				}
			}()
			time.Sleep(time.Duration(moment)*50*time.Millisecond + time.Millisecond)
			limited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := b.Close(limited); err != nil {
				t.Errorf("moment %d: %v", moment, err)
			}
			<-asked
			_ = grant.Nodes(t.Context(), m.Store, "orders", func(n grant.NodeInfo, err error) bool {
				if n.Held {
					t.Errorf("moment %d: node ID %d is held for another %v", moment, n.Node, time.Until(n.Until))
				}
				return err == nil
			})
			time.Sleep(time.Minute) // let calls in progress end
		})
	}
}

// TestCloseMany: a server with the maximum number of open sequencers gives all
// node IDs back, even to a store that takes longer for that than for any
// request. It does not wait for a store that accepts none.
func TestCloseMany(t *testing.T) {
	names := 1000
	if os.Getenv("FIRN_SOAK") != "" {
		names = DefaultMaxSequencers
	}
	for _, stalls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(27 * 365 * 24 * time.Hour)
			turn, each := make(chan struct{}, 1), time.Duration(0) // the store writes one value at a time
			var at, most atomic.Int64                              // concurrent writes
			store := &faultstore.Store{Store: new(memstore.Store), Fault: func(ctx context.Context, r faultstore.Request) error {
				if r.Kind != grant.RequestCAS {
					return r.Do()
				}
				if at := at.Add(1); at > most.Load() {
					most.Store(at)
				}
				defer at.Add(-1)
				select {
				case turn <- struct{}{}:
					defer func() { <-turn }()
				case <-ctx.Done():
					return ctx.Err()
				}
				time.Sleep(each)
				return r.Do()
			}}
			b := NewStoreBackend(StoreBackendConfig{Admin: NewStoreAdmin(store, nil)})
			var opening sync.WaitGroup
			for i := range names {
				opening.Go(func() { takeOne(t, b, fmt.Sprintf("n%d", i)) })
			}
			opening.Wait()
			each = 10 * time.Millisecond
			most.Store(0)
			if stalls {
				turn <- struct{}{}
			}
			begin := time.Now()
			err := b.Close(t.Context())
			took := time.Since(begin)
			switch {
			case stalls && (err == nil || took > closeStallTimeout):
				t.Errorf("%v after %v, want an error after %v", err, took, closeStallTimeout)
			case !stalls && err != nil:
				t.Errorf("%d sequencers, after %v: %v", names, took, err)
			}
			if n := most.Load(); n > maxParallelCloses && !stalls {
				t.Errorf("%d writes at the same time, want %d at most: what waits too long is given up", n, maxParallelCloses)
			}
			if stalls {
				<-turn
			}
			t.Logf("report: %d sequencers closed in %v, on a store that %s", names, took, map[bool]string{false: "writes 100 values a second", true: "writes none"}[stalls])
		})
	}
}

// A lateSequencer is abandoned while its Close begins, because the context ends
// then. Like that of a Keeper, Close then only waits for Abandon.
type lateSequencer struct {
	openSequencer
	end       context.CancelFunc
	abandoned chan struct{}
}

func (q *lateSequencer) Close(context.Context) error {
	q.end()
	<-q.abandoned
	return nil
}

func (q *lateSequencer) Abandon() { close(q.abandoned) }

// TestGiveBackLate: a sequencer that was abandoned before its Close began is
// one whose node ID was not given back.
func TestGiveBackLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := &entry{openSequencer: &lateSequencer{end: cancel, abandoned: make(chan struct{})}}
	if failed, err := giveBack(ctx, []*entry{e}); failed != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d not given back, and the error %v, want 1 and %v", failed, err, context.Canceled)
	}
}
