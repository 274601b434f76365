package firn

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/firnid/firn/internal/test/must"
)

// A scriptedSource returns consecutive IDs from 1.
type scriptedSource struct {
	mu      sync.Mutex
	delay   time.Duration // of a fetch
	each    time.Duration // and of each ID, one fetch after the other
	err     error         // for the fetches that begin from now on
	most    int           // larger batches are refused; 0 means none
	refusal error
	last    ID
	free    time.Time // it makes IDs until then
	asked   []int
}

func (s *scriptedSource) NextBatch(ctx context.Context, n int) (Batch, error) {
	s.mu.Lock()
	s.asked = append(s.asked, n)
	first, err, delay := s.last+1, s.err, s.delay
	if s.most > 0 && n > s.most {
		err = s.refusal
	}
	if err == nil {
		s.last += ID(n)
	}
	if s.each > 0 {
		delay = max(delay, time.Until(s.free)) + time.Duration(n)*s.each
		s.free = time.Now().Add(delay)
	}
	s.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
	if err != nil {
		return Batch{}, err
	}
	return BatchFromRuns(Run{first, 1, n})
}

// counts returns the number of fetches, how many of them were refused, and the
// size of the largest.
func (s *scriptedSource) counts() (fetches, refused, largest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.asked {
		if s.most > 0 && n > s.most {
			refused++
		}
	}
	return len(s.asked), refused, slices.Max(s.asked)
}

// fail makes later fetches fail, or succeed again. It discards the recorded
// requests.
func (s *scriptedSource) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.asked = err, nil
}

func (s *scriptedSource) wantAsked(t *testing.T, want ...int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.asked, want) {
		t.Errorf("the source was asked for %v, want %v", s.asked, want)
	}
}

func wantNext(t *testing.T, p *Prefetcher, want ID) {
	t.Helper()
	if id, err := p.Next(t.Context()); id != want || err != nil {
		t.Errorf("Next() = %v, %v, want %v", id, err, want)
	}
}

// nextIn is Next under a context that ends after d.
func nextIn(t *testing.T, p *Prefetcher, d time.Duration) (ID, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return p.Next(ctx)
}

func closePrefetcher(t *testing.T, p *Prefetcher) {
	t.Helper()
	if err := p.Close(context.Background()); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

// started returns a Prefetcher that is closed when the test, or its bubble,
// ends.
func started(t *testing.T, source Source, o *PrefetchOptions) *Prefetcher {
	t.Helper()
	p := NewPrefetcher(source, o)
	t.Cleanup(func() { closePrefetcher(t, p) })
	return p
}

// The second batch is fetched when half of the first is used, and the order is
// kept across both.
func TestPrefetcherFetchesAtHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{delay: time.Second}
		p := started(t, source, &PrefetchOptions{Count: 10, Validity: -1})
		time.Sleep(time.Hour)
		source.wantAsked(t)
		for i := range ID(5) {
			wantNext(t, p, i+1)
		}
		synctest.Wait()
		source.wantAsked(t, 10)
		wantNext(t, p, 6)
		synctest.Wait()
		source.wantAsked(t, 10, 10)
		time.Sleep(2 * time.Second)
		// A call that reached half earlier, and gets the lock only now, must
		// not fetch a batch in place of the one that is ready.
		b := p.block.Load()
		b.refetchAt.Store(0)
		p.fetchSoon(b)
		synctest.Wait()
		source.wantAsked(t, 10, 10)
		start := time.Now()
		for i := range ID(9) {
			wantNext(t, p, i+7)
		}
		if waited := time.Since(start); waited != 0 || p.Stats().Waits != 1 {
			t.Errorf("waited %v in %d calls, want only the first", waited, p.Stats().Waits)
		}
	})
}

// A caller that waits although a batch was there makes the next ones larger, up
// to the maximum; batches that grow too old make them smaller again.
func TestPrefetcherGrowsAndShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{delay: time.Millisecond}
		p := started(t, source, &PrefetchOptions{Count: 10, MaxCount: 35, Validity: time.Minute})
		for i := range ID(100) { // in no time at all
			wantNext(t, p, i+1)
		}
		synctest.Wait()
		// The second batch was requested at half of the first, before any
		// caller waited, and the others when the previous one was used up.
		source.wantAsked(t, 10, 10, 20, 35, 35)
		time.Sleep(5 * time.Millisecond)
		if s := p.Stats(); s.Discarded != 0 || s.Fetches != 5 {
			t.Errorf("Stats = %+v, want 5 fetches", s)
		}
		for range 3 { // one ID every few minutes
			time.Sleep(5 * time.Minute)
			must.Get(p.Next(t.Context()))(t)
		}
		source.wantAsked(t, 10, 10, 20, 35, 35, 35, 17, 10)
	})
	// With a source of a limited rate, a batch counts once that growth is held
	// back, with any number of callers that wait for it.
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		p := started(t, fetchFunc(func(_ context.Context, n int) (Batch, error) {
			asked = append(asked, n)
			time.Sleep(time.Duration(n) * time.Millisecond)
			return BatchFromRuns(Run{1, 1, n})
		}), &PrefetchOptions{Count: 10, MaxCount: 1000, Validity: -1})
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				for range 20 {
					if _, err := p.Next(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		large := 0
		for _, n := range asked {
			if n > 10 {
				large++
			}
		}
		if large > len(asked)/8 {
			t.Errorf("%d of %d fetches were large: %v", large, len(asked), asked)
		}
	})
}

// A timer ends a batch at the end of its validity; that exact instant is not
// tested, because the order of timers is undefined then.
func TestPrefetcherExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{}
		p := started(t, source, &PrefetchOptions{Count: 10, Validity: time.Minute})
		for i := range ID(6) {
			wantNext(t, p, i+1) // the next batch arrives now
		}
		time.Sleep(time.Minute - time.Millisecond)
		wantNext(t, p, 7)
		time.Sleep(2 * time.Millisecond)
		if s := p.Stats(); s.Discarded != 13 {
			t.Errorf("discarded %d, want 3 and 10", s.Discarded)
		}
		wantNext(t, p, 21)

		// The second batch is younger, and stays.
		time.Sleep(30 * time.Second)
		for i := range ID(5) {
			wantNext(t, p, i+22)
		}
		time.Sleep(30*time.Second + 1)
		wantNext(t, p, 31)
		time.Sleep(time.Minute)
		if id, err := p.TryNext(); !errors.Is(err, ErrExhausted) || id != 0 {
			t.Errorf("TryNext() = %v, %v, want ErrExhausted", id, err)
		}
		synctest.Wait()
		if id, err := p.TryNext(); id != 41 || err != nil {
			t.Errorf("TryNext() = %v, %v, want 41", id, err)
		}
	})
}

// The age of an ID counts from the beginning of its fetch, however late the
// answer comes.
func TestPrefetcherLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{delay: 40 * time.Second}
		p := started(t, source, &PrefetchOptions{Count: 10, Validity: time.Minute, OnDemand: true})
		wantNext(t, p, 1)
		time.Sleep(20*time.Second - 1)
		wantNext(t, p, 2)
		time.Sleep(2 * time.Nanosecond)
		wantNext(t, p, 11)
		source.delay = 2 * time.Minute
		time.Sleep(time.Minute)
		wantNext(t, p, 21)
		synctest.Wait()
		wantNext(t, p, 31) // the others were too old on arrival
	})
}

// However short the validity, a fetch serves at least one call.
func TestPrefetcherShortValidity(t *testing.T) {
	p := started(t, &scriptedSource{}, &PrefetchOptions{Count: 10, Validity: 1})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				if _, err := p.Next(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()

	// Also a call that waited for a fetch in the background.
	synctest.Test(t, func(t *testing.T) {
		p := started(t, &scriptedSource{delay: time.Second}, &PrefetchOptions{Count: 10, Validity: 1})
		if _, err := p.TryNext(); err != ErrExhausted {
			t.Errorf("TryNext() = %v", err)
		}
		wantNext(t, p, 1)
	})
}

// A failed fetch is returned to the calls for which it was made, and retried; a
// failure in the background is returned to no call.
func TestPrefetcherFailures(t *testing.T) {
	down := errors.New("down")
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{delay: time.Second, err: down}
		p := started(t, source, &PrefetchOptions{Count: 16})
		start := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if id, err := p.Next(t.Context()); !errors.Is(err, down) || id != 0 || time.Since(start) > 2*time.Second {
					t.Errorf("Next() = %v, %v, want %v", id, err, down)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if _, err := p.TryNext(); !errors.Is(err, down) || errors.Is(err, ErrExhausted) {
			t.Errorf("TryNext() = %v, want %v, and not ErrExhausted", err, down)
		}
		time.Sleep(1500 * time.Millisecond)
		source.fail(nil)
		for i := range ID(8) {
			wantNext(t, p, i+1)
		}
		synctest.Wait()
		source.fail(down)
		for i := range ID(7) {
			wantNext(t, p, i+9)
			time.Sleep(1500 * time.Millisecond)
		}
		source.wantAsked(t, 16, 16, 16) // with 9, 13 and 15
		source.fail(nil)
		wantNext(t, p, 16)
		wantNext(t, p, 17)
	})
}

// A call that arrives while a fetch is in progress does not get its error.
func TestPrefetcherFailureOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		source := &scriptedSource{delay: time.Second, err: down}
		p := started(t, source, nil)
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := p.Next(t.Context()); err != down {
				t.Errorf("the first call: %v, want %v", err, down)
			}
		})
		synctest.Wait()
		source.fail(nil)
		all.Go(func() { wantNext(t, p, 1) })
		all.Wait()
	})
}

// Fetches ahead of callers are worthwhile if batches last a while, and change
// with that.
func TestPrefetcherFetchesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{delay: time.Millisecond}
		p := started(t, source, &PrefetchOptions{Count: 10, MaxCount: 10})
		want := ID(1)
		use := func(batches int, pause time.Duration) (waits uint64) {
			before := p.Stats().Waits
			for range 10 * batches {
				time.Sleep(pause)
				wantNext(t, p, want)
				want++
			}
			return p.Stats().Waits - before
		}
		use(3, 0)
		if waits := use(20, minBatchLife/10); waits != 20 {
			t.Errorf("batches that last %v: %d of 20 were waited for", minBatchLife, waits)
		}
		if waits := use(20, time.Millisecond); waits > 3 {
			t.Errorf("batches that last 10 ms: %d of 20 were waited for, want only the first ones", waits)
		}
	})
}

// A call that fetches and takes most of its batch begins the next fetch, as any
// other call would.
func TestPrefetcherFillFetchesAhead(t *testing.T) {
	for _, count := range []int{1, 10} {
		synctest.Test(t, func(t *testing.T) {
			p := started(t, &scriptedSource{delay: time.Millisecond}, &PrefetchOptions{Count: count, MaxCount: count})
			for range 20 {
				must.Do(t, p.Fill(t.Context(), make([]ID, count)))
				time.Sleep(10 * time.Millisecond)
			}
			if s := p.Stats(); s.Waits != 1 {
				t.Errorf("Count %d: %+v, want that only the first call waits", count, s)
			}
		})
	}
}

// A caller that gives up does not end the wait of others: they wait for one
// more fetch, not two, and count as one wait each.
func TestPrefetcherGivingUp(t *testing.T) {
	for _, down := range []error{nil, errors.New("down")} {
		synctest.Test(t, func(t *testing.T) {
			source := &scriptedSource{delay: time.Second, err: down}
			p := started(t, source, nil)
			start := time.Now()
			var all sync.WaitGroup
			all.Go(func() {
				if id, err := nextIn(t, p, 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || id != 0 {
					t.Errorf("the call that fetches: %v, %v, want DeadlineExceeded", id, err)
				}
			})
			synctest.Wait()
			for range 3 {
				all.Go(func() {
					if _, err := p.Next(t.Context()); err != down || time.Since(start) != 1100*time.Millisecond {
						t.Errorf("a call that waits: %v after %v, want %v after 1.1 s", err, time.Since(start), down)
					}
				})
			}
			all.Wait()
			source.wantAsked(t, 100, 100)
			if s := p.Stats(); s.Waits != 4 {
				t.Errorf("%+v, want 4 waits", s)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := p.Fill(ended, make([]ID, 97)); down == nil && err != nil {
				t.Errorf("Fill of what is there, with a context that is done: %v", err)
			}
		})
	}
}

// Close ends the fetch and the calls that wait for it; the bubble would report
// a goroutine that is left.
func TestPrefetcherClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPrefetcher(&scriptedSource{delay: time.Hour}, nil)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if id, err := p.Next(context.Background()); err != ErrClosed || id != 0 {
					t.Errorf("Next() = %v, %v, want ErrClosed", id, err)
				}
			})
		}
		synctest.Wait()
		closePrefetcher(t, p)
		closePrefetcher(t, p)
		all.Wait()
		if _, err := p.TryNext(); err != ErrClosed {
			t.Errorf("TryNext() = %v, want ErrClosed", err)
		}
		if err := p.Fill(context.Background(), make([]ID, 1)); err != ErrClosed {
			t.Errorf("Fill() = %v, want ErrClosed", err)
		}
	})
	// Close works even if its context has ended, and returns an error only if a
	// fetch is in progress.
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 { // a select with two ready cases chooses at random
			p := NewPrefetcher(&scriptedSource{}, &PrefetchOptions{Count: 10, OnDemand: true})
			wantNext(t, p, 1)
			if err := p.Close(ended); err != nil {
				t.Errorf("Close without a fetch in progress: %v", err)
			}
			if id, err := p.Next(t.Context()); err != ErrClosed {
				t.Errorf("Next after Close: %v, %v", id, err)
			}
		}
		until := make(chan struct{})
		p := NewPrefetcher(fetchFunc(func(context.Context, int) (Batch, error) { // ignores its context
			<-until
			return BatchFromRuns(Run{1, 1, 1})
		}), nil)
		p.TryNext()
		if err := p.Close(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Close during a fetch: %v, want that its context has ended", err)
		}
		close(until)
		closePrefetcher(t, p)
		if id, err := p.Next(t.Context()); err != ErrClosed {
			t.Errorf("Next() = %v, %v, want ErrClosed", id, err)
		}
		if err := p.Close(ended); err != nil {
			t.Errorf("Close after the fetch: %v", err)
		}
	})
}

// A caller's context that panics or blocks concerns that caller alone.
func TestPrefetcherOfABrokenContext(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 4, -1, -4} { // which call of a method panics or, if negative, blocks
		synctest.Test(t, func(t *testing.T) {
			p := started(t, &scriptedSource{delay: time.Second}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			until := make(chan struct{})
			b := &bomb{explode: func() { panic("broken") }}
			if n < 0 {
				b.explode = func() { <-until }
			}
			b.left.Store(max(n, -n))
			var all sync.WaitGroup
			all.Go(func() {
				defer func() {
					if v := recover(); v != nil && v != "broken" {
						t.Errorf("Next panics with %v, want broken", v)
					}
				}()
				if id, err := p.Next(mined{ctx, b}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Next() = %v, %v, want an ID or DeadlineExceeded", id, err)
				}
			})
			synctest.Wait()
			if _, err := nextIn(t, p, 2*time.Second); err != nil {
				t.Errorf("call %d of its methods is broken: the next call: %v", n, err)
			}
			close(until)
			all.Wait()
		})
	}
}

// A call whose context ends names the reason for its wait: what the source of
// its own fetch said, or else the error of the last fetch.
func TestPrefetcherGivesTheReason(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		source        error // if the context ends; nil means that of the context
		ownReason     bool  // whether the call that fetches gives it
		failsFirst    bool  // the fetch before failed with down
		laterHasCause bool  // whether later calls name it
	}{
		"joined":            {errors.Join(down, context.DeadlineExceeded), true, false, true},
		"without context":   {down, true, false, true},
		"bare":              {nil, false, false, false},
		"bare, after down":  {nil, true, true, true},
		"joined after down": {errors.Join(down, context.DeadlineExceeded), true, true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			fails := c.failsFirst
			p := started(t, fetchFunc(func(ctx context.Context, _ int) (Batch, error) {
				if fails {
					fails = false
					return Batch{}, down
				}
				<-ctx.Done()
				return Batch{}, cmp.Or(c.source, ctx.Err())
			}), nil)
			if c.failsFirst {
				if _, err := p.Next(t.Context()); err != down {
					t.Errorf("%s: the first fetch: %v, want %v", name, err, down)
				}
			}
			for call, reason := range []bool{c.ownReason, c.laterHasCause, c.laterHasCause} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err := p.Next(ctx)
				if call == 2 {
					err = p.Fill(ctx, make([]ID, 1))
				}
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, down) != reason {
					t.Errorf("%s: call %d: %v, want the error of the context, and %v: %v", name, call, err, down, reason)
				}
				if n := strings.Count(err.Error(), context.DeadlineExceeded.Error()); n > 1 {
					t.Errorf("%s: call %d: %q says %d times that the context ended", name, call, err, n)
				}
				want := ErrExhausted
				if c.laterHasCause {
					want = down
				}
				if _, err := p.TryNext(); !errors.Is(err, want) || errors.Is(err, ErrExhausted) != (want == ErrExhausted) {
					t.Errorf("%s: TryNext() = %v, want %v alone", name, err, want)
				}
			}
		})
	}
}

// TestPrefetcherPolled: a program that polls with TryNext while the error is
// ErrExhausted ends with an ID, or with the error of the source.
func TestPrefetcherPolled(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		source  error
		options *PrefetchOptions
		want    error
	}{
		"works":              {nil, nil, nil},
		"works, on demand":   {nil, &PrefetchOptions{OnDemand: true}, nil},
		"fails":              {down, nil, down},
		"fails, on demand":   {down, &PrefetchOptions{OnDemand: true}, down},
		"time is over":       {ErrTimeOver, nil, ErrTimeOver},
		"the window is over": {errors.Join(ErrGrantOver, context.DeadlineExceeded), nil, ErrGrantOver},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := started(t, &scriptedSource{delay: time.Second, err: c.source}, c.options)
			for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
				id, err := p.TryNext()
				if errors.Is(err, ErrExhausted) && time.Since(began) <= time.Second {
					continue
				}
				if !errors.Is(err, c.want) || (err == nil) != (id == 1) {
					t.Errorf("%s: TryNext() = %v, %v after %v, want %v", name, id, err, time.Since(began), c.want)
				}
				break
			}
		})
	}
	// The source knows best: a lack of free slots passes.
	synctest.Test(t, func(t *testing.T) {
		p := started(t, &scriptedSource{err: &WaitError{Wait: time.Second}}, nil)
		_, _ = p.Next(t.Context())
		var wait *WaitError
		if _, err := p.TryNext(); !errors.As(err, &wait) || !errors.Is(err, ErrExhausted) {
			t.Errorf("TryNext() = %v, want a WaitError", err)
		}
	})
}

// A call fetches itself, unless another call has given up its fetch and none
// has succeeded since. That a call has given up is not a failure of the source.
func TestPrefetcherWhoFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		var byCalls []bool // for each fetch, whether a call made it: only these have a deadline
		p := started(t, fetchFunc(func(ctx context.Context, n int) (Batch, error) {
			_, byCall := ctx.Deadline()
			byCalls = append(byCalls, byCall)
			fetch := len(byCalls)
			if fetch == 4 { // ignores its context
				time.Sleep(time.Second)
				return BatchFromRuns(Run{ID(10 * fetch), 1, n})
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return Batch{}, ctx.Err()
			}
			if fetch == 2 {
				return Batch{}, down
			}
			return BatchFromRuns(Run{ID(10 * fetch), 1, n})
		}), &PrefetchOptions{Count: 2, MaxCount: 2, Validity: time.Minute})
		if id, err := nextIn(t, p, 300*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || id != 0 {
			t.Errorf("the first call: %v, %v, want DeadlineExceeded", id, err)
		}
		if id, err := p.TryNext(); err != ErrExhausted || id != 0 {
			t.Errorf("TryNext() = %v, %v, want only ErrExhausted", id, err)
		}
		for _, want := range []ID{30, 40, 50} {
			// The second of these calls has no time left when its IDs arrive.
			limit := time.Hour
			if want == 40 {
				limit = 300 * time.Millisecond
			}
			if id, err := nextIn(t, p, limit); err != nil || id != want {
				t.Errorf("Next() = %v, %v, want %v", id, err, want)
			}
			time.Sleep(2 * time.Minute)
		}
		if !slices.Equal(byCalls, []bool{true, false, false, true, true}) {
			t.Errorf("made by calls: %v, want all but the second and third", byCalls)
		}
	})
}

// A fetch fails if the source returns nothing, too much, or not at all. A call
// that fetches ends with its goroutine.
func TestPrefetcherOfABadSource(t *testing.T) {
	for name, source := range map[string]Source{
		"empty": once[ID]{}, "too much": once[ID]{must.Get(BatchFromRuns(Run{1, 1, 101}))(t)},
		"goexit": fetchFunc(func(context.Context, int) (Batch, error) { runtime.Goexit(); return Batch{}, nil }),
	} {
		p := NewPrefetcher(source, nil)
		if name == "goexit" {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				id, err := p.Next(t.Context())
				t.Errorf("%s: Next() = %v, %v, want that it does not return", name, id, err)
			}()
			<-ended
		}
		if id, err := p.Next(t.Context()); err == nil || id != 0 {
			t.Errorf("%s: Next() = %v, %v, want an error", name, id, err)
		}
		closePrefetcher(t, p)
	}
	for _, o := range []PrefetchOptions{{Count: -1}, {Count: 2, MaxCount: 1}, {MaxCount: -1}} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, "Count") {
					t.Errorf("%+v: panics with %q", o, said)
				}
			}()
			NewPrefetcher(once[ID]{}, &o)
		}()
	}
}

// If a source panics because the call's context ends, the call panics too.
func TestPrefetcherOfASourceThatPanicsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := started(t, fetchFunc(func(ctx context.Context, _ int) (Batch, error) {
			<-ctx.Done()
			panic("boom")
		}), nil)
		defer func() {
			if text, _ := recover().(string); !strings.Contains(text, "panicked: boom") {
				t.Errorf("Next panics with %q, want that the source panicked", text)
			}
		}()
		_, err := nextIn(t, p, time.Second)
		t.Errorf("Next() = %v, want that it panics", err)
	})
}

// If a source panics in the background, the calls that wait for it panic, and
// can recover. The prefetcher keeps working.
func TestPrefetcherOfAPanickingSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scriptedSource{delay: time.Millisecond}
		var panics atomic.Bool
		p := NewPrefetcher(fetchFunc(func(ctx context.Context, n int) (Batch, error) {
			if panics.Load() {
				panic("boom")
			}
			return source.NextBatch(ctx, n)
		}), &PrefetchOptions{Count: 10, MaxCount: 10})
		panics.Store(true)
		var said atomic.Int64
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				defer func() {
					if text, _ := recover().(string); strings.Contains(text, "panicked: boom") && strings.Contains(text, "fetchFunc") {
						said.Add(1)
					}
				}()
				id, err := p.Next(t.Context())
				t.Errorf("Next() = %v, %v, want that it panics", id, err)
			})
		}
		all.Wait()
		if said.Load() != 3 {
			t.Errorf("%d of 3 calls panicked with what the source said, and where", said.Load())
		}
		if _, err := p.TryNext(); errors.Is(err, ErrExhausted) || !strings.Contains(err.Error(), "boom") {
			t.Errorf("TryNext after it: %v, want what the source said, and not ErrExhausted", err)
		}
		synctest.Wait() // TryNext has begun a fetch
		time.Sleep(time.Second)

		panics.Store(false)
		for want := ID(1); want <= 6; want++ {
			wantNext(t, p, want)
		}
		panics.Store(true) // the next batch, for which no call waits yet
		time.Sleep(time.Second)
		for want := ID(7); want <= 8; want++ {
			wantNext(t, p, want)
		}
		time.Sleep(time.Second)
		panics.Store(false)
		for want := ID(9); want <= 30; want++ {
			if id, err := p.Next(t.Context()); err != nil || id < want {
				t.Errorf("Next() = %v, %v, want %v or more", id, err, want)
			}
		}
		closePrefetcher(t, p)
	})
}

// Many callers of all kinds, with a source that fails and is slow, and batches
// that expire all the time: no ID comes twice, and those of a caller ascend.
func TestPrefetcherUnique(t *testing.T) {
	var all sync.WaitGroup
	var failures atomic.Int64
	source := new(scriptedSource)
	p := NewPrefetcher(fetchFunc(func(ctx context.Context, n int) (Batch, error) {
		b, err := source.NextBatch(ctx, 1+rand.IntN(n))
		if rand.IntN(5) == 0 {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		}
		if rand.IntN(10) == 0 {
			failures.Add(1)
			return Batch{}, errors.New("lost")
		}
		return b, err
	}), &PrefetchOptions{Count: 3, MaxCount: 500, Validity: 100 * time.Microsecond})
	const callers, each = 8, 20_000
	ids := make([][]ID, callers)
	for i := range callers {
		all.Go(func() {
			for len(ids[i]) < each {
				switch n := rand.IntN(20); n {
				case 0:
					if id, err := p.TryNext(); err == nil {
						ids[i] = append(ids[i], id)
					}
				case 1:
					dst := make([]ID, 1+rand.IntN(700))
					if p.Fill(t.Context(), dst) == nil {
						ids[i] = append(ids[i], dst...)
					}
				default:
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if n == 2 {
						ctx, cancel = context.WithTimeout(ctx, 50*time.Microsecond)
					}
					if id, err := p.Next(ctx); err == nil {
						ids[i] = append(ids[i], id)
					}
					cancel()
				}
			}
			if !slices.IsSorted(ids[i]) {
				t.Error("a caller's IDs are not in order")
			}
		})
	}
	all.Wait()
	closePrefetcher(t, p)
	got := slices.Concat(ids...)
	wantDistinct(t, "handed out", got)
	t.Logf("%d IDs, %+v, %d failures", len(got), p.Stats(), failures.Load())
}

// IDs come in the order of the batch, whatever its runs are: long ones are kept
// as runs, and short ones expanded.
func TestPrefetcherRuns(t *testing.T) {
	var short, many []Run
	for i := range ID(300) {
		short = append(short, Run{1000 + 10*i, 3, 2})
		many = append(many, Run{1e6 * (i + 1), 7, 64})
	}
	for name, runs := range map[string][]Run{
		"one": {{5, 1, 1}}, "two": {{5, 2, 40}, {900, 1, 3}}, "short": short, "many": many,
		"mixed": append([]Run{{1, 1, 500}}, many...), "descending": {{1 << 63, 1 << 40, 100}, {7, 5, 100}},
		"top": {{1<<64 - 64, 1, 64}},
	} {
		checkPrefetched(t, name, must.Get(BatchFromRuns(runs...))(t))
	}
	wide := ID128FromUint64s(1, 1<<64-10)
	checkPrefetched(t, "carry", must.Get(BatchFromRuns(RunOf[ID128]{wide, 1 << 60, 16}))(t))
	checkPrefetched(t, "too wide for a stretch", must.Get(BatchFromRuns(
		RunOf[ID128]{wide, 1 << 60, 100}, RunOf[ID128]{ID128{15: 1}, 1, 100}))(t))
}

func checkPrefetched[I AnyID](t *testing.T, name string, batch BatchOf[I]) {
	t.Helper()
	want := slices.Collect(batch.All())
	b := must.Get(newBlock(batch, len(want)))(t)
	got := make([]I, len(want))
	for _, i := range rand.Perm(len(want)) {
		got[i] = b.at(uint64(i))
	}
	copied := make([]I, len(want)+1)
	if n := b.copyTo(copied, 0); n != len(want) || !slices.Equal(copied[:n], want) || !slices.Equal(got, want) {
		t.Errorf("%s: %v and %v, want %v", name, got, copied, want)
	}
	p := NewPrefetcher(once[I]{batch}, &PrefetchOptions{Count: len(want)})
	defer p.Close(context.Background())
	for i := range want {
		if id, err := p.Next(t.Context()); id != want[i] || err != nil {
			t.Fatalf("%s: ID %d is %v, %v, want %v", name, i, id, err, want[i])
		}
	}
}

// A once is a Source of one batch, again and again.
type once[I AnyID] struct{ batch BatchOf[I] }

func (o once[I]) NextBatch(context.Context, int) (BatchOf[I], error) { return o.batch, nil }

// A fetchFunc is a Source.
type fetchFunc func(context.Context, int) (Batch, error)

func (f fetchFunc) NextBatch(ctx context.Context, n int) (Batch, error) { return f(ctx, n) }

// TestBlockBeginsWithACacheLine: on 64-bit processors, a block is a cache line,
// and the allocator has 256 bytes for it and its content, not the 240 below.
func TestBlockBeginsWithACacheLine(t *testing.T) {
	if math.MaxUint == math.MaxUint32 {
		t.Skip("the sizes are those of 64-bit processors")
	}
	if head := unsafe.Sizeof(block[ID]{}); head != 64 || unsafe.Sizeof(block[ID128]{}) != head {
		t.Errorf("a block has %d bytes, want 64", head)
	}
	for _, size := range []uintptr{unsafe.Sizeof(wholeBlock[ID]{}), unsafe.Sizeof(wholeBlock[ID128]{})} {
		if size <= 240 || size > 256 {
			t.Errorf("a block with its content has %d bytes, want 241 to 256", size)
		}
	}
}

// TestPrefetcherLingers: fetches ahead that follow one another share a
// goroutine, which ends with Close, and after a while without a fetch.
func TestPrefetcherLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goroutines := make(map[string]bool) // with this one, which makes the first fetch
		s := fetchFunc(func(_ context.Context, n int) (Batch, error) {
			stack := make([]byte, 64)
			name, _, _ := strings.Cut(string(stack[:runtime.Stack(stack, false)]), "[")
			goroutines[name] = true
			return BatchFromRuns(Run{First: 1, Step: 1, Count: n})
		})
		p := NewPrefetcher(s, &PrefetchOptions{Count: 10, MaxCount: 10})
		for want := 1; want <= 3; want++ {
			for range 1000 {
				must.Get(p.Next(t.Context()))(t)
				time.Sleep(lingerTime / 50)
			}
			synctest.Wait()
			if len(goroutines) != 1+want {
				t.Errorf("%d goroutines have fetched, want %d", len(goroutines), 1+want)
			}
			time.Sleep(2 * lingerTime)
		}
		must.Get(p.Next(t.Context()))(t)
		begin := time.Now()
		if err := p.Close(t.Context()); err != nil || time.Since(begin) != 0 {
			t.Errorf("Close: %v after %v", err, time.Since(begin))
		}
	})
}
