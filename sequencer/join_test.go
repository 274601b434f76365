package sequencer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
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

// TestLastWord: calls of all kinds whose contexts end at any moment, with a
// slow store. The last call determines the final state of a process.
func TestLastWord(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 10))
			var delay atomic.Int64
			s := grant.Observe(new(memstore.Store), func(ctx context.Context, request grant.Request, _ string) (context.Context, func(bool, error)) {
				if request == grant.RequestCAS {
					time.Sleep(time.Duration(delay.Load()))
				}
				return ctx, func(bool, error) {}
			})
			q := open(t, s, nil)
			delay.Store(r.Int64N(int64(2 * time.Second)))
			var made ids
			var all sync.WaitGroup
			for range 20 {
				kind, patience := r.IntN(4), time.Duration(r.Int64N(int64(4*time.Second)))
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					switch kind {
					case 0:
						_ = q.Join(ctx)
					case 1:
						_ = q.Leave(ctx)
					default:
						if id, err := q.Next(ctx); err == nil {
							made.add(t, id)
						}
					}
				})
				time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if seed%2 == 0 {
				_ = q.Join(ended)
			} else {
				_ = q.Leave(ended)
			}
			all.Wait()
			time.Sleep(time.Minute)
			want := []grant.Phase{grant.Holding, grant.Idle}[seed%2]
			if got := q.Status().Phase; got != want {
				t.Errorf("seed %d: Status is %v, want %v", seed, got, want)
			}
			id, err := q.Next(t.Context())
			if (err == nil) != (want == grant.Holding) {
				t.Errorf("seed %d: Next: %v, %v, when %v", seed, id, err, want)
			} else if err == nil {
				made.add(t, id)
			}
			began := time.Now()
			closing := make(chan error)
			go func() { closing <- q.Join(t.Context()) }()
			err = q.Close(t.Context())
			if passed := time.Since(began); err != nil || passed > 20*time.Second {
				t.Errorf("seed %d: Close: %v after %v", seed, err, passed)
			}
			if err := <-closing; err != nil && !errors.Is(err, firn.ErrClosed) {
				t.Errorf("seed %d: Join: %v", seed, err)
			}
		})
	}
}

// TestNotGivenBack: if Close and Leave stop trying to give a node ID back,
// they return an error, and it does not count as given back.
func TestNotGivenBack(t *testing.T) {
	for what, call := range map[string]func(*sequencer.Sequencer, context.Context) error{
		"Close": (*sequencer.Sequencer).Close, "Leave": (*sequencer.Sequencer).Leave,
	} {
		faulty(t, func(t *testing.T, s *faultstore.Store) {
			q := open(t, s, &sequencer.Options{Layout: layout, Window: 10 * time.Minute})
			one(t, q)
			s.Reads.Store(true)
			if err := call(q, t.Context()); err == nil {
				t.Errorf("%s, and writes fail: no error", what)
			}
			if n := q.Stats().Keeper.Released; n > 0 {
				t.Errorf("%s: %d numbers were given back", what, n)
			}
			if got := q.Status(); what == "Leave" && (got.Phase != grant.Idle || got.Err == nil) {
				t.Errorf("then the status is %+v", got)
			}
			_ = q.Close(t.Context())
		})
		bubble(t, func(t *testing.T, s grant.Store) {
			var replaced atomic.Bool
			q := open(t, lineageStore{s, func(context.Context) (string, int64, error) {
				return fmt.Sprint("replaced: ", replaced.Load()), 1, nil
			}}, nil)
			one(t, q)
			replaced.Store(true)
			time.Sleep(2 * time.Second)
			if err := call(q, t.Context()); !errors.Is(err, grant.ErrStoreWentBack) {
				t.Errorf("%s, and the store went back: %v", what, err)
			}
			_ = q.Close(t.Context())
		})
	}
}

// TestCancelled: a call that its caller cancels is no outage, unless the store
// is known to have failed.
func TestCancelled(t *testing.T) {
	for _, fails := range []bool{false, true} {
		faulty(t, func(t *testing.T, s *faultstore.Store) {
			q := open(t, s, &sequencer.Options{Layout: layout, Window: time.Hour})
			one(t, q)
			time.Sleep(2 * time.Hour)
			s.Hangs.Store(!fails)
			s.Cut.Store(fails)
			cancelled := func(name string, call func(context.Context) error) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				err := call(ctx)
				if !errors.Is(err, context.Canceled) || errors.Is(err, firn.ErrUnavailable) != fails ||
					errors.Is(err, errRefused) != fails {
					t.Errorf("%s, the store fails: %t: %v, want Canceled and, if it fails, ErrUnavailable", name, fails, err)
				}
			}
			cancelled("Next", func(ctx context.Context) error { _, err := q.Next(ctx); return err })
			cancelled("Leave", q.Leave)
			cancelled("Join", func(ctx context.Context) error {
				if err := q.Join(ctx); err != nil {
					return err
				}
				_, err := q.Next(ctx)
				return err
			})
			s.Hangs.Store(false)
			s.Cut.Store(false)
			closeIt(t, q)
		})
	}
}

// TestStoppedProgram: the program of the example, whose context ends on a
// signal, gives its node ID back.
func TestStoppedProgram(t *testing.T) {
	in2026(t, func(t *testing.T) {
		s := new(memstore.Store)
		held := func() (n int) {
			must.Do(t, grant.Nodes(t.Context(), s, "orders", func(node grant.NodeInfo, err error) bool {
				if err != nil || node.Held {
					n++
				}
				return true
			}))
			return n
		}
		ctx, stop := context.WithCancel(t.Context())
		items, ended := make(chan string), make(chan error)
		go func() { ended <- takeOrders(ctx, s, items) }()
		items <- "tea"
		if n := held(); n != 1 {
			t.Errorf("%d node IDs are held while the program runs, want 1", n)
		}
		stop()
		if err, n := <-ended, held(); err != nil || n != 0 {
			t.Errorf("the program ended with %v, and %d node IDs are held, want nil and 0", err, n)
		}
	})
}

// TestWhatWasAwaited: a call that gives up returns what it waited for, and
// reports an unresponsive store only if that is the reason.
func TestWhatWasAwaited(t *testing.T) {
	const second = time.Second
	next := func(q interface {
		Next(context.Context) (firn.ID, error)
	}) func(context.Context) error {
		return func(ctx context.Context) error { _, err := q.Next(ctx); return err }
	}
	bubble(t, func(t *testing.T, s grant.Store) {
		create(t, s, layout, 0)
		var years atomic.Int32
		q := open(t, s, &sequencer.Options{Idle: true, Now: func() time.Time { return time.Now().AddDate(int(years.Load()), 0, 0) }})
		years.Store(130)
		_ = within(t, second, q.Join) // begins to claim
		err := within(t, second, next(q))
		var clock *firn.ClockError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &clock) ||
			errors.Is(err, firn.ErrUnavailable) || strings.Contains(err.Error(), "set back") {
			t.Errorf("after all times: %v", err)
		}
		closeIt(t, q)
	})
	faulty(t, func(t *testing.T, s *faultstore.Store) {
		q := open(t, s, &sequencer.Options{Layout: layout, Window: time.Minute})
		s.Cut.Store(true)
		time.Sleep(2 * time.Minute)
		p := firn.NewPrefetcher(q, nil)
		// The first call of the prefetcher fetches, the second one waits for a
		// fetch.
		for call, do := range []func(context.Context) error{next(q), next(p), next(p)} {
			err := within(t, second, do)
			if !errors.Is(err, firn.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("call %d without a store: %v, want ErrUnavailable and DeadlineExceeded", call, err)
			}
			if call == 0 {
				continue
			}
			for name, try := range map[string]func() (firn.ID, error){"a prefetcher": p.TryNext, "the sequencer": q.TryNext} {
				if _, err := try(); !errors.Is(err, firn.ErrUnavailable) || errors.Is(err, firn.ErrExhausted) {
					t.Errorf("TryNext of %s after call %d: %v, want ErrUnavailable, and not ErrExhausted", name, call, err)
				}
			}
		}
		must.Do(t, p.Close(t.Context()))
		_ = q.Close(t.Context())
	})
	faulty(t, func(t *testing.T, s *faultstore.Store) {
		q := open(t, s, &sequencer.Options{Layout: layout, Idle: true})
		s.Hangs.Store(true)
		err := within(t, 10*time.Millisecond, q.Join)
		if !errors.Is(err, firn.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "no answer of the store so far") {
			t.Errorf("Join of a store that hangs: %v, want ErrUnavailable, DeadlineExceeded, and that the store has not answered", err)
		}
		s.Hangs.Store(false)
		closeIt(t, q)
	})
}
