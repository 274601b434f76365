package firn_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// A limitedSource takes a round trip, plus a constant time for every ID; one
// fetch after the other.
type limitedSource struct {
	trip time.Duration
	free time.Time // it is busy until this time
	next uint64

	mu      sync.Mutex // guards the fields below, because a test reads them during a fetch
	each    time.Duration
	largest int
}

// most returns the size of the largest batch so far.
func (s *limitedSource) most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.largest
}

// setEach sets the time per ID from the next fetch on.
func (s *limitedSource) setEach(each time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each = each
}

func (s *limitedSource) NextBatch(_ context.Context, n int) (firn.Batch, error) {
	s.mu.Lock()
	s.largest = max(s.largest, n)
	each := s.each
	s.mu.Unlock()
	time.Sleep(s.trip)
	if now := time.Now(); s.free.Before(now) {
		s.free = now
	}
	s.free = s.free.Add(time.Duration(n) * each)
	time.Sleep(time.Until(s.free))
	first := s.next + 1
	s.next += uint64(n)
	return firn.BatchFromRuns(firn.Run{First: firn.ID(first), Step: 1, Count: n})
}

// drainLimited takes n IDs as fast as they arrive, and returns how long that
// took and the longest wait for one after the first tenth.
func drainLimited(t *testing.T, p *firn.Prefetcher, n int) (took, longest time.Duration) {
	t.Helper()
	begin := time.Now()
	for i := range n {
		start := time.Now()
		must.Get(p.Next(t.Context()))(t)
		if wait := time.Since(start); i > n/10 {
			longest = max(longest, wait)
		}
	}
	return time.Since(begin), longest
}

// A prefetcher grows as long as that brings more IDs, but not with a source of
// limited rate, where no call waits much longer than for a batch of a fixed
// size.
func TestPrefetcherGrowth(t *testing.T) {
	for _, tt := range []struct {
		name       string
		trip, each time.Duration
		largest    int           // minimum size of the last batch
		atMost     int           // maximum size of all batches
		wait       time.Duration // maximum
	}{
		{"capped", time.Millisecond, 400 * time.Microsecond, 100, 200, 85 * time.Millisecond},
		{"a low cap", 5 * time.Millisecond, 10 * time.Millisecond, 100, 200, 2100 * time.Millisecond},
		{"far away", 50 * time.Millisecond, 0, 10_000, 10_000, 50 * time.Millisecond},
		{"far away and fast", 50 * time.Millisecond, time.Microsecond, 10_000, 10_000, 60 * time.Millisecond},
		{"near", time.Millisecond, time.Microsecond, 800, 3200, 5 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &limitedSource{trip: tt.trip, each: tt.each}
				p := firn.NewPrefetcher(s, nil)
				defer p.Close(t.Context())
				took, longest := drainLimited(t, p, 200_000)
				if s.most() < tt.largest || s.most() > tt.atMost || longest > tt.wait {
					t.Errorf("the largest batch had %d IDs, want %d to %d; the longest wait was %v, want at most %v",
						s.most(), tt.largest, tt.atMost, longest, tt.wait)
				}
				// A fixed prefetcher with the same source is not much faster.
				fixed := firn.NewPrefetcher(&limitedSource{trip: tt.trip, each: tt.each},
					&firn.PrefetchOptions{Count: 100, MaxCount: 100})
				defer fixed.Close(t.Context())
				tookFixed, longestFixed := drainLimited(t, fixed, 200_000)
				t.Logf("report: growing prefetcher, %s: %v for 200,000 IDs, waits up to %v; fixed: %v, up to %v",
					tt.name, took, longest, tookFixed, longestFixed)
				if took > tookFixed+tookFixed/20 {
					t.Errorf("it took %v, and with a fixed count %v", took, tookFixed)
				}
			})
		})
	}
}

// If a source stops limiting its rate, fetches grow again.
func TestPrefetcherGrowsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &limitedSource{trip: time.Millisecond, each: time.Millisecond}
		p := firn.NewPrefetcher(s, nil)
		defer p.Close(t.Context())
		drainLimited(t, p, 10_000)
		if s.most() > 200 {
			t.Fatalf("the largest batch had %d IDs", s.most())
		}
		s.setEach(0)
		drainLimited(t, p, 300_000)
		if s.most() < 10_000 {
			t.Errorf("without the rate the largest batch had %d IDs, want 10000", s.most())
		}
	})
}

// A refusingSource refuses more than a number of IDs at a time, and is far
// away.
type refusingSource struct {
	most    int
	refusal error
	next    uint64
	asked   int
	refused int
}

func (s *refusingSource) NextBatch(_ context.Context, n int) (firn.Batch, error) {
	time.Sleep(time.Millisecond)
	s.asked++
	if n > s.most {
		s.refused++
		return firn.Batch{}, s.refusal
	}
	first := s.next + 1
	s.next += uint64(n)
	return firn.BatchFromRuns(firn.Run{First: firn.ID(first), Step: 1, Count: n})
}

// A source that refuses large batches gets requests for as many IDs as worked,
// and seldom for more. No call fails if its error says that the batch was too
// large, and otherwise only that for which the fetch was.
func TestPrefetcherOfASourceWithALimit(t *testing.T) {
	for _, tt := range []struct {
		refusal error
		fail    bool
	}{{fmt.Errorf("limit: %w", firn.ErrBatchTooLarge), false}, {errors.New("limit"), true}} {
		synctest.Test(t, func(t *testing.T) {
			s := &refusingSource{most: 300, refusal: tt.refusal}
			p := firn.NewPrefetcher(s, nil)
			defer p.Close(t.Context())
			failed := 0
			for range 200_000 {
				if _, err := p.Next(t.Context()); err != nil {
					failed++
				}
			}
			if s.refused == 0 || s.refused > 1+s.asked/256 {
				t.Errorf("%v: %d of %d fetches were refused, want one in %d", tt.refusal, s.refused, s.asked, 256)
			}
			if tt.fail && failed != s.refused || !tt.fail && failed > 0 {
				t.Errorf("%v: %d calls failed, and %d fetches", tt.refusal, failed, s.refused)
			}
			if average := 200_000 / s.asked; average < 190 {
				t.Errorf("%v: batches have %d IDs on average, want 200", tt.refusal, average)
			}
		})
		// A caller that polls gets no error that would end its loop.
		synctest.Test(t, func(t *testing.T) {
			s := &refusingSource{most: 300, refusal: tt.refusal}
			p := firn.NewPrefetcher(s, nil)
			defer p.Close(t.Context())
			failed := 0
			for got := 0; got < 20_000; {
				switch _, err := p.TryNext(); {
				case err == nil:
					got++
				case !errors.Is(err, firn.ErrExhausted):
					failed++
					fallthrough
				default:
					time.Sleep(time.Millisecond)
				}
			}
			if s.refused == 0 || (failed > 0) != tt.fail {
				t.Errorf("%v: %d fetches were refused, and TryNext failed %d times", tt.refusal, s.refused, failed)
			}
		})
	}
}

// A source that refuses the first fetch has failed: there is no smaller one.
func TestPrefetcherOfASourceThatRefuses(t *testing.T) {
	s := &refusingSource{most: 50, refusal: firn.ErrBatchTooLarge}
	p := firn.NewPrefetcher(s, nil)
	defer p.Close(t.Context())
	if _, err := p.Next(t.Context()); !errors.Is(err, firn.ErrBatchTooLarge) || s.asked != 1 {
		t.Errorf("Next: %v after %d fetches, want %v after one", err, s.asked, firn.ErrBatchTooLarge)
	}
}
