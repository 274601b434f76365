package grant_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// TestLastChange: after each operation, the record says which it was, who did
// it and when. Repeating an operation that changes nothing replaces nothing, and
// neither does continuing one.
func TestLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := new(memstore.Store), new(memstore.Store)
		clock := func() time.Time { return now }
		o := at(now)
		admin := func(do func(context.Context, grant.Store, string, *grant.AdminOptions) (grant.Info, error)) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := do(ctx, s, "s", o)
				return err
			}
		}
		simple := func(do func(context.Context, grant.Store, string) (grant.Info, error)) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := do(ctx, s, "s")
				return err
			}
		}
		blocked := strings.Replace(node("held", "o", now.AddDate(1, 0, 0), now.AddDate(1, 0, 0)), `}`,
			fmt.Sprintf(`,"gap":[%d,%d]}`, now.UnixMilli(), now.AddDate(1, 0, -1).UnixMilli()), 1)
		var want grant.Change
		for i, op := range []struct {
			what    string
			changes bool
			do      func(context.Context) error
		}{
			{"create", true, func(ctx context.Context) error {
				_, err := grant.Create(ctx, s, "s", config("default"), o)
				return err
			}},
			{"create", false, func(ctx context.Context) error {
				_, err := grant.Create(ctx, s, "s", config("default"), o)
				return err
			}},
			{"window", true, func(ctx context.Context) error {
				_, err := grant.SetWindow(ctx, s, "s", time.Minute)
				return err
			}},
			{"window", false, func(ctx context.Context) error {
				_, err := grant.SetWindow(ctx, s, "s", time.Minute)
				return err
			}},
			{"nodes", true, func(ctx context.Context) error {
				_, err := grant.SetNodes(ctx, s, "s", &grant.Range{Hi: 511}, o)
				return err
			}},
			{"nodes", false, func(ctx context.Context) error {
				_, err := grant.SetNodes(ctx, s, "s", &grant.Range{Hi: 511}, o)
				return err
			}},
			{"repair", true, func(ctx context.Context) error {
				put(t, s, "v1/s/n/0007", blocked)
				_, err := grant.Repair(ctx, s, "s", &grant.AdminOptions{Now: clock})
				return err
			}},
			{"repair", false, func(ctx context.Context) error {
				_, err := grant.Repair(ctx, s, "s", &grant.AdminOptions{Now: clock})
				return err
			}},
			{"fence", true, func(ctx context.Context) error {
				_, err := grant.Fence(ctx, s, "s", &grant.AdminOptions{Now: clock, AnyClock: true})
				return err
			}},
			{"detach", true, func(ctx context.Context) error { // and leaves before it is done
				put(t, s, "v1/s/n/0008", node("held", "o", now.Add(time.Minute), now))
				left, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if _, err := grant.Detach(left, s, "s", o); !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("detach while a node ID is held: %w", err)
				}
				return nil
			}},
			{"detach", false, func(ctx context.Context) error {
				o = at(now.Add(time.Hour))
				_, err := grant.Detach(ctx, s, "s", o)
				return err
			}},
			{"attach", true, simple(grant.Attach)},
			{"attach", false, simple(grant.Attach)},
			{"move", true, func(ctx context.Context) error {
				from, to := grant.Place{Store: s, URL: "dir:/a"}, grant.Place{Store: there, URL: "dir:/b"}
				_, err := grant.Move(ctx, "s", from, to, o)
				s, there = there, s
				return err
			}},
			{"destroy", true, admin(grant.Destroy)},
			{"destroy", false, admin(grant.Destroy)},
			{"purge", true, simple(grant.Purge)},
			{"purge", false, simple(grant.Purge)},
			{"create", true, func(ctx context.Context) error {
				_, err := grant.Create(ctx, s, "s", config("hazelcast"), o)
				return err
			}},
		} {
			time.Sleep(time.Minute)
			by := fmt.Sprint("operator-", i)
			if op.changes {
				want = grant.Change{What: op.what, By: by, At: time.Now().UTC()}
			}
			if err := op.do(grant.WithOperator(t.Context(), by)); err != nil {
				t.Fatalf("%d, %s: %v", i, op.what, err)
			}
			for _, s := range []*memstore.Store{s, there} {
				if info, err := grant.Lookup(t.Context(), s, "s"); err == nil && info.LastChange != want && (s != there || op.what == "move") {
					t.Errorf("%d, %s: the last change is %+v, want %+v", i, op.what, info.LastChange, want)
				}
			}
		}
		// Names of any text are cut, so that the record can be written and read.
		for by, want := range map[string]string{strings.Repeat("ä", 40): strings.Repeat("ä", 32), "\xff!": "?!"} {
			info, err := grant.SetWindow(grant.WithOperator(t.Context(), by), s, "s", time.Duration(100+len(by))*time.Second)
			if err == nil {
				info, err = grant.Lookup(t.Context(), s, "s")
			}
			if err != nil || info.LastChange.By != want {
				t.Errorf("by %q: %q, %v, want %q", by, info.LastChange.By, err, want)
			}
		}
	})
}
