package sequencer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// TestLapsedCalls: calls that do not wait report that no window is open, and
// request one for the next call; so does a call whose context has ended.
func TestLapsedCalls(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func(q *sequencer.Sequencer) error{
		"TryNext":      func(q *sequencer.Sequencer) error { _, err := q.TryNext(); return err },
		"TryNextBatch": func(q *sequencer.Sequencer) error { b, err := q.TryNextBatch(3); return count(b, err) },
		"Next, and its context has ended": func(q *sequencer.Sequencer) error {
			if _, err := q.Next(ended); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Next: %v", err)
				return nil
			}
			return firn.ErrExhausted
		},
	} {
		bubble(t, func(t *testing.T, s grant.Store) {
			q := open(t, &faultstore.Store{Store: s}, &sequencer.Options{Layout: layout, Window: time.Minute})
			defer closeIt(t, q)
			one(t, q)
			time.Sleep(time.Hour)
			if err := call(q); !errors.Is(err, firn.ErrExhausted) || errors.Is(err, firn.ErrGrantOver) {
				t.Errorf("%s after an hour: %v, want ErrExhausted", name, err)
			}
			time.Sleep(time.Second)
			if _, err := q.TryNext(); err != nil {
				t.Errorf("%s, and a second later: %v", name, err)
			}
			if b, err := q.TryNextBatch(3); count(b, err) != nil {
				t.Errorf("then TryNextBatch: %v", err)
			}
		})
	}
}

var errCount = errors.New("not three IDs")

func count(b firn.Batch, err error) error {
	if n := b.Len(); err == nil && n != 3 {
		return errCount
	}
	return err
}

// TestAskedAgain: after a call was refused, the reason is soon checked again;
// calls that fail repeatedly do not ask the store as often.
func TestAskedAgain(t *testing.T) {
	faulty(t, func(t *testing.T, s *faultstore.Store) {
		mem := s.Store
		q := open(t, s, &sequencer.Options{Layout: layout, Window: time.Minute})
		defer closeIt(t, q)
		one(t, q)
		must.Get(grant.Detach(t.Context(), mem, "orders", nil))(t)
		time.Sleep(time.Minute)
		if _, err := q.Next(t.Context()); !errors.Is(err, grant.ErrDetached) {
			t.Errorf("Next of a detached one: %v", err)
		}
		must.Get(grant.Attach(t.Context(), mem, "orders"))(t)
		for _, want := range []error{grant.ErrDetached, nil} {
			time.Sleep(200 * time.Millisecond)
			if _, err := q.Next(t.Context()); want == nil && err != nil {
				t.Errorf("Next, 200 ms after one that was refused: %v", err)
			}
		}

		time.Sleep(time.Hour)
		s.Cut.Store(true)
		before := s.Requests.Load()
		for range 10_000 {
			if _, err := q.TryNext(); err == nil {
				t.Fatal("an ID without a window")
			}
			time.Sleep(time.Millisecond)
		}
		s.Cut.Store(false)
		if n := s.Requests.Load() - before; n > 40 {
			t.Errorf("%d requests in 10 s, to a store that fails", n)
		}
		time.Sleep(10 * time.Second)
	})
}
