package sequencer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// A failingStore reports no changes, counts requests, and lets reads or writes
// fail as a test wants.
type failingStore struct {
	grant.Store
	mu            sync.Mutex // guards the fields below
	reads, writes error
	hangs         bool // a failing request hangs until its timeout
	requests      int
}

// fail makes reads and writes fail from now on, or succeed again, and returns
// the number of requests so far.
func (s *failingStore) fail(reads, writes error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads, s.writes = reads, writes
	return s.requests
}

// request returns the error of a request. No two texts are equal.
func (s *failingStore) request(ctx context.Context, read bool) error {
	s.mu.Lock()
	err, hangs := s.writes, s.hangs
	if read {
		err = s.reads
	}
	s.requests++
	n := s.requests
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	if hangs {
		<-ctx.Done()
	}
	return fmt.Errorf("127.0.0.1:%d: %w", 40000+n, err)
}

func (s *failingStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.request(ctx, true); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

func (s *failingStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := s.request(ctx, false); err != nil {
		return false, err
	}
	return s.Store.CAS(ctx, key, old, next)
}

// A logRecorder keeps the lines of a log above the level debug.
type logRecorder struct {
	mu    sync.Mutex // guards lines
	lines []line
}

type line struct {
	at    time.Duration // since midnight
	level slog.Level
	text  string
	attrs map[string]any
}

func (*logRecorder) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (l *logRecorder) WithAttrs([]slog.Attr) slog.Handler         { return l }
func (l *logRecorder) WithGroup(string) slog.Handler              { return l }

func (l *logRecorder) Handle(_ context.Context, r slog.Record) error {
	at := line{at: r.Time.Sub(midnight), level: r.Level, text: r.Message, attrs: make(map[string]any)}
	r.Attrs(func(a slog.Attr) bool {
		at.attrs[a.Key] = a.Value.Any()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, at)
	return nil
}

// about returns the lines about windows, and others of the same severity, since
// the last call.
func (l *logRecorder) about() (lines []line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.lines {
		if at.level >= slog.LevelWarn || strings.Contains(at.text, "window") {
			lines = append(lines, at)
		}
	}
	l.lines = nil
	return lines
}

var midnight = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

const (
	notRenewed   = "window not renewed, serving until it ends"
	windowEnded  = "window ended, no IDs until it is renewed"
	renewedAgain = "window renewed again"
)

var errRefused = errors.New("connection refused")

// outages runs f with a member whose window is a minute long, began at
// midnight, and is unused.
func outages(t *testing.T, f func(t *testing.T, s *failingStore, l *logRecorder, q *sequencer.Sequencer)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(midnight))
		s, l := &failingStore{Store: new(memstore.Store)}, new(logRecorder)
		q := open(t, s, &sequencer.Options{Layout: layout, Window: time.Minute, Member: grant.Member{Logger: slog.New(l)}})
		defer func() {
			s.fail(nil, nil)
			_ = q.Close(context.Background())
		}()
		f(t, s, l, q)
	})
}

func one(t *testing.T, q *sequencer.Sequencer) {
	t.Helper()
	if _, err := q.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// texts expects lines with exactly these texts, in this order.
func texts(t *testing.T, lines []line, want ...string) {
	t.Helper()
	ok := len(lines) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = lines[i].text == want[i]
	}
	if !ok {
		t.Fatalf("the log has %+v, want %q", lines, want)
	}
}

// TestOutageIsLogged: a member whose store is unreachable logs it, with the
// time that is left, when its window ends, and when the store is back. No ID is
// requested meanwhile.
func TestOutageIsLogged(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprintf("hangs=%t", hangs), func(t *testing.T) {
			outages(t, func(t *testing.T, s *failingStore, l *logRecorder, q *sequencer.Sequencer) {
				s.hangs = hangs
				time.Sleep(time.Second)
				one(t, q)
				s.fail(errRefused, errRefused)
				time.Sleep(10 * time.Minute)
				lines := l.about()
				texts(t, lines, notRenewed, windowEnded)
				warned, ended := lines[0], lines[1]
				// Renewals begin when between a fifth and four fifteenths of a
				// minute have been used, and a request may take 5 s.
				if warned.level != slog.LevelWarn || warned.at < 16*time.Second || warned.at > 34*time.Second {
					t.Errorf("%v at %v, want a warning at 16 to 34 s", warned.level, warned.at)
				}
				if left, want := warned.attrs["left"], (time.Minute - warned.at).Truncate(time.Millisecond); left != want.String() {
					t.Errorf("left=%v at %v, want %v", left, warned.at, want)
				}
				if until, _ := warned.attrs["until"].(time.Time); !until.Equal(midnight.Add(time.Minute)) {
					t.Errorf("until=%v, want a minute after midnight", warned.attrs["until"])
				}
				if err, _ := warned.attrs["error"].(error); !errors.Is(err, errRefused) {
					t.Errorf("error=%v, want %v", err, errRefused)
				}
				if ended.level != slog.LevelError || ended.at != time.Minute {
					t.Errorf("%v at %v, want an error when the window ends, at 1m", ended.level, ended.at)
				}
				if n := q.Stats().Keeper.Expired; n != 1 {
					t.Errorf("%d windows have expired, want 1", n)
				}

				s.fail(nil, nil)
				time.Sleep(15 * time.Second)
				lines = l.about()
				texts(t, lines, renewedAgain)
				if after, want := lines[0].attrs["after"], (lines[0].at - warned.at).Round(time.Millisecond); after != want.String() || lines[0].level != slog.LevelInfo {
					t.Errorf("%v after=%v, want INFO, %v", lines[0].level, after, want)
				}
				one(t, q)

				// The same once more.
				s.fail(errRefused, errRefused)
				time.Sleep(10 * time.Minute)
				texts(t, l.about(), notRenewed, windowEnded)
			})
		})
	}
}
