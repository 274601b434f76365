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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
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

// TestOperatorsAreNoOutage: what an operator does to a sequencer in use counts
// neither as a node ID that another member took over nor as a window that could
// not be renewed. Both page an operator.
func TestOperatorsAreNoOutage(t *testing.T) {
	config := grant.DefaultConfig(new(memstore.Store), layout, nil)
	seven := &grant.NodeRange{Lo: 7, Hi: 7}
	damage := func(ctx context.Context, s grant.Store) error {
		var key string
		var old []byte
		err := s.List(ctx, "v1/orders/n/", func(k string, value []byte) bool {
			key, old = k, bytes.Clone(value)
			return true
		})
		_, failed := s.CAS(ctx, key, old, []byte("damaged"))
		time.Sleep(30 * time.Second) // until a renewal has found it
		return errors.Join(err, failed)
	}
	detach := func(ctx context.Context, s grant.Store) error {
		_, err := grant.Detach(ctx, s, "orders", nil)
		return err
	}
	otherNodes := func(ctx context.Context, s grant.Store) error {
		_, err := grant.SetNodes(ctx, s, "orders", &grant.NodeRange{Lo: 8, Hi: 9}, nil)
		return err
	}
	for _, tt := range []struct {
		name  string
		nodes *grant.NodeRange // that the member may take
		do    func(ctx context.Context, s grant.Store) error
		want  error
	}{
		{"fence", nil, func(ctx context.Context, s grant.Store) error {
			_, err := grant.Fence(ctx, s, "orders", &grant.FenceOptions{LongestWindow: time.Minute})
			return err
		}, nil},
		{"detach", nil, detach, nil},
		{"destroy and create", nil, func(ctx context.Context, s grant.Store) error {
			_, err := grant.Destroy(ctx, s, "orders", nil)
			time.Sleep(2 * time.Minute)
			_, again := grant.Create(ctx, s, "orders", config, nil)
			return errors.Join(err, again)
		}, nil},
		{"move", nil, func(ctx context.Context, s grant.Store) error {
			_, err := grant.Move(ctx, grant.Place{Store: s, URL: "a:"}, grant.Place{Store: new(memstore.Store), URL: "b:"}, "orders", nil)
			return err
		}, nil},
		{"other node IDs", seven, otherNodes, nil},
		{"damaged record", &grant.NodeRange{Lo: 7, Hi: 9}, damage, nil},
		{"damaged record and detach", seven, func(ctx context.Context, s grant.Store) error {
			return errors.Join(damage(ctx, s), detach(ctx, s))
		}, nil},
		{"damaged record and other node IDs", seven, func(ctx context.Context, s grant.Store) error {
			return errors.Join(damage(ctx, s), otherNodes(ctx, s))
		}, grant.ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(memstore.Store)
				q := open(t, s, &sequencer.Options{Layout: layout, Window: time.Minute, Nodes: tt.nodes})
				ctx, end := context.WithCancel(t.Context())
				var use sync.WaitGroup
				use.Go(func() {
					for ctx.Err() == nil {
						_, _ = q.TryNext() // refused or not
						time.Sleep(100 * time.Millisecond)
					}
				})
				time.Sleep(time.Second)
				if err := tt.do(t.Context(), s); !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				time.Sleep(5 * time.Minute)
				end()
				use.Wait()
				if got := q.Stats().Keeper; got.Lost != 0 || got.Expired != 0 {
					t.Errorf("%d node IDs lost and %d windows expired, want none", got.Lost, got.Expired)
				}
				_ = q.Close(t.Context()) // it may have nothing to give back
			})
		})
	}
}

// TestTakenOverCounts: a member that made no IDs for longer than its window,
// and whose node ID another member took meanwhile, lost it.
func TestTakenOverCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s grant.Store) {
		q := open(t, s, &sequencer.Options{Layout: layout, Window: time.Minute})
		node := q.Status().Node
		time.Sleep(2 * time.Minute)
		other := open(t, s, &sequencer.Options{Layout: layout, Nodes: &grant.NodeRange{Lo: node, Hi: node}})
		one(t, q)
		if got := q.Stats().Keeper; got.Lost != 1 || got.Expired != 0 || got.Alarms[grant.AlarmTakenOver] != 1 {
			t.Errorf("%+v, want 1 node ID lost, 1 alarm, and no window expired", got)
		}
		closeIt(t, q)
		closeIt(t, other)
	})
}
