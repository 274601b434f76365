package storehealth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/stores"
)

// fullStore is a Store with a clock, and with nothing else that is optional.
type fullStore struct {
	grant.Store
	closed bool
}

func (s *fullStore) Time(context.Context) (time.Time, time.Duration, error) {
	return time.Now(), time.Millisecond, nil
}

func (s *fullStore) Pace() grant.Pace { return grant.Pace{Window: 7 * time.Minute} }

func (s *fullStore) Close() error {
	s.closed = true
	return s.Store.Close()
}

var errDown = &stores.Error{Err: errors.New("the store is down"), Hint: "start it", Unreachable: true}

// TestOpenOrWait: until the store is reachable, calls fail at once and are
// known not to have been sent; then they are the store's.
func TestOpenOrWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &fullStore{Store: new(memstore.Store)}
		var log bytes.Buffer
		begin, tries := time.Now(), 0
		open := func(context.Context) (grant.Store, error) {
			tries++
			if time.Since(begin) < 150*time.Second {
				return nil, fmt.Errorf("open: %w", errDown)
			}
			return inner, nil
		}
		s := must.Get(OpenOrWait(t.Context(), open, slog.New(slog.NewTextHandler(&log, nil)), func(err error) { t.Errorf("failed: %v", err) }))(t)
		clock, ok := grant.As[grant.Clock](s)
		if !ok {
			t.Fatal("the store that is waited for has no clock")
		}
		_, getErr := s.Get(t.Context(), "a")
		_, casErr := s.CAS(t.Context(), "a", nil, []byte("b"))
		listErr := s.List(t.Context(), "", func(string, []byte) bool { return true })
		_, _, timeErr := clock.Time(t.Context())
		for _, err := range []error{getErr, casErr, listErr, timeErr} {
			if !errors.Is(err, grant.ErrNotSent) || !strings.Contains(err.Error(), "the store is down") {
				t.Errorf("a call while the store is down: %v, want ErrNotSent and the reason", err)
			}
		}
		time.Sleep(160 * time.Second)
		synctest.Wait()
		if ok, err := s.CAS(t.Context(), "a", nil, []byte("b")); !ok || err != nil {
			t.Errorf("CAS once the store is up: %v, %v", ok, err)
		}
		if v, err := s.Get(t.Context(), "a"); string(v) != "b" || err != nil {
			t.Errorf("Get once the store is up: %q, %v", v, err)
		}
		if _, _, err := clock.Time(t.Context()); err != nil {
			t.Errorf("Time once the store is up: %v", err)
		}
		if p, ok := s.(grant.Paced); !ok || p.Pace().Window != 7*time.Minute {
			t.Error("the window of the store is not passed on")
		}
		if _, open := <-s.(grant.Watcher).Watch(t.Context(), "a"); open {
			t.Error("a store that does not watch has told of a change")
		}
		if tries < 20 || tries > 50 {
			t.Errorf("%d attempts in 150 s, want one in five seconds", tries)
		}
		for what, n := range map[string]int{"starting without it": 1, "still unreachable": 2, "store reachable": 1, "start it": 3} {
			if got := strings.Count(log.String(), what); got != n {
				t.Errorf("the log has %q %d times, want %d:\n%s", what, got, n, &log)
			}
		}
		if err := s.Close(); err != nil || !inner.closed {
			t.Errorf("Close: %v, and the store is closed: %v", err, inner.closed)
		}
	})
}

// TestWaitedFor: once it is open, a store that was waited for has the optional
// interfaces that it has, and no other, also when it is observed. A Keeper that
// was made before works with it, and asks it for nothing else.
func TestWaitedFor(t *testing.T) {
	type plain struct{ grant.Store }
	for _, inner := range []grant.Store{
		plain{new(memstore.Store)}, &fullStore{Store: new(memstore.Store)}, new(memstore.Store),
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var up, opened atomic.Bool
			s := must.Get(OpenOrWait(t.Context(), func(context.Context) (grant.Store, error) {
				if !up.Load() {
					return nil, errDown
				}
				return inner, nil
			}, slog.New(slog.DiscardHandler), func(err error) { t.Errorf("failed: %v", err) }))(t)
			var failed []string
			observed := grant.Observe(s, func(ctx context.Context, r grant.Request, _ string) (context.Context, func(bool, error)) {
				return ctx, func(_ bool, err error) {
					if err != nil && opened.Load() {
						failed = append(failed, fmt.Sprint(r, ": ", err))
					}
				}
			})
			if got, want := faultstore.Abilities(s), [...]bool{true, true, true, true, true, true}; got != want || faultstore.Abilities(observed) != want {
				t.Errorf("%T, not open yet: it has %v, observed %v, want all", inner, got, faultstore.Abilities(observed))
			}
			const name = "orders"
			c := grant.DefaultConfig(inner, firn.Default(), nil)
			must.Get(grant.Create(t.Context(), inner, name, c, nil))(t)
			k := grant.NewKeeper(observed, name, nil, new(holder), nil)
			must.Do(t, k.Join(ctx))
			time.Sleep(time.Second)
			up.Store(true)
			time.Sleep(2 * longestPause)
			synctest.Wait()
			opened.Store(true)
			before := k.Stats()
			want := faultstore.Abilities(inner)
			if got := faultstore.Abilities(s); got != want {
				t.Errorf("%T: it has %v, want %v", inner, got, want)
			}
			want[1] = true // it reports writes made through it
			if got := faultstore.Abilities(observed); got != want {
				t.Errorf("%T: observed, it has %v, want %v", inner, got, want)
			}
			must.Do(t, k.Wait(ctx, func(s grant.Status) bool { return s.Phase == grant.Holding }))
			must.Do(t, k.Leave(ctx))
			must.Do(t, k.Wait(ctx, func(s grant.Status) bool { return s.Phase == grant.Idle }))
			must.Do(t, k.Join(ctx))
			must.Do(t, k.Wait(ctx, func(s grant.Status) bool { return s.Phase == grant.Holding }))
			if after := k.Stats(); after.Failed != before.Failed || after.Requests == before.Requests || len(failed) > 0 {
				t.Errorf("%T: %d requests failed, %q, in %+v", inner, after.Failed-before.Failed, failed, after)
			}
			must.Do(t, k.Close(ctx))
			must.Do(t, s.Close())
		})
	}
}

// A holder takes every grant.
type holder struct{}

func (*holder) Begin(firn.Grant) error { return nil }
func (*holder) Extend(time.Time) error { return nil }
func (*holder) Used() time.Time        { return time.Time{} }
func (*holder) Stop()                  {}

// TestWaitFails: what does not mend by itself ends the wait, at once or later.
func TestWaitFails(t *testing.T) {
	refused := &stores.Error{Err: errors.New("wrong password")}
	_, err := OpenOrWait(t.Context(), func(context.Context) (grant.Store, error) { return nil, refused }, slog.New(slog.DiscardHandler), nil)
	if !errors.Is(err, refused) {
		t.Errorf("OpenOrWait with a wrong password: %v, want that error", err)
	}
	synctest.Test(t, func(t *testing.T) {
		answers := []error{errDown, errDown, refused}
		open := func(context.Context) (grant.Store, error) {
			err := answers[0]
			answers = answers[1:]
			return nil, err
		}
		var told []error
		s := must.Get(OpenOrWait(t.Context(), open, slog.New(slog.DiscardHandler), func(err error) { told = append(told, err) }))(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(told) != 1 || !errors.Is(told[0], refused) {
			t.Errorf("failed was called with %v, want the wrong password once", told)
		}
		must.Do(t, s.Close())
	})
}

// TestWaitEnds: Close ends the attempts, also one under way.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		open := func(ctx context.Context) (grant.Store, error) {
			if first {
				first = false
				return nil, errDown
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		s := must.Get(OpenOrWait(t.Context(), open, slog.New(slog.DiscardHandler), func(err error) { t.Errorf("failed: %v", err) }))(t)
		time.Sleep(time.Second)
		must.Do(t, s.Close())
	})
}
