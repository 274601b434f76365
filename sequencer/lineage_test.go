package sequencer_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/replicated"
	"github.com/firnid/firn/sequencer"
)

// lineageStore has a lineage, and delays it and writes.
type lineageStore struct {
	*memstore.Store
	mu       sync.Mutex // guards the fields below
	identity string
	says     time.Duration // how long Lineage takes
	writes   time.Duration // how long a write takes
	asked    int
}

// is sets the lineage and the delays from now on, and returns how often Lineage
// was called since the last call of is.
func (s *lineageStore) is(identity string, says, writes time.Duration) (asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, s.asked = s.asked, 0
	s.identity, s.says, s.writes = identity, says, writes
	return asked
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *lineageStore) Lineage(ctx context.Context) (string, int64, error) {
	s.mu.Lock()
	identity, takes := s.identity, s.says
	s.asked++
	s.mu.Unlock()
	return identity, 1, wait(ctx, takes)
}

func (s *lineageStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	s.mu.Lock()
	takes := s.writes
	s.mu.Unlock()
	if err := wait(ctx, takes); err != nil {
		return false, err
	}
	return s.Store.CAS(ctx, key, old, next)
}

// TestLineage: a store is asked for its lineage before a write, once per second
// at most, and a member that learns that the store went back acquires nothing
// more from it.
func TestLineage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)))
		s := &lineageStore{Store: new(memstore.Store), identity: "one"}
		var log lockedBuffer
		q := open(t, s, &sequencer.Config{Layout: firn.Default(), Window: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		use := func(d time.Duration) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
				if _, err := q.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		defer func() { _ = q.Close(t.Context()) }()
		use(2 * time.Second)
		if asked := s.is("one", 0, 0); asked != 1 {
			t.Errorf("it was asked %d times for a number, want once", asked)
		}
		use(10 * time.Minute)
		if asked := s.is("one", 4900*time.Millisecond, 4900*time.Millisecond); asked < 30 || asked > 70 {
			t.Errorf("it was asked %d times for %d renewals and a read of the configuration every 14 to 20 s, want 30 to 70", asked, q.Stats().Keeper.Renewed)
		}

		// Each of the two takes nearly as long as a request may take.
		renewed := q.Stats().Keeper
		use(2 * time.Minute)
		if now := q.Stats().Keeper; now.Renewed-renewed.Renewed < 4 || now.Failed != renewed.Failed {
			t.Errorf("%d renewals, and %d requests have failed, of a store that is slow", now.Renewed-renewed.Renewed, now.Failed-renewed.Failed)
		}
		// Lineage takes longer than a request may take. The next renewal is due
		// after at most 24 s.
		s.is("one", 5100*time.Millisecond, 4900*time.Millisecond)
		use(33 * time.Second)
		if now := q.Stats().Keeper; now.Failed == renewed.Failed || now.Unknown != 0 {
			t.Errorf("%+v of a store that does not return its position: want failures, and none of a write", now)
		}

		s.is("one", 0, 0)
		use(time.Minute) // so that much of a window is left when the store goes back
		log.take()
		s.is("another", 0, 0)
		time.Sleep(2 * time.Second) // longer than an answer serves
		renewed = q.Stats().Keeper
		time.Sleep(28 * time.Second)
		var err error
		for end := time.Now().Add(2 * time.Minute); err == nil && time.Now().Before(end); time.Sleep(time.Second) {
			_, err = q.Next(t.Context())
		}
		if !errors.Is(err, grant.ErrRolledBack) || q.Stats().Keeper.Renewed != renewed.Renewed {
			t.Errorf("%v, and %d renewals in a store that went back: want ErrRolledBack", err, q.Stats().Keeper.Renewed-renewed.Renewed)
		}
		// The last request before the window ends may be one that was not sent.
		lines := log.take()
		for line := range strings.Lines(lines) {
			if !strings.Contains(line, "the store went back to an earlier state") {
				t.Errorf("the reason is not in %s", line)
			}
		}
		if strings.Count(lines, "window not renewed") != 1 {
			t.Errorf("the log says\n%swant once that the window is not renewed", lines)
		}
	})
}

// A lockedBuffer is a log that may be written while it is read.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns what was written since the last call.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

// TestLineageAfterFailover: a store that fails over loses writes that were
// never durable, though it has counted them. Its members continue without a
// fence. They still detect the loss of an applied write.
func TestLineageAfterFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)))
		s := new(replicated.Store)
		at := &movedStore{Store: s}
		var members []*sequencer.Sequencer
		for range 4 {
			members = append(members, open(t, at, &sequencer.Config{Layout: firn.Default(), Window: time.Minute}))
		}
		defer func() {
			for _, q := range members {
				_ = q.Close(t.Context())
			}
		}()
		// use takes IDs, and returns how many members got one in the last
		// second.
		use := func(d time.Duration) (n int) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				n = 0
				next := time.Now().Add(time.Second)
				for _, q := range members {
					if _, err := q.TryNext(); err == nil {
						n++
					}
				}
				time.Sleep(time.Until(next))
			}
			return n
		}
		if n := use(2 * time.Minute); n != 4 {
			t.Fatalf("%d of 4 members make IDs", n)
		}
		for _, lasts := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute} {
			s.StopStandby() // waits end by timeouts
			use(lasts)
			unknown := 0
			for _, q := range members {
				unknown += int(q.Stats().Keeper.Unknown)
			}
			if lasts >= time.Minute && unknown == 0 {
				t.Error("no result was unknown")
			}
			_, written, _ := s.Lineage(t.Context())
			s.Failover()
			if _, kept, _ := s.Lineage(t.Context()); lasts >= time.Minute && kept >= written {
				t.Error("the failover lost nothing")
			}
			if n := use(2 * time.Minute); n != 4 {
				_, err := members[0].TryNext()
				t.Fatalf("after a failover that came %v after the standby was lost, %d of 4 members make IDs: %v", lasts, n, err)
			}
		}
		at.lost.Store(100)
		if n := use(5 * time.Minute); n != 0 {
			t.Errorf("%d of 4 members make IDs in a store that lost applied writes", n)
		}
		for _, q := range members {
			if _, err := q.TryNext(); !errors.Is(err, grant.ErrRolledBack) {
				t.Errorf("%v in a store that lost applied writes, want ErrRolledBack", err)
			}
		}
		at.lost.Store(0)
	})
}

// A movedStore reports that it has lost some of its writes.
type movedStore struct {
	*replicated.Store
	lost atomic.Int64
}

func (s *movedStore) Lineage(ctx context.Context) (string, int64, error) {
	identity, revision, err := s.Store.Lineage(ctx)
	return identity, revision - s.lost.Load(), err
}
