package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// fullStore is a Store with a clock, and with nothing else that is optional.
type fullStore struct {
	grant.Store
	closed bool
}

func (s *fullStore) Time(context.Context) (time.Time, time.Duration, error) {
	return time.Now(), time.Millisecond, nil
}

func (s *fullStore) Window() time.Duration { return 7 * time.Minute }

func (s *fullStore) Close() error {
	s.closed = true
	return s.Store.Close()
}

var errDown = &Error{Err: errors.New("the store is down"), Hint: "start it", Unreachable: true}

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
		s, err := OpenOrWait(t.Context(), open, slog.New(slog.NewTextHandler(&log, nil)), func(err error) { t.Errorf("failed: %v", err) })
		if err != nil {
			t.Fatal(err)
		}
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
		if w, ok := s.(interface{ Window() time.Duration }); !ok || w.Window() != 7*time.Minute {
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

// TestWaitFails: what does not mend by itself ends the wait, at once or later.
func TestWaitFails(t *testing.T) {
	refused := &Error{Err: errors.New("wrong password")}
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
		s, err := OpenOrWait(t.Context(), open, slog.New(slog.DiscardHandler), func(err error) { told = append(told, err) })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(told) != 1 || !errors.Is(told[0], refused) {
			t.Errorf("failed was called with %v, want the wrong password once", told)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
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
		s, err := OpenOrWait(t.Context(), open, slog.New(slog.DiscardHandler), func(err error) { t.Errorf("failed: %v", err) })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestUnreachable: of real errors, those of a store that is down are waited
// for, and those of settings are not.
func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	hangsUp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangsUp.Close()
	go func() {
		for {
			c, err := hangsUp.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	for url, want := range map[string]bool{
		"etcd://" + nobody + "/firn?timeout=200ms":                     true,
		"etcd://" + hangsUp.Addr().String() + "/firn?timeout=200ms":    true,
		"etcd://no-such-host.invalid/firn?timeout=200ms":               true,
		"postgres://u@" + nobody + "/firn?timeout=1s":                  true,
		"postgres://u@" + hangsUp.Addr().String() + "/firn?timeout=1s": true,
		"mysql://u@" + nobody + "/firn?timeout=1s":                     true,
		"mysql://u@" + hangsUp.Addr().String() + "/firn?timeout=1s":    true,
		"etcd://" + nobody + "/firn?colour=red":                        false,
		"postgres://u@" + nobody:                                       false,
		"mysql://u@" + nobody + "/firn?tls=true&ca=/no/such/file":      false,
		"dir:/no/such/directory":                                       false,
		"redis://" + nobody:                                            false,
	} {
		s, err := Open(t.Context(), url, Options{})
		if err == nil {
			s.Close()
			t.Errorf("Open(%q) succeeds", url)
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.Unreachable != want {
			t.Errorf("Open(%q) is an error that is waited for: %v, want %v: %v", url, !want, want, err)
		}
	}
	if isNetwork(io.ErrClosedPipe) {
		t.Error("a closed pipe is taken for a network that may work later")
	}
}
