package sequencer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/replicated"
	"github.com/firnid/firn/sequencer"
)

// TestLineageAfterFailover: a store that fails over loses writes that were
// never durable, though it has counted them. Its members continue without a
// fence. They still detect the loss of an applied write.
func TestLineageAfterFailover(t *testing.T) {
	in2026(t, func(t *testing.T) {
		s := new(replicated.Store)
		var lost atomic.Int64
		at := lineageStore{s, func(ctx context.Context) (string, int64, error) {
			identity, revision, err := s.Lineage(ctx)
			return identity, revision - lost.Load(), err
		}}
		var members []*sequencer.Sequencer
		for range 4 {
			members = append(members, open(t, at, &sequencer.Options{Layout: firn.Default(), Window: time.Minute}))
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
		lost.Store(100)
		if n := use(5 * time.Minute); n != 0 {
			t.Errorf("%d of 4 members make IDs in a store that lost applied writes", n)
		}
		for _, q := range members {
			if _, err := q.TryNext(); !errors.Is(err, grant.ErrStoreWentBack) {
				t.Errorf("%v in a store that lost applied writes, want ErrStoreWentBack", err)
			}
		}
		lost.Store(0)
	})
}

// A lineageStore has the lineage that a test says.
type lineageStore struct {
	grant.Store
	lineage func(context.Context) (string, int64, error)
}

func (s lineageStore) Lineage(ctx context.Context) (string, int64, error) { return s.lineage(ctx) }
