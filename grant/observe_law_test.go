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
		expect := func(after string, want int) {
			t.Helper()
			synctest.Wait()
			for n, c := range map[string]<-chan struct{}{"the first": one, "the second": two} {
				got := 0
				for len(c) > 0 {
					<-c
					got++
				}
				if got != want {
					t.Errorf("after %s, %s Watch reports %d changes, want %d", after, n, got, want)
				}
			}
		}
		write := func(applied bool, err error) {
			inner.applied, inner.err = applied, err
			_, _ = s.CAS(t.Context(), "k", nil, []byte("x"))
			synctest.Wait()
		}
		write(false, nil)
		expect("a CAS that was not applied", 0)
		write(true, nil)
		expect("a CAS that was applied", 1)
		write(false, errors.New("unknown"))
		expect("a CAS with an unknown result", 1)
		for range 3 {
			write(true, nil)
		}
		expect("three writes", 1)

		inner.hints <- struct{}{} // one of the two receives it
		synctest.Wait()
		if n := len(one) + len(two); n != 1 {
			t.Errorf("after a change by another process, %d changes are reported, want 1", n)
		}
		for _, c := range []<-chan struct{}{one, two} {
			for len(c) > 0 {
				<-c
			}
		}
		close(inner.hints)
		expect("the end of the Store's Watch", 0)
		other := s.Watch(ctx, "other")
		write(true, nil)
		expect("a write after that", 1)

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
		synctest.Wait()
		for range two {
		}
		write(true, nil)
		if n := len(s.own.waits); n != 1 {
			t.Errorf("%d keys are watched after a write of one, and nobody watches", n)
		}
	})
}
