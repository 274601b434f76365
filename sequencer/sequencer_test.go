package sequencer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// layout begins before the year 2000, in which synctest's bubbles begin.
var layout = firn.MustParseLayout("default,epoch=0")

// bubble runs f with fake time; its goroutines must end.
func bubble(t *testing.T, f func(t *testing.T, s grant.Store)) {
	synctest.Test(t, func(t *testing.T) { f(t, new(memstore.Store)) })
}

func open(t *testing.T, s grant.Store, c *sequencer.Config) *sequencer.Sequencer {
	t.Helper()
	if c == nil {
		c = &sequencer.Config{Layout: layout}
	}
	q, err := sequencer.Open(t.Context(), s, "orders", c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func closeIt(t *testing.T, q interface{ Close(context.Context) error }) {
	t.Helper()
	if err := q.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// create creates a sequencer, or creates it again.
func create(t *testing.T, s grant.Store, l firn.Layout, window time.Duration) {
	t.Helper()
	if _, err := grant.Create(t.Context(), s, "orders", grant.NewConfig(l, window), time.Now()); err != nil {
		t.Error(err)
	}
}

// ids checks that no ID comes twice, and that the IDs of each source increase.
type ids struct {
	mu   sync.Mutex
	seen map[firn.ID]bool
}

func (s *ids) add(t *testing.T, ids ...firn.ID) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = make(map[firn.ID]bool)
	}
	for i, id := range ids {
		if s.seen[id] {
			t.Errorf("ID %v was made twice", id)
		}
		if i > 0 && ids[i-1] >= id {
			t.Errorf("ID %v after %v", id, ids[i-1])
		}
		s.seen[id] = true
	}
}

func next(t *testing.T, q *sequencer.Sequencer, n int) []firn.ID {
	t.Helper()
	dst := make([]firn.ID, n)
	if err := q.Fill(t.Context(), dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

func TestOpenCompares(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		ctx := t.Context()
		if _, err := sequencer.Open(ctx, s, "orders", nil); !errors.Is(err, grant.ErrNotFound) {
			t.Errorf("Open of none = %v, want ErrNotFound", err)
		}
		if _, err := sequencer.Open(ctx, s, "orders", &sequencer.Config{Layout: layout, MustExist: true}); !errors.Is(err, grant.ErrNotFound) {
			t.Errorf("Open of one that must exist = %v, want ErrNotFound", err)
		}
		zero := time.Duration(0)
		for what, c := range map[string]sequencer.Config{
			"short window":   {Layout: layout, Window: time.Second},
			"range":          {Layout: layout, Nodes: &grant.Range{Lo: 1020, Hi: 1024}},
			"reversed range": {Layout: layout, Nodes: &grant.Range{Lo: 2, Hi: 1}},
			"128 bits":       {Layout: firn.MustParseLayout("boundary")},
			"negative lag":   {Layout: layout, MaxLag: -1},
		} {
			if _, err := sequencer.Open(ctx, s, "orders", &c); err == nil {
				t.Errorf("%s: Open is fine, want an error", what)
			} else {
				t.Logf("%s: %v", what, err)
			}
		}
		for _, name := range []string{"", "a/b", "ä"} {
			if _, err := sequencer.Open(ctx, s, name, &sequencer.Config{Layout: layout}); err == nil {
				t.Errorf("Open(%q) is fine, want an error", name)
			}
		}
		if err := s.List(ctx, "", func(key string, _ []byte) bool {
			t.Errorf("%s was written by calls that failed", key)
			return true
		}); err != nil {
			t.Error(err)
		}

		a := open(t, s, &sequencer.Config{Layout: layout, MaxAhead: &zero, Window: 45 * time.Second})
		defer closeIt(t, a)
		// Existing settings are used by default.
		b := open(t, s, nil)
		defer closeIt(t, b)
		if b.Config() != a.Config() || b.Config().MaxAhead != 0 || b.Config().Window != 45*time.Second {
			t.Errorf("opened with %+v, created with %+v", b.Config(), a.Config())
		}
	})
}

// TestLife: attach, detach and attach again, for this process and for all.
func TestLife(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		ctx := t.Context()
		var all ids
		q := open(t, s, &sequencer.Config{Layout: layout, Detached: true})
		if got := q.State().Phase; got != grant.Idle {
			t.Errorf("opened detached, and is %v", got)
		}
		if _, err := q.Next(ctx); !errors.Is(err, grant.ErrDetached) {
			t.Errorf("Next while detached = %v", err)
		}
		var made []firn.ID
		for range 3 {
			if err := errors.Join(q.Attach(ctx), q.Attach(ctx)); err != nil {
				t.Fatal(err)
			}
			if got := q.State(); got.Phase != grant.Holding || got.Err != nil {
				t.Errorf("attached, and is %+v", got)
			}
			made = append(made, next(t, q, 5000)...)
			if err := errors.Join(q.Detach(ctx), q.Detach(ctx)); err != nil {
				t.Fatal(err)
			}
			if _, err := q.TryNext(); !errors.Is(err, grant.ErrDetached) {
				t.Errorf("TryNext while detached = %v", err)
			}
		}
		if err := q.Attach(ctx); err != nil {
			t.Fatal(err)
		}
		made = append(made, next(t, q, 1)...)

		// Detached everywhere: the store reports it, and no IDs are made any
		// more.
		if _, err := grant.DetachAll(ctx, s, "orders", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Next(ctx); !errors.Is(err, grant.ErrDetached) {
			t.Errorf("Next while all are detached = %v", err)
		}
		if _, err := sequencer.Open(ctx, s, "orders", nil); !errors.Is(err, grant.ErrDetached) {
			t.Errorf("Open while all are detached = %v", err)
		}
		if _, err := grant.AttachAll(ctx, s, "orders"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		made = append(made, next(t, q, 10)...)

		// Destroyed right after a burst, and created again.
		made = append(made, next(t, q, 4096*999)...)
		if _, err := grant.Destroy(ctx, s, "orders", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Next(ctx); !errors.Is(err, grant.ErrDestroyed) {
			t.Errorf("Next of a destroyed one = %v", err)
		}
		if got := q.State().Phase; got != grant.Idle {
			t.Errorf("destroyed, and is %v", got)
		}
		if _, err := sequencer.Open(ctx, s, "orders", &sequencer.Config{Layout: layout}); !errors.Is(err, grant.ErrDestroyed) {
			t.Errorf("Open of a destroyed one = %v: it must be created again on purpose", err)
		}
		create(t, s, layout, 0)
		other := open(t, s, &sequencer.Config{Layout: layout, Nodes: &grant.Range{Lo: 0, Hi: 0}})
		synctest.Wait()
		made = append(made, next(t, q, 5000)...)
		all.add(t, made...)
		all.add(t, next(t, other, 5000)...)
		if got := q.Stats(); got.IDs < uint64(len(made)) || got.Keeper.Acquired < 5 || got.Keeper.Released < 4 {
			t.Errorf("after %d IDs the statistics are %+v", len(made), got)
		}
		closeIt(t, other)
		closeIt(t, q)
		closeIt(t, q)
		if _, err := q.Next(ctx); !errors.Is(err, sequencer.ErrClosed) {
			t.Errorf("Next after Close = %v", err)
		}
		if err := q.Attach(ctx); !errors.Is(err, sequencer.ErrClosed) {
			t.Errorf("Attach after Close = %v", err)
		}
		if got := q.State().Phase; got != grant.Idle {
			t.Errorf("closed, and is %v", got)
		}
	})
}

// TestRecreateAtOnce: after a burst, a destroy and a re-creation, the next
// owner of the node ID begins above everything made before.
func TestRecreateAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		var all ids
		times := 5
		if testing.Short() {
			times = 2
		}
		for range times {
			create(t, s, layout, 0)
			q := open(t, s, &sequencer.Config{Layout: layout, Nodes: &grant.Range{Lo: 3, Hi: 3}, WaitForNode: true})
			all.add(t, next(t, q, 4096*500)...) // half a second ahead
			if _, err := grant.Destroy(t.Context(), s, "orders", nil); err != nil {
				t.Fatal(err)
			}
			closeIt(t, q)
		}
	})
}

func TestExhausted(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		two := &grant.Range{Lo: 10, Hi: 11}
		a := open(t, s, &sequencer.Config{Layout: layout, Nodes: two})
		b := open(t, s, &sequencer.Config{Layout: layout, Nodes: two})
		_, err := sequencer.Open(t.Context(), s, "orders", &sequencer.Config{Nodes: two})
		var e *grant.ExhaustedError
		if !errors.As(err, &e) || e.Lo != 10 || e.Hi != 11 || e.Free.IsZero() {
			t.Errorf("Open of a third = %v", err)
		}
		// Another range is not affected.
		other := open(t, s, &sequencer.Config{Nodes: &grant.Range{Lo: 12, Hi: 12}})
		if got := other.State().Node; got != 12 {
			t.Errorf("pinned to 12, and has %d", got)
		}
		brief, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := sequencer.Open(brief, s, "orders", &sequencer.Config{Nodes: two, WaitForNode: true}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, grant.ErrNodesExhausted) {
			t.Errorf("Open of a third that waits = %v", err)
		}
		time.AfterFunc(5*time.Second, func() { closeIt(t, a) })
		began := time.Now()
		keepBusy, stop := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		busy.Go(func() {
			for keepBusy.Err() == nil {
				_, _ = b.TryNext()
				time.Sleep(100 * time.Millisecond)
			}
		})
		c := open(t, s, &sequencer.Config{Nodes: two, WaitForNode: true})
		if took := time.Since(began); took < 5*time.Second || took > 9*time.Second {
			t.Errorf("the third had its number after %v, want soon after 5 s", took)
		}
		stop()
		busy.Wait()
		closeIt(t, b)
		closeIt(t, c)
		closeIt(t, other)
	})
}

// A brokenStore is a Store that can be cut off.
type brokenStore struct {
	grant.Store
	mu  sync.Mutex
	off bool
}

func (s *brokenStore) set(off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = off
}

var errCut = errors.New("the cable is out")

func (s *brokenStore) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off {
		return errCut
	}
	return nil
}

func (s *brokenStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

func (s *brokenStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := s.err(); err != nil {
		return false, err
	}
	return s.Store.CAS(ctx, key, old, next)
}

// TestOutage: an outage shorter than the rest of the window is not noticed; a
// longer one causes an error that reports it, until the store is back.
func TestOutage(t *testing.T) {
	bubble(t, func(t *testing.T, mem grant.Store) {
		s := &brokenStore{Store: mem}
		q := open(t, s, &sequencer.Config{Layout: layout, Window: time.Minute})
		var made []firn.ID
		use := func(d time.Duration) (failed int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				id, err := q.Next(ctx)
				cancel()
				switch {
				case err == nil:
					made = append(made, id)
				case !errors.Is(err, sequencer.ErrUnavailable) || !errors.Is(err, errCut) || !errors.Is(err, context.DeadlineExceeded):
					t.Fatalf("Next = %v, want one that names the store's trouble", err)
				default:
					failed++
				}
			}
			return failed
		}
		if n := use(2 * time.Minute); n != 0 {
			t.Errorf("%d calls failed while all was well", n)
		}
		s.set(true)
		if n := use(30 * time.Second); n != 0 {
			t.Errorf("%d calls failed in an outage shorter than the window", n)
		}
		s.set(false)
		if n := use(time.Minute); n != 0 {
			t.Errorf("%d calls failed after the outage", n)
		}
		s.set(true)
		if n := use(5 * time.Minute); n < 1000 {
			t.Errorf("%d calls failed in an outage of five windows", n)
		}
		s.set(false)
		use(15 * time.Second) // it retries every few seconds
		if n := use(time.Minute); n != 0 {
			t.Errorf("%d calls failed after the long outage", n)
		}
		new(ids).add(t, made...)
		if got := q.Stats().Keeper; got.Acquired != 1 || got.Unknown == 0 {
			t.Errorf("statistics %+v: the number was never lost, and some results were unknown", got)
		}

		// Closing while the store is unreachable ends, and the error explains
		// the consequence.
		s.set(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Close(ctx); err == nil {
			t.Error("Close without a store is fine, want an error")
		} else {
			t.Log(err)
		}
	})
}

// TestIdle: an unused window is not renewed, and the next ID opens it again.
func TestIdle(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		q := open(t, s, nil)
		defer closeIt(t, q)
		first := next(t, q, 1)
		time.Sleep(24 * time.Hour)
		before := q.Stats().Keeper
		if before.Renewed > 2 {
			t.Errorf("a day of rest took %d renewals", before.Renewed)
		}
		second := next(t, q, 1)
		if second[0] <= first[0] {
			t.Errorf("%v after %v", second[0], first[0])
		}
		if got := q.Stats().Keeper; got.Acquired != 1 {
			t.Errorf("it acquired another node ID: %+v", got)
		}
	})
}

// TestTooLarge: a batch that fits no window is an error at
// once, even if no window is open, and nothing is taken.
func TestTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		l := firn.MustParseLayout("bits=time:48.node:14.seq:2,epoch=0")
		q := open(t, s, &sequencer.Config{Layout: l, Window: time.Minute})
		defer closeIt(t, q)
		for range 2 {
			start := time.Now()
			for _, n := range []int{4*60_000 + 1, math.MaxInt} {
				_, err := q.NextBatch(t.Context(), n)
				_, err2 := q.TryNextBatch(n)
				for _, err := range []error{err, err2} {
					if !errors.Is(err, firn.ErrBatchTooLarge) || !strings.Contains(err.Error(), "Fill") {
						t.Errorf("a batch of %d: %v, want ErrBatchTooLarge, and a hint at Fill", n, err)
					}
				}
			}
			if got := q.Stats().IDs; got != 0 || time.Since(start) != 0 {
				t.Errorf("%d IDs were taken in %v", got, time.Since(start))
			}
			time.Sleep(5 * time.Minute) // the window lapses
		}
		if b, err := q.NextBatch(t.Context(), 4*50_000); err != nil || b.Len() != 4*50_000 {
			t.Errorf("NextBatch of 50 s = %d, %v", b.Len(), err)
		}
		for _, n := range []int{0, -1, math.MinInt} {
			_, err := q.NextBatch(t.Context(), n)
			_, err2 := q.TryNextBatch(n)
			if err == nil || err2 == nil || errors.Is(err, firn.ErrBatchTooLarge) || errors.Is(err2, firn.ErrBatchTooLarge) {
				t.Errorf("a batch of %d: %v, %v", n, err, err2)
			}
		}
	})
	bubble(t, func(t *testing.T, s grant.Store) {
		small := firn.MustParseLayout("bits=time:41.node:10.seq:2,unit=10ms,epoch=0")
		q := open(t, s, &sequencer.Config{Layout: small, Window: time.Minute})
		defer closeIt(t, q)
		const largest = 6000 * 4
		if _, err := q.TryNextBatch(largest); errors.Is(err, firn.ErrBatchTooLarge) {
			t.Errorf("%d IDs, which a window has: %v", largest, err)
		}
		// What a fresh window can no longer hold does not wait either.
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := q.NextBatch(ctx, largest-8); !errors.Is(err, firn.ErrBatchTooLarge) {
			t.Errorf("%d IDs, two seconds later: %v", largest-8, err)
		}
	})
}

// TestConcurrent: many goroutines and all methods, with one goroutine that
// attaches and detaches.
func TestConcurrent(t *testing.T) {
	s := new(memstore.Store)
	q := open(t, s, nil)
	var all ids
	var callers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	var made atomic.Int64 // calls that returned IDs
	for i := range 12 {
		callers.Go(func() {
			var mine []firn.ID
			for n := 0; n < 300; {
				changed := q.Changed()
				var err error
				switch i % 4 {
				case 0:
					var id firn.ID
					if id, err = q.Next(ctx); err == nil {
						mine = append(mine, id)
					}
				case 1:
					var id firn.ID
					if id, err = q.TryNext(); err == nil {
						mine = append(mine, id)
					}
				case 2:
					dst := make([]firn.ID, 50)
					if err = q.Fill(ctx, dst); err == nil {
						mine = append(mine, dst...)
					}
				case 3:
					var b firn.Batch
					if b, err = q.NextBatch(ctx, 70); err == nil {
						mine = append(mine, slices.Collect(b.All())...)
					}
				}
				q.State()
				q.Stats()
				switch {
				case err == nil:
					made.Add(1)
					n++
				case errors.Is(err, grant.ErrDetached):
					<-changed
				default:
					runtime.Gosched() // TryNext when it would have to wait
				}
			}
			all.add(t, mine...)
		})
	}
	var changer sync.WaitGroup
	changer.Go(func() {
		for ctx.Err() == nil {
			_ = q.Detach(ctx)
			_ = q.Attach(ctx)
			for before := made.Load(); ctx.Err() == nil && made.Load() == before; {
				runtime.Gosched()
			}
		}
	})
	callers.Wait()
	stop()
	changer.Wait()
	closeIt(t, q)
}

// TestFleet: a hundred processes that open, close, detach and crash for hours,
// while their sequencer is detached, destroyed and created again.
func TestFleet(t *testing.T) {
	hours := 4
	switch {
	case os.Getenv("FIRN_SOAK") != "":
		hours = 30 * 24
	case os.Getenv("FIRN_ALL") != "":
		hours = 12
	case testing.Short():
		hours = 2
	}
	synctest.Test(t, func(t *testing.T) {
		mem := new(memstore.Store)
		ctx := t.Context()
		nodes := firn.MustParseLayout("snowcast,nodes=128,epoch=0")
		config := &sequencer.Config{Layout: nodes, WaitForNode: true, Window: 10 * time.Minute}
		var all ids
		var counts struct {
			sync.Mutex
			opened, crashed, detached, renewed uint64
		}
		end := time.Now().Add(time.Duration(hours) * time.Hour)
		var fleet sync.WaitGroup
		for i := range 100 {
			fleet.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for time.Now().Before(end) {
					s := &brokenStore{Store: mem}
					q, err := sequencer.Open(ctx, s, "fleet", config)
					if err != nil {
						time.Sleep(time.Minute) // it is detached, or destroyed
						continue
					}
					var mine []firn.ID
					life := time.Now().Add(time.Duration(r.Int64N(int64(6 * time.Hour))))
					for time.Now().Before(life) {
						brief, cancel := context.WithTimeout(ctx, time.Minute)
						if id, err := q.Next(brief); err == nil {
							mine = append(mine, id)
						}
						cancel()
						time.Sleep(time.Duration(r.Int64N(int64(4 * time.Minute))))
						if r.IntN(200) == 0 {
							_ = q.Detach(ctx)
							time.Sleep(time.Minute)
							_ = q.Attach(ctx)
						}
					}
					stats := q.Stats().Keeper
					counts.Lock()
					counts.opened++
					counts.renewed += stats.Renewed
					counts.detached += stats.Released
					counts.Unlock()
					if r.IntN(3) == 0 {
						counts.Lock()
						counts.crashed++
						counts.Unlock()
						s.set(true) // like after a crash: nothing is given back
					}
					brief, cancel := context.WithTimeout(ctx, time.Second)
					_ = q.Close(brief)
					cancel()
					all.add(t, mine...)
				}
			})
		}
		fleet.Go(func() {
			r := rand.New(rand.NewPCG(2, 2))
			slow := &grant.AdminOptions{Poll: 20 * time.Second}
			for time.Now().Before(end) {
				time.Sleep(time.Duration(1+r.Int64N(5)) * time.Hour)
				if r.IntN(2) == 0 {
					if _, err := grant.DetachAll(ctx, mem, "fleet", slow); err != nil {
						t.Error(err)
					}
					if _, err := grant.AttachAll(ctx, mem, "fleet"); err != nil {
						t.Error(err)
					}
				} else {
					if _, err := grant.Destroy(ctx, mem, "fleet", slow); err != nil {
						t.Error(err)
					}
					if _, err := grant.Create(ctx, mem, "fleet", grant.NewConfig(nodes, 10*time.Minute), time.Now()); err != nil {
						t.Error(err)
					}
				}
			}
		})
		fleet.Wait()
		t.Logf("report: synctest: 100 processes, %d virtual hours, %d opened, %d of them crashed, %d numbers given back early, %d renewals, %d IDs, no duplicate",
			hours, counts.opened, counts.crashed, counts.detached, counts.renewed, len(all.seen))
		if counts.crashed == 0 || counts.detached == 0 || counts.renewed < uint64(80*hours) || len(all.seen) < 800*hours {
			t.Error("that is not what was to be shown")
		}
	})
}

func ExampleOpen() {
	ctx := context.Background()
	store := new(memstore.Store) // in a program of yours: dirstore, sqlstore, etcdstore
	orders, err := sequencer.Open(ctx, store, "orders", &sequencer.Config{Layout: firn.Default()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer orders.Close(ctx)
	a, _ := orders.Next(ctx)
	b, _ := orders.Next(ctx)
	fmt.Println(a < b, orders.State().Phase)

	_, err = sequencer.Open(ctx, store, "orders", &sequencer.Config{Layout: firn.MustParseLayout("twitter")})
	fmt.Println(errors.Is(err, grant.ErrMismatch))
	// Output:
	// true holding
	// true
}
