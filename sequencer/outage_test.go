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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

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
			var away atomic.Bool
			s := &faultstore.Store{Store: new(memstore.Store)}
			s.Fault = func(ctx context.Context, r faultstore.Request) error {
				if !away.Load() {
					return r.Do()
				}
				if hangs {
					<-ctx.Done()
				}
				return fmt.Errorf("127.0.0.1:%d: %w", 40000+s.Requests.Load(), errRefused) // no two texts are equal
			}
			q := open(t, s, &sequencer.Options{
				Layout: layout, Window: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			began := time.Now()
			time.Sleep(time.Second)
			one(t, q)
			for round := range 2 { // the same once more
				synctest.Wait()
				log.Reset()
				away.Store(true)
				time.Sleep(10 * time.Minute)
				away.Store(false)
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
