package sequencer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// layout begins before the year 2000, in which synctest's bubbles begin.
var layout = firn.MustParseLayout("default,epoch=0")

// in2026 runs f in a bubble whose clock shows a day in 2026.
func in2026(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)))
		f(t)
	})
}

// sixteen has 16 node IDs.
var sixteen = firn.MustParseLayout("bits=time:44.node:4.seq:4,unit=1ms,epoch=0")

// bubble runs f with fake time; its goroutines must end.
func bubble(t *testing.T, f func(t *testing.T, s grant.Store)) {
	synctest.Test(t, func(t *testing.T) { f(t, new(memstore.Store)) })
}

// faulty is bubble with a store that fails as f wants.
func faulty(t *testing.T, f func(t *testing.T, s *faultstore.Store)) {
	bubble(t, func(t *testing.T, s grant.Store) { f(t, &faultstore.Store{Store: s, Err: errRefused}) })
}

// within makes a call with a context that ends after d.
func within(t *testing.T, d time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return call(ctx)
}

func open(t *testing.T, s grant.Store, c *sequencer.Options) *sequencer.Sequencer {
	t.Helper()
	if c == nil {
		c = &sequencer.Options{Layout: layout}
	}
	return must.Get(sequencer.Open(t.Context(), s, "orders", c))(t)
}

// closeIt may be called in any goroutine.
func closeIt(t *testing.T, q interface{ Close(context.Context) error }) {
	t.Helper()
	if err := q.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// create creates a sequencer, or creates it again.
func create(t *testing.T, s grant.Store, l firn.Layout, window time.Duration) {
	t.Helper()
	c := grant.DefaultConfig(s, l, nil)
	c.Window = cmp.Or(window, c.Window)
	must.Get(grant.Create(t.Context(), s, "orders", c, nil))(t)
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
	must.Do(t, q.Fill(t.Context(), dst))
	return dst
}

func TestOpenCompares(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		ctx := t.Context()
		if _, err := sequencer.Open(ctx, s, "orders", nil); !errors.Is(err, grant.ErrNotFound) {
			t.Errorf("Open of none = %v, want ErrNotFound", err)
		}
		if _, err := sequencer.Open(ctx, s, "orders", &sequencer.Options{Layout: layout, MustExist: true}); !errors.Is(err, grant.ErrNotFound) {
			t.Errorf("Open of one that must exist = %v, want ErrNotFound", err)
		}
		zero := time.Duration(0)
		for what, c := range map[string]sequencer.Options{
			"short window":   {Layout: layout, Window: time.Second},
			"range":          {Layout: layout, Nodes: &grant.NodeRange{Lo: 1020, Hi: 1024}},
			"reversed range": {Layout: layout, Nodes: &grant.NodeRange{Lo: 2, Hi: 1}},
			"128 bits":       {Layout: firn.MustParseLayout("boundary")},
		} {
			if _, err := sequencer.Open(ctx, s, "orders", &c); err == nil {
				t.Errorf("%s: Open is fine, want an error", what)
			} else {
				t.Logf("%s: %v", what, err)
			}
		}
		for _, name := range []string{"", "a/b", "ä"} {
			if _, err := sequencer.Open(ctx, s, name, &sequencer.Options{Layout: layout}); err == nil {
				t.Errorf("Open(%q) is fine, want an error", name)
			}
		}
		must.Do(t, s.List(ctx, "", func(key string, _ []byte) bool {
			t.Errorf("%s was written by calls that failed", key)
			return true
		}))

		a := open(t, s, &sequencer.Options{Layout: layout, MaxAhead: &zero, Window: 45 * time.Second})
		defer closeIt(t, a)
		// Existing settings are used by default.
		b := open(t, s, nil)
		defer closeIt(t, b)
		if b.Config() != a.Config() || b.Config().MaxAhead != 0 || b.Config().Window != 45*time.Second {
			t.Errorf("opened with %+v, created with %+v", b.Config(), a.Config())
		}
		other := time.Second
		_, err := sequencer.Open(ctx, s, "orders", &sequencer.Options{MaxAhead: &other})
		if !errors.Is(err, grant.ErrMismatch) || !strings.Contains(err.Error(), "has max-ahead 0s, not 1s") {
			t.Errorf("opened with another MaxAhead: %v", err)
		}
	})
}

// TestLife: IDs stay unique while a process joins and leaves, and while
// the sequencer is detached, destroyed and created again. TestStatesOfMembers
// has the results of calls in each state.
func TestLife(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		ctx := t.Context()
		var all ids
		q := open(t, s, &sequencer.Options{Layout: layout, Idle: true})
		var made []firn.ID
		for range 3 {
			must.Do(t, errors.Join(q.Join(ctx), q.Join(ctx)))
			made = append(made, next(t, q, 5000)...)
			must.Do(t, errors.Join(q.Leave(ctx), q.Leave(ctx)))
		}
		must.Do(t, q.Join(ctx))
		made = append(made, next(t, q, 1)...)

		// Detached everywhere: the store reports it, and no IDs are made any
		// more.
		must.Get(grant.Detach(ctx, s, "orders", nil))(t)
		if _, err := q.Next(ctx); !errors.Is(err, grant.ErrDetached) {
			t.Errorf("Next while all are detached = %v", err)
		}
		if _, err := sequencer.Open(ctx, s, "orders", nil); !errors.Is(err, grant.ErrDetached) {
			t.Errorf("Open while all are detached = %v", err)
		}
		must.Get(grant.Attach(ctx, s, "orders"))(t)
		synctest.Wait()
		made = append(made, next(t, q, 10)...)

		// Destroyed right after a burst, and created again.
		made = append(made, next(t, q, 4096*999)...)
		must.Get(grant.Destroy(ctx, s, "orders", nil))(t)
		if _, err := sequencer.Open(ctx, s, "orders", &sequencer.Options{Layout: layout}); !errors.Is(err, grant.ErrDestroyed) {
			t.Errorf("Open of a destroyed one = %v: it must be created again on purpose", err)
		}
		create(t, s, layout, 0)
		other := open(t, s, &sequencer.Options{Layout: layout, Nodes: &grant.NodeRange{Lo: 0, Hi: 0}})
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
	})
}

func TestExhausted(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		two := &grant.NodeRange{Lo: 10, Hi: 11}
		a := open(t, s, &sequencer.Options{Layout: layout, Nodes: two})
		b := open(t, s, &sequencer.Options{Layout: layout, Nodes: two})
		_, err := sequencer.Open(t.Context(), s, "orders", &sequencer.Options{Nodes: two})
		var e *grant.NodesExhaustedError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "10..11") || e.Free.IsZero() {
			t.Errorf("Open of a third = %v", err)
		}
		// Another range is not affected.
		other := open(t, s, &sequencer.Options{Nodes: &grant.NodeRange{Lo: 12, Hi: 12}})
		if got := other.Status().Node; got != 12 {
			t.Errorf("pinned to 12, and has %d", got)
		}
		err = within(t, 3*time.Second, func(ctx context.Context) error {
			_, err := sequencer.Open(ctx, s, "orders", &sequencer.Options{WaitForNode: true, Nodes: two})
			return err
		})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, grant.ErrNodesExhausted) ||
			errors.Is(err, firn.ErrUnavailable) {
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
		c := open(t, s, &sequencer.Options{WaitForNode: true, Nodes: two})
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

// TestTooLarge: a batch that fits no window is an error at
// once, even if no window is open, and nothing is taken.
func TestTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		l := firn.MustParseLayout("bits=time:48.node:14.seq:2,epoch=0")
		q := open(t, s, &sequencer.Options{Layout: l, Window: time.Minute})
		defer closeIt(t, q)
		for range 2 {
			start := time.Now()
			for _, n := range []int{4*55_000 + 1, math.MaxInt} {
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
		// A window has the largest batch, whatever was used of it.
		for _, after := range []time.Duration{0, 2 * time.Second, time.Minute} {
			time.Sleep(after)
			if b, err := q.NextBatch(t.Context(), 4*55_000); err != nil || b.Len() != 4*55_000 {
				t.Errorf("the largest batch, after %v: %d IDs, %v", after, b.Len(), err)
			}
		}
		for _, n := range []int{0, -1, math.MinInt} {
			_, err := q.NextBatch(t.Context(), n)
			_, err2 := q.TryNextBatch(n)
			if err == nil || err2 == nil || errors.Is(err, firn.ErrBatchTooLarge) || errors.Is(err2, firn.ErrBatchTooLarge) {
				t.Errorf("a batch of %d: %v, %v", n, err, err2)
			}
		}
	})
}

// TestCloseAfterSignal: Close gives the node ID back, although the context of
// the program has ended, and Abandon does not.
func TestCloseAfterSignal(t *testing.T) {
	for what, end := range map[string]func(*sequencer.Sequencer, context.Context){
		"Close":   func(q *sequencer.Sequencer, ctx context.Context) { must.Do(t, q.Close(ctx)) },
		"Abandon": func(q *sequencer.Sequencer, ctx context.Context) { q.Abandon() },
	} {
		bubble(t, func(t *testing.T, s grant.Store) {
			ctx, signal := context.WithCancel(t.Context())
			q := must.Get(sequencer.Open(ctx, s, "orders", &sequencer.Options{Layout: layout}))(t)
			one(t, q)
			signal()
			end(q, ctx)
			if _, err := q.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
				t.Errorf("Next after %s: %v, want ErrClosed", what, err)
			}
			held := false
			must.Do(t, grant.Nodes(t.Context(), s, "orders", func(n grant.NodeInfo, err error) bool {
				held = held || n.Held
				return err == nil
			}))
			if held != (what == "Abandon") {
				t.Errorf("after %s, a node ID is held: %t", what, held)
			}
		})
	}
}

func ExampleOpen() {
	ctx := context.Background()
	store := new(memstore.Store) // in a program of yours: dirstore, sqlstore, etcdstore
	orders, err := sequencer.Open(ctx, store, "orders", &sequencer.Options{Layout: firn.Default()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer orders.Close(ctx)
	a, _ := orders.Next(ctx)
	b, _ := orders.Next(ctx)
	fmt.Println(a < b, orders.Status().Phase)

	_, err = sequencer.Open(ctx, store, "orders", &sequencer.Options{Layout: firn.MustParseLayout("twitter")})
	fmt.Println(errors.Is(err, grant.ErrMismatch))
	// Output:
	// true holding
	// true
}
