package service

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAlike: a sequencer that is created by its first use is compared with
// older ones, once, in the background. Many names need only a few lists of the
// store.
func TestAlike(t *testing.T) {
	var mu sync.Mutex
	var got []string
	take := func() []string {
		mu.Lock()
		defer mu.Unlock()
		now := got
		got = nil
		slices.Sort(now)
		return now
	}
	alike := func(name, other string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, name+" is like "+other)
	}
	store := new(listed)
	inCluster(t, ClusterConfig{Alike: alike}, store, func(t *testing.T, c *Cluster) {
		wait := func() {
			time.Sleep(namesEvery + 2*namesWait)
			synctest.Wait()
		}
		takeOne(t, c, "orders")
		time.Sleep(2 * namesWait)
		takeOne(t, c, "invoices")
		wait()
		if now := take(); len(now) != 0 {
			t.Errorf("got %q, want none", now)
		}
		before := store.lists.Load()
		for _, name := range []string{"ordres", "invioces", "orders2", "payments"} {
			takeOne(t, c, name)
		}
		if now := take(); len(now) != 0 {
			t.Errorf("got %q before the store was listed", now)
		}
		wait()
		if now, want := take(), []string{"invioces is like invoices", "ordres is like orders"}; !slices.Equal(now, want) {
			t.Errorf("got %q, want %q", now, want)
		}
		if n := store.lists.Load() - before; n > 1 {
			t.Errorf("4 names cost %d lists of the store, want 1", n)
		}

		// Once per name, and never for existing names.
		before = store.lists.Load()
		for range 50 {
			takeOne(t, c, "ordres")
		}
		wait()
		if now, n := take(), store.lists.Load()-before; len(now) != 0 || n != 0 {
			t.Errorf("got %q and %d lists of the store, want none", now, n)
		}

		// A series of names has no typos, and costs a bounded number of lists.
		before = store.lists.Load()
		for i := range 26 {
			takeOne(t, c, fmt.Sprintf("tenant-%c", 'a'+i))
			time.Sleep(time.Second)
		}
		wait()
		if now, n := take(), store.lists.Load()-before; len(now) >= scheme || n > 5 {
			t.Errorf("26 tenants: %q, and %d lists of the store in 38 s", now, n)
		}
		takeOne(t, c, "odrers") // Close ends its comparison
	})
}
