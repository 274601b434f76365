package service

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// crowded runs a test with each kind of Backend, in a synctest bubble, for a
// sequencer of 64,000 IDs per second.
func crowded(t *testing.T, run func(t *testing.T, b Backend)) {
	layout, ahead := firn.MustParseLayout("hazelcast"), time.Second
	t.Run("store", func(t *testing.T) {
		c := StoreBackendConfig{Options: sequencer.Options{Layout: layout, MaxAhead: &ahead, Window: time.Minute}}
		inStoreBackend(t, c, new(memstore.Store), func(t *testing.T, b *StoreBackend) { run(t, b) })
	})
	t.Run("static", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(27 * 365 * 24 * time.Hour)
			s := must.Get(NewStaticBackend(StaticBackendConfig{Layout: layout, Options: &firn.Options{MaxAhead: ahead}}))(t)
			run(t, s)
		})
	})
}

// A tally counts the results of requests.
type tally struct {
	answered, refused int
	last              *Problem
}

// ask requests n IDs repeatedly, like a client that honors Retry-After.
func (y *tally) ask(ctx context.Context, b Backend, n int) error {
	end, _ := ctx.Deadline()
	for time.Until(end) > DefaultRequestTimeout {
		limited, cancel := context.WithTimeout(ctx, DefaultRequestTimeout)
		s, err := b.Sequencer(limited, "orders", nil)
		if err == nil {
			_, err = s.Take(limited, n)
		}
		late := limited.Err() != nil
		cancel()
		if err == nil {
			y.answered++
		} else {
			y.refused++
			y.last = ProblemOf(err, DefaultRequestTimeout, late)
			if f := y.last; f.Kind != Busy || f.Retry <= 0 || f.Retry > 12*time.Second || !strings.Contains(f.Detail, fmt.Sprintf("%d IDs are not free for another %v", n, f.Retry)) {
				return fmt.Errorf("a request for %d IDs: %+v, want that it says how long these take", n, f)
			}
			time.Sleep(y.last.Retry)
		}
	}
	return nil
}

// TestFairOrder: a large request is answered as often as medium ones that
// together ask for more than there is room for. Before, all of them waited in
// line until shortly before their limit, and the large one had no time left for
// its turn.
func TestFairOrder(t *testing.T) {
	crowded(t, func(t *testing.T, b Backend) {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
		defer stop()
		var clients sync.WaitGroup
		tallies := make([]tally, 1+80)
		for i := range tallies {
			clients.Go(func() {
				n := 10_000
				if i == 0 {
					n = MaxCount
				}
				if err := tallies[i].ask(ctx, b, n); err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
		large, middling := tallies[0], tally{}
		for _, y := range tallies[1:] {
			middling.answered += y.answered
			middling.refused += y.refused
		}
		// A large request takes ten seconds, and as long again if it is
		// refused.
		if large.answered < 10 || large.refused > large.answered {
			t.Errorf("of large requests %d are answered and %d refused, of middling ones %d and %d", large.answered, large.refused, middling.answered, middling.refused)
		}
		if ids := large.answered*MaxCount + middling.answered*10_000; ids < 5*60*64_000*95/100 {
			t.Errorf("%d IDs in 5 minutes, want most of what there is room for", ids)
		}
	})
}

// TestNoOvertaking: an available ID that a call waits for is not given to a
// later call that does not wait.
func TestNoOvertaking(t *testing.T) {
	crowded(t, func(t *testing.T, b Backend) {
		s := must.Get(b.Sequencer(t.Context(), "orders", nil))(t)
		for {
			if _, err := s.Try(1000); err != nil {
				break
			}
		}
		for {
			if _, err := s.Try(1); err != nil {
				break
			}
		}
		done := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := s.Take(t.Context(), 1)
				done <- err
			}()
		}
		synctest.Wait()
		if _, err := s.Try(1); err == nil {
			t.Error("an ID is given to a call that did not wait, before two that do")
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Try(1); err != nil {
			t.Errorf("no call waits any more: %v", err)
		}
	})
}
