package sequencer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
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

var errRefused = errors.New("connection refused")

func one(t *testing.T, q *sequencer.Sequencer) {
	t.Helper()
	must.Get(q.Next(t.Context()))(t)
}

// TestOutageIsLogged: a member whose store is unreachable logs that once, when
// its window ends, and when the store is back, though no ID is requested
// meanwhile. TestOutageLaw in grant has what is logged, and when.
func TestOutageIsLogged(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := &failingStore{Store: new(memstore.Store), hangs: hangs}
			q := open(t, s, &sequencer.Options{
				Layout: layout, Window: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			began := time.Now()
			time.Sleep(time.Second)
			one(t, q)
			for round := range 2 { // the same once more
				synctest.Wait()
				log.Reset()
				s.fail(errRefused, errRefused)
				time.Sleep(10 * time.Minute)
				s.fail(nil, nil)
				time.Sleep(15 * time.Second)
				synctest.Wait() // the member logs no more
				got := regexp.MustCompile(`level=(\w+ msg="window [^",]*)`).FindAllStringSubmatch(log.String(), -1)
				want := []string{`WARN msg="window not renewed`, `ERROR msg="window ended`, `INFO msg="window renewed again`}
				if !slices.EqualFunc(got, want, func(m []string, want string) bool { return m[1] == want }) {
					t.Errorf("hangs %t: the log has %q, want %q", hangs, got, want)
				}
				// A request that hangs does not delay what is said of the end.
				end := "time=" + began.Add(time.Minute).Format("2006-01-02T15:04:05")
				if n := q.Stats().Keeper.Expired; round == 0 && (n != 1 || !strings.Contains(log.String(), end)) {
					t.Errorf("hangs %t: %d windows have expired, want 1, at %s:\n%s", hangs, n, end, &log)
				}
				one(t, q)
			}
			closeIt(t, q)
		})
	}
}
