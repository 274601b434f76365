package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
)

func numbered(format string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(format, i)
	}
	return keys
}

// testListLong has more keys than a page of common databases: 1,000. Most begin
// with the previous one, so that a page ends between such keys.
func testListLong(t *testing.T, su suite) {
	s := su.new(t)
	var want []string
	for _, key := range numbered("long/%03d", 401) {
		want = append(want, key, key+".x", key+".x.y")
	}
	s.fill(append(want, "lonf", "longer", "long0"))
	got, _ := s.list("long/")
	sameKeys(t, `List("long/")`, got, want)
	got, _ = s.list("long/400")
	sameKeys(t, `List("long/400")`, got, want[1200:])
}

func testListStops(t *testing.T, su suite) {
	s := su.new(t)
	keys := numbered("k/%d", 10)
	s.fill(keys)
	for n := 1; n <= len(keys); n++ {
		var got []string
		err := s.List(s.ctx, "k/", func(key string, _ []byte) bool {
			got = append(got, key)
			return len(got) < n
		})
		if err != nil {
			t.Errorf("List = %v where yield returned false, want nil", err)
		}
		sameKeys(t, fmt.Sprintf("List where yield returns false at key %d", n), got, keys[:n])
	}
}

func testListYield(t *testing.T, su suite) {
	s := su.new(t)
	s.fill(numbered("k/%d", 10))
	n := 0
	must.Do(t, s.List(s.ctx, "k/", func(key string, _ []byte) bool {
		if n++; n <= 10 { // otherwise it is a new key, which List may yield
			s.cas(key, "0", "0+1")
		}
		s.cas("k/"+string(rune('a'+n)), "", "0") // a new key
		return n < 20
	}))
	if n < 10 {
		t.Errorf("List yields %d keys, want 10", n)
	}
	for i := range 10 {
		s.want(fmt.Sprintf("k/%d", i), "0+1")
	}
}

// testListChanges calls List while other goroutines raise the numbers of all
// keys and create new ones.
func testListChanges(t *testing.T, su suite) {
	s := su.new(t)
	keys := numbered("k/%02d", 30)
	s.fill(keys)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()

	var mu sync.Mutex
	done := make(map[string]int) // results of CAS calls that returned
	var returned atomic.Int64    // number of CAS calls that returned
	for _, key := range keys {
		done[key] = 0
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil && !t.Failed(); i++ {
				key := keys[4*(i%7)+w] // each key has one writer
				mu.Lock()
				n := done[key]
				mu.Unlock()
				if i%8 == 7 && i < 8*50 { // a new key
					key, n = fmt.Sprintf("k/%02d-%d-%d", (7*i)%30, w, i), -1
					calls.CAS(t, s, key, "", "0")
				} else {
					calls.CAS(t, s, key, strconv.Itoa(n), strconv.Itoa(n+1))
					returned.Add(1)
				}
				mu.Lock()
				done[key] = n + 1
				mu.Unlock()
			}
		})
	}
	for lists, begin := 0, time.Now(); (lists < 3 || time.Since(begin) < busy) && !t.Failed(); lists++ {
		mu.Lock()
		before := maps.Clone(done)
		mu.Unlock()
		last := ""
		err := s.List(s.ctx, "k/", func(key string, value []byte) bool {
			if last == "" && lists < 3 {
				// Wait until every key has changed during a List, and before
				// the next one: otherwise an implementation that is wrong about
				// changes may pass.
				most := time.Now().Add(soon)
				for until := returned.Load() + 2*int64(len(keys)); returned.Load() < until && time.Now().Before(most); {
					time.Sleep(50 * time.Microsecond)
				}
			}
			if key <= last {
				t.Errorf("List yields %q after %q, want ascending order", key, last)
			}
			last = key
			n, err := strconv.Atoi(string(value))
			if err != nil || n < before[key] {
				t.Errorf("List yields %q with %q, want a number from %d on: that CAS had returned before", key, value, before[key])
			}
			delete(before, key)
			return !t.Failed()
		})
		if err != nil {
			t.Errorf("List = %v", err)
		} else if len(before) > 0 && !t.Failed() {
			t.Errorf("List does not yield %q, want them: they were there before", slices.Sorted(maps.Keys(before)))
		}
	}
	cancel()
	wg.Wait()
}

func testContextInList(t *testing.T, su suite) {
	s := su.new(t)
	keys := numbered("k/%03d", 100)
	s.fill(keys)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	n := 0
	err := s.List(ctx, "k/", func(string, []byte) bool {
		if n++; n == 3 {
			cancel()
		}
		return true
	})
	switch {
	case err == nil && n < len(keys):
		t.Errorf("List whose context is done yields %d keys of %d and returns nil, which means that there are no more", n,
			len(keys))
	case err != nil && !errors.Is(err, context.Canceled):
		t.Errorf("List whose context is done = %v, want an error that is context.Canceled", err)
	}
}
