package grant

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A hintedStore is a Watcher whose hints the test sends, and whose writes do
// what the test wants.
type hintedStore struct {
	Store
	hints   chan struct{}
	applied bool
	err     error
}

func (s *hintedStore) Watch(context.Context, string) <-chan struct{} { return s.hints }

func (s *hintedStore) CAS(context.Context, string, []byte, []byte) (bool, error) {
	return s.applied, s.err
}

// TestHints: a Watcher of Observe reports what its own process may have written
// and what the Store reports, once for all changes not yet received. It
// survives the end of the Store's Watch, and leaves nothing behind.
func TestHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &hintedStore{hints: make(chan struct{}, 1)}
		s := &observed{Store: inner, observe: func(ctx context.Context, _ Request, _ string) (context.Context, func(bool, error)) {
			return ctx, func(bool, error) {}
		}}
		ctx, stop := context.WithCancel(t.Context())
		last, stopLast := context.WithCancel(t.Context())
		defer stopLast()
		one, two := s.Watch(ctx, "k"), s.Watch(last, "k")
		received := func(c <-chan struct{}) (n int) {
			synctest.Wait()
			for ; len(c) > 0; n++ {
				<-c
			}
			return n
		}
		write := func(applied bool, err error) {
			inner.applied, inner.err = applied, err
			_, _ = s.CAS(t.Context(), "k", nil, []byte("x"))
			synctest.Wait()
		}
		for _, tt := range []struct {
			after string
			do    func()
			want  int
		}{
			{"a CAS that was not applied", func() { write(false, nil) }, 0},
			{"a CAS that was applied", func() { write(true, nil) }, 1},
			{"a CAS with an unknown result", func() { write(false, errors.New("unknown")) }, 1},
			{"three writes", func() { write(true, nil); write(true, nil); write(true, nil) }, 1},
			{"a change by another process", func() {
				inner.hints <- struct{}{}
				if synctest.Wait(); len(one)+len(two) != 1 { // one of the two receives it
					t.Errorf("%d and %d report it, want one", len(one), len(two))
				}
				received(one)
				received(two)
			}, 0},
			{"the end of the Store's Watch", func() { close(inner.hints) }, 0},
			{"a write after that", func() { write(true, nil) }, 1},
		} {
			tt.do()
			if n, m := received(one), received(two); n != tt.want || m != tt.want {
				t.Errorf("after %s, %d and %d changes are reported, want %d each", tt.after, n, m, tt.want)
			}
		}
		other := s.Watch(ctx, "other")
		stop()
		synctest.Wait()
		for name, c := range map[string]<-chan struct{}{"first": one, "other key's": other} {
			if change, open := <-c; open {
				t.Errorf("the %s Watch reports %v after its context has ended, want that it is closed", name, change)
			}
		}
		write(true, nil)
		if n := len(s.own.waits); n != 2 { // the second one waits again
			t.Errorf("%d keys are watched, want two", n)
		}
		stopLast()
		for range two {
		}
		write(true, nil)
		if n := len(s.own.waits); n != 1 {
			t.Errorf("%d keys are watched after a write of one, and nobody watches", n)
		}
	})
}
