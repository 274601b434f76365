package firn

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// drainFast takes n IDs as fast as they arrive, and returns how long that
// took and the longest wait for one after the first tenth.
func drainFast(t *testing.T, p *Prefetcher, n int) (took, longest time.Duration) {
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
				s := &scriptedSource{delay: tt.trip, each: tt.each}
				p := started(t, s, nil)
				took, longest := drainFast(t, p, 200_000)
				if _, _, n := s.counts(); n < tt.largest || n > tt.atMost || longest > tt.wait {
					t.Errorf("the largest batch had %d IDs, want %d to %d; the longest wait was %v, want at most %v",
						n, tt.largest, tt.atMost, longest, tt.wait)
				}
				// A fixed prefetcher with the same source is not much faster.
				fixed := started(t, &scriptedSource{delay: tt.trip, each: tt.each},
					&PrefetchOptions{Count: 100, MaxCount: 100})
				tookFixed, longestFixed := drainFast(t, fixed, 200_000)
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
		s := &scriptedSource{delay: time.Millisecond, each: time.Millisecond}
		p := started(t, s, nil)
		drainFast(t, p, 10_000)
		if _, _, n := s.counts(); n > 200 {
			t.Fatalf("the largest batch had %d IDs", n)
		}
		s.mu.Lock()
		s.each = 0
		s.mu.Unlock()
		drainFast(t, p, 300_000)
		if _, _, n := s.counts(); n < 10_000 {
			t.Errorf("without the rate the largest batch had %d IDs, want 10000", n)
		}
	})
}

// A source that refuses large batches gets requests for as many IDs as worked,
// and seldom for more. No call fails if its error says that the batch was too
// large, and otherwise only that for which the fetch was.
func TestPrefetcherOfASourceWithALimit(t *testing.T) {
	for _, tt := range []struct {
		refusal error
		fail    bool
	}{{fmt.Errorf("limit: %w", ErrBatchTooLarge), false}, {errors.New("limit"), true}} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedSource{delay: time.Millisecond, most: 300, refusal: tt.refusal}
			p := started(t, s, nil)
			failed := 0
			for range 200_000 {
				if _, err := p.Next(t.Context()); err != nil {
					failed++
				}
			}
			fetches, refused, _ := s.counts()
			if refused == 0 || refused > 1+fetches/256 {
				t.Errorf("%v: %d of %d fetches were refused, want one in %d", tt.refusal, refused, fetches, 256)
			}
			if tt.fail && failed != refused || !tt.fail && failed > 0 {
				t.Errorf("%v: %d calls failed, and %d fetches", tt.refusal, failed, refused)
			}
			if average := 200_000 / fetches; average < 190 {
				t.Errorf("%v: batches have %d IDs on average, want 200", tt.refusal, average)
			}
		})
		// A caller that polls gets no error that would end its loop.
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedSource{delay: time.Millisecond, most: 300, refusal: tt.refusal}
			p := started(t, s, nil)
			failed := 0
			for got := 0; got < 20_000; {
				switch _, err := p.TryNext(); {
				case err == nil:
					got++
				case !errors.Is(err, ErrExhausted):
					failed++
					fallthrough
				default:
					time.Sleep(time.Millisecond)
				}
			}
			if _, refused, _ := s.counts(); refused == 0 || (failed > 0) != tt.fail {
				t.Errorf("%v: %d fetches were refused, and TryNext failed %d times", tt.refusal, refused, failed)
			}
		})
	}
}

// A source that refuses the first fetch has failed: there is no smaller one.
func TestPrefetcherOfASourceThatRefuses(t *testing.T) {
	s := &scriptedSource{most: 50, refusal: ErrBatchTooLarge}
	p := started(t, s, nil)
	if _, err := p.Next(t.Context()); !errors.Is(err, ErrBatchTooLarge) || len(s.asked) != 1 {
		t.Errorf("Next: %v after %d fetches, want %v after one", err, len(s.asked), ErrBatchTooLarge)
	}
}
