package sequencer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// A twin is what a SequencerOf of either width has in common.
type twin struct {
	calls map[string]func(context.Context) error // each makes at least one ID
	at    interface {
		Join(context.Context) error
		Leave(context.Context) error
		Close(context.Context) error
		Status() grant.Status
		Stats() sequencer.Stats
	}
}

// twins opens one of each, with separate stores.
func twins(t *testing.T, s grant.Store, c sequencer.Options) map[string]twin {
	t.Helper()
	c.Layout = layout
	narrow := must.Get(sequencer.Open(t.Context(), s, "narrow", &c))(t)
	c.Layout = firn.MustParseLayout("boundary")
	wide := must.Get(sequencer.Open128(t.Context(), s, "wide", &c))(t)
	return map[string]twin{"narrow": {callsOf(narrow), narrow}, "wide": {callsOf(wide), wide}}
}

// callsOf returns the calls that make IDs, three at once if they can.
func callsOf[I firn.AnyID](q *sequencer.SequencerOf[I]) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Next":      func(ctx context.Context) error { _, err := q.Next(ctx); return err },
		"TryNext":   func(context.Context) error { _, err := q.TryNext(); return err },
		"Fill":      func(ctx context.Context) error { return q.Fill(ctx, make([]I, 3)) },
		"TryBatch":  func(context.Context) error { _, err := q.TryNextBatch(3); return err },
		"NextBatch": func(ctx context.Context) error { _, err := q.NextBatch(ctx, 3); return err },
	}
}

// TestStatesOfMembers: the results of every call and of Status in each state of
// a member.
func TestStatesOfMembers(t *testing.T) {
	faulty(t, func(t *testing.T, s *faultstore.Store) {
		for name, q := range twins(t, s, sequencer.Options{Window: time.Minute, Idle: true}) {
			every := func(when string, want error) {
				t.Helper()
				for call, do := range q.calls {
					time.Sleep(10 * time.Millisecond) // so that no call has to wait
					if err := do(t.Context()); !errors.Is(err, want) {
						t.Errorf("%s, %s: %s is %v, want %v", name, when, call, err, want)
					}
				}
			}
			state := func(when string, want grant.Phase, wantErr error) {
				t.Helper()
				if got := q.at.Status(); got.Phase != want || !errors.Is(got.Err, wantErr) {
					t.Errorf("%s, %s: it is %+v, want %v, %v", name, when, got, want, wantErr)
				}
			}
			state("before Join", grant.Idle, nil)
			every("before Join", sequencer.ErrNotJoined)

			s.Cut.Store(true)
			err := within(t, time.Second, q.at.Join)
			if !errors.Is(err, firn.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: Join without a store: %v", name, err)
			}
			state("joining", grant.Joining, errRefused)
			s.Cut.Store(false)
			must.Do(t, q.at.Join(t.Context()))
			state("joined", grant.Holding, nil)
			every("joined", nil)
			if got := q.at.Stats(); got.IDs != 11 {
				t.Errorf("%s: %d IDs, want 11", name, got.IDs)
			}

			s.Cut.Store(true)
			err = within(t, time.Second, q.at.Leave)
			if !errors.Is(err, firn.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: Leave without a store: %v", name, err)
			}
			state("leaving", grant.Leaving, errRefused)
			every("leaving", sequencer.ErrNotJoined)
			s.Cut.Store(false)
			must.Do(t, q.at.Leave(t.Context()))
			state("left", grant.Idle, nil)
			must.Do(t, q.at.Join(t.Context()))
			every("joined again", nil)
			if got := q.at.Stats(); got.IDs != 22 { // including those of the sealed generator
				t.Errorf("%s: %d IDs, want 22", name, got.IDs)
			}

			must.Get(grant.Destroy(t.Context(), s.Store, name, nil))(t)
			time.Sleep(time.Minute)
			state("destroyed", grant.Joining, grant.ErrDestroyed)
			every("destroyed", grant.ErrDestroyed)

			must.Do(t, q.at.Close(t.Context()))
			state("closed", grant.Idle, firn.ErrClosed)
			every("closed", firn.ErrClosed)
			join, leave := q.at.Join(t.Context()), q.at.Leave(t.Context())
			if !errors.Is(join, firn.ErrClosed) || !errors.Is(leave, firn.ErrClosed) {
				t.Errorf("%s: Join and Leave of a closed one: %v, %v", name, join, leave)
			}
		}
	})
}

// TestWindowChanges: members use a new window without being opened again, and
// one that is opened with another window logs that and uses the sequencer's.
func TestWindowChanges(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		create(t, s, layout, time.Minute)
		var log bytes.Buffer
		q, err := sequencer.Open(t.Context(), s, "orders", &sequencer.Options{Layout: layout, Window: 5 * time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close(t.Context())
		if text := log.String(); !strings.Contains(text, "using the sequencer's window") || !strings.Contains(text, "window=1m0s configured=5m0s") {
			t.Errorf("the log of a member with another window is %q", text)
		}
		for _, window := range []time.Duration{10 * time.Minute, 2 * time.Minute} {
			must.Get(grant.SetWindow(t.Context(), s, "orders", window))(t)
			for begin := time.Now(); time.Since(begin) < 12*time.Minute; time.Sleep(5 * time.Second) {
				must.Get(q.Next(t.Context()))(t)
			}
			left := time.Until(q.Status().Until)
			if got := q.Config().Window; got != window || left > window+time.Second || left < window/2 {
				t.Errorf("12 minutes after a change to %v, the window is %v, with %v left", window, got, left)
			}
		}
	})
}
