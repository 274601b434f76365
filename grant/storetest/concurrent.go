package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
)

// increment raises the number of a key by one, with as many attempts as
// necessary. It returns false if the context is done or the test has failed.
func increment(t *testing.T, ctx context.Context, s grant.Store, key string) bool {
	for !t.Failed() {
		now, err := s.Get(ctx, key)
		if err != nil {
			t.Errorf("Get(%q) = %v", key, err)
			return false
		}
		n := 0
		if now != nil {
			if n, err = strconv.Atoi(string(now)); err != nil {
				t.Errorf("Get(%q) = %q, want a number: nothing else was stored", key, now)
				return false
			}
		}
		ok, err := s.CAS(ctx, key, now, []byte(strconv.Itoa(n+1)))
		if err != nil {
			t.Errorf("CAS(%q, %d, %d) = %v", key, n, n+1, err)
			return false
		}
		if ok {
			return true
		}
	}
	return false
}

// incrementAll increments a counter from many goroutines, which share the
// stores over the same data.
func incrementAll(t *testing.T, workers int, stores ...*subject) {
	t.Helper()
	const times = 20
	var wg sync.WaitGroup
	for w := range workers {
		s := stores[w%len(stores)]
		wg.Go(func() {
			for range times {
				if !increment(t, s.ctx, s, "counter") {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		if !t.Failed() {
			s.want("counter", strconv.Itoa(workers*times))
		}
	}
}

func testIncrements(t *testing.T, su suite) { incrementAll(t, 16, su.new(t)) }

func testCreators(t *testing.T, su suite) {
	s := su.new(t)
	for round := range 20 {
		key := fmt.Sprintf("created/%d", round)
		var winners atomic.Int64
		var winner atomic.Value
		var wg sync.WaitGroup
		start := make(chan struct{})
		for w := range 8 {
			wg.Go(func() {
				mine := fmt.Sprintf("by %d", w)
				<-start
				ok, err := s.CAS(s.ctx, key, nil, []byte(mine))
				if err != nil {
					t.Errorf("CAS(%q, nil) = %v", key, err)
				}
				if ok {
					winners.Add(1)
					winner.Store(mine)
				}
			})
		}
		close(start)
		wg.Wait()
		if n := winners.Load(); n != 1 {
			t.Fatalf("%d of 8 have created the key %q, want 1", n, key)
		}
		s.want(key, winner.Load().(string))
	}
}

func testContextBefore(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "1", true)
	canceled, cancel := context.WithCancel(s.ctx)
	cancel()
	late, cancel := context.WithDeadline(s.ctx, time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{canceled, late} {
		begin := time.Now()
		_, err := s.Get(ctx, "a")
		notSent(t, "Get with a context that is done", err, ctx.Err())
		for key, old := range map[string][]byte{"a": []byte("1"), "b": nil} {
			ok, err := s.CAS(ctx, key, old, []byte("2"))
			if ok {
				t.Errorf("CAS with a context that is done = true, want an error")
			}
			notSent(t, "CAS with a context that is done", err, ctx.Err())
		}
		// A CAS that would be refused does not get an answer either.
		_, err = s.CAS(ctx, "a", []byte("x"), []byte("2"))
		notSent(t, "CAS with a context that is done", err, ctx.Err())
		notSent(t, "List with a context that is done", s.List(ctx, "", func(string, []byte) bool { return true }), ctx.Err())
		if took := time.Since(begin); took > su.soon {
			t.Errorf("calls with a context that is done took %v", took)
		}
	}
	s.want("a", "1")
	s.want("b", "")
}

// testContextMeanwhile lets contexts end during calls. Each key has a single
// writer, which therefore knows its value.
func testContextMeanwhile(t *testing.T, su suite) {
	s := su.new(t)
	var applied, notApplied, unknown atomic.Int64
	var wg sync.WaitGroup
	for w := range 4 {
		rng := rand.New(rand.NewPCG(uint64(w), 7))
		wg.Go(func() {
			for i, end := 0, time.Now().Add(su.busy); i < 20 || time.Now().Before(end); i++ {
				// A context that lasts between nothing and a few CAS calls of
				// the store.
				ctx, cancel := context.WithTimeout(s.ctx, time.Duration(rng.Int64N(int64(2*time.Millisecond))))
				key := fmt.Sprintf("w%d-%d", w, unknown.Load())
				next := fmt.Appendf(nil, "%d", i)
				now, err := s.Get(s.ctx, key)
				if err != nil {
					t.Errorf("Get(%q) = %v", key, err)
				}
				begin := time.Now()
				ok, err := s.CAS(ctx, key, now, next)
				if took := time.Since(begin); took > su.soon {
					t.Errorf("CAS took %v, though its context was done", took)
				}
				cancel()
				after, gerr := s.Get(s.ctx, key)
				if gerr != nil {
					t.Errorf("Get(%q) = %v", key, gerr)
				}
				switch {
				case ok && err == nil:
					applied.Add(1)
					if string(after) != string(next) {
						t.Errorf("Get(%q) = %s after CAS to %q = true", key, quote(after), next)
					}
				case ok || err == nil:
					t.Errorf("CAS(%q, %s, %q) = %v, %v, want it applied or an error: there is no other writer", key, quote(now), next, ok, err)
				case errors.Is(err, grant.ErrNotSent):
					notApplied.Add(1)
					if string(after) != string(now) {
						t.Errorf("Get(%q) = %s after CAS to %q = %v, want %s: it was not sent", key, quote(after), next, err, quote(now))
					}
				default: // it may be applied later: this key is not used again
					unknown.Add(1)
					if string(after) != string(now) && string(after) != string(next) {
						t.Errorf("Get(%q) = %s after CAS from %s to %q = %v", key, quote(after), quote(now), next, err)
					}
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("CAS whose context ended at some moment: %d applied, %d not sent, %d unknown", applied.Load(), notApplied.Load(), unknown.Load())
}

func testClose(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "0", true)
	s.cas("a", "0", "1", true)
	if err := s.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	s.wantClosed(su.soon)
	if err := s.Close(); err != nil {
		t.Errorf("the second Close = %v, want nil", err)
	}
	s.wantClosed(su.soon)
	if su.reopen != nil {
		again := su.again(t, s)
		again.want("a", "1")
		again.want("b", "")
	}
}

// wantClosed fails the test unless every call is refused, and soon.
func (s *subject) wantClosed(soon time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, soon)
	defer cancel()
	_, err := s.Get(ctx, "a")
	notSent(s.t, "Get after Close", err, nil)
	if ctx.Err() != nil {
		s.t.Errorf("Get after Close takes longer than %v", soon)
	}
	for key, old := range map[string][]byte{"a": []byte("1"), "b": nil} {
		ok, err := s.CAS(ctx, key, old, []byte("2"))
		if ok {
			s.t.Errorf("CAS after Close = true, want an error")
		}
		notSent(s.t, "CAS after Close", err, nil)
	}
	err = s.List(ctx, "", func(string, []byte) bool {
		s.t.Errorf("List after Close yields")
		return false
	})
	notSent(s.t, "List after Close", err, nil)
	if m, ok := grant.As[grant.MultiGetter](s.Store); ok {
		_, err := m.GetMany(ctx, []string{"a", "b"})
		notSent(s.t, "GetMany after Close", err, nil)
	}
}

// testCloseMeanwhile closes the store during calls. All must return, and their
// results must agree with what is found when the store is opened again.
func testCloseMeanwhile(t *testing.T, su suite) {
	s := su.new(t)
	var acknowledged, unknown atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for {
				now, err := s.Get(s.ctx, "counter")
				if err != nil {
					return
				}
				n, _ := strconv.Atoi(string(now))
				ok, err := s.CAS(s.ctx, "counter", now, []byte(strconv.Itoa(n+1)))
				switch {
				case ok:
					acknowledged.Add(1)
				case err != nil && !errors.Is(err, grant.ErrNotSent):
					unknown.Add(1)
				}
				if err != nil {
					return
				}
				if w == 0 {
					_ = s.List(s.ctx, "", func(string, []byte) bool { return true })
				}
			}
		})
	}
	for begin := time.Now(); time.Since(begin) < su.busy/10 || acknowledged.Load() < 2 && time.Since(begin) < su.soon; {
		time.Sleep(50 * time.Microsecond)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close under calls = %v", err)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(su.soon):
		t.Fatalf("calls are under way %v after Close", su.soon)
	}
	s.wantClosed(su.soon)
	if su.reopen == nil {
		return
	}
	again := su.again(t, s)
	now, err := again.Get(again.ctx, "counter")
	if err != nil {
		t.Fatalf("Get = %v", err)
	}
	n, _ := strconv.ParseInt(string(now), 10, 64)
	if low, high := acknowledged.Load(), acknowledged.Load()+unknown.Load(); n < low || n > high {
		t.Errorf("the counter is %d after %d acknowledged increments and %d unknown ones", n, low, high-low)
	}
}

func testReopen(t *testing.T, su suite) {
	if su.reopen == nil {
		t.Skip("the store's data cannot be opened again: no Options.Reopen")
	}
	s := su.new(t)
	keys := oddKeys()
	for i, key := range keys {
		s.cas(key, "", "first", true)
		if i%2 == 0 {
			s.cas(key, "first", "of "+key, true)
		}
		s.cas(key, "other", "refused", false)
	}
	want, wantValues := s.list("")
	s.cas("last", "", bytesOf(4096), true)
	if err := s.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	for range 2 {
		s = su.again(t, s)
		s.want("last", bytesOf(4096))
		for i, key := range keys {
			value := "first"
			if i%2 == 0 {
				value = "of " + key
			}
			s.want(key, value)
		}
		got, gotValues := s.list("")
		if len(got) != len(want)+1 {
			t.Errorf("List yields %d keys after Close and opening again, want %d", len(got), len(want)+1)
		}
		for key, value := range wantValues {
			if gotValues[key] != value {
				t.Errorf("List yields %q with %q after Close and opening again, want %q", key, gotValues[key], value)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
	}
	s = su.again(t, s)
	s.cas("last", "", "new", false)
	s.cas("last", bytesOf(4096), "new", true)
	s.want("last", "new")
}

// testTwoAtOnce uses two stores over the same data.
func testTwoAtOnce(t *testing.T, su suite) {
	if su.reopen == nil {
		t.Skip("the store's data cannot be opened again: no Options.Reopen")
	}
	one := su.new(t)
	two := su.again(t, one)
	both := []*subject{one, two}
	one.want("a", "")
	two.want("a", "")
	old := ""
	for i := range 20 { // each sees at once what the other did
		s, other := both[i%2], both[(i+1)%2]
		next := fmt.Sprint(i)
		s.cas("a", old, next, true)
		other.want("a", next)
		other.cas("a", old, "x", false)
		if _, values := other.list(""); values["a"] != next {
			t.Fatalf("List yields \"a\" with %q, want %q: the other store's CAS has returned", values["a"], next)
		}
		old = next
	}
	incrementAll(t, 8, both...)
	if t.Failed() {
		return
	}
	if err := one.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	two.cas("a", "19", "20", true)
	two.want("a", "20")
}
