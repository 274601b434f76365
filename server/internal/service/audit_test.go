package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/server/internal/service"
)

var errTrap = errors.New("connection reset")

// trap returns a store in whose at-th request the client leaves, or the store
// fails from then on.
func trap(s grant.Store, at int64, how string, leave context.CancelFunc) *faultstore.Store {
	f := &faultstore.Store{Store: s}
	f.Fault = func(_ context.Context, r faultstore.Request) error {
		client, n := strings.HasPrefix(how, "client"), f.Requests.Load()
		switch {
		case n < at, n > at && client:
			return r.Do()
		case client:
			leave()
		}
		switch {
		case r.Kind == grant.RequestCAS && strings.HasSuffix(how, "unsent"):
			return grant.NotSent(errTrap)
		case r.Kind == grant.RequestCAS && strings.HasSuffix(how, "after"):
			_ = r.Do()
		}
		return errTrap
	}
	return f
}

// TestAuditSaysWhatHappened: the result in the audit line agrees with the store,
// whenever the client leaves or the store fails, and however.
func TestAuditSaysWhatHappened(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	changes := []struct {
		name                  string
		before, through, last grant.State
		do                    func(context.Context, *service.StoreAdmin) (grant.Info, error)
	}{
		{"create", 0, grant.Attached, grant.Attached, func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) {
			return a.Create(ctx, "orders", grant.DefaultConfig(a.Store(), firn.Default(), nil))
		}},
		{"attach", grant.Detached, grant.Attached, grant.Attached, func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) { return a.Attach(ctx, "orders") }},
		{"detach", grant.Attached, grant.Detaching, grant.Detached, func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) { return a.Detach(ctx, "orders") }},
		{"destroy", grant.Attached, grant.Destroying, grant.Destroyed, func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) { return a.Destroy(ctx, "orders") }},
	}
	seen := make(map[string]int)
	for _, change := range changes {
		for _, how := range []string{"client before", "client after", "client unsent", "store before", "store after", "store unsent"} {
			for at := int64(1); ; at++ {
				missed := false
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Until(start))
					mem := new(memstore.Store)
					if change.before != 0 {
						_, err := grant.Create(t.Context(), mem, "orders", grant.DefaultConfig(mem, firn.Default(), nil), nil)
						if err == nil && change.before == grant.Detached {
							_, err = grant.Detach(t.Context(), mem, "orders", nil)
						} else if err == nil {
							held := fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o","until":%d,"wall":%d,"state":"held","host":"h"}`, start.Add(time.Minute).UnixMilli(), start.UnixMilli())
							_, err = mem.CAS(t.Context(), "v1/orders/n/0007", nil, []byte(held))
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
					defer leave()
					var log bytes.Buffer
					s := trap(mem, at, how, leave)
					admin := service.NewStoreAdmin(s, nil).By(service.Client{Name: "ops"}, slog.New(slog.NewTextHandler(&log, nil)))
					_, err := change.do(ctx, admin)
					_, result, _ := strings.Cut(log.String(), "result=")
					result, _, _ = strings.Cut(result, " ")
					info, lookup := grant.Lookup(t.Context(), mem, "orders")
					if lookup != nil && !errors.Is(lookup, grant.ErrNotFound) {
						t.Fatal(lookup)
					}
					seen[result]++
					right := false
					switch state := info.State; result {
					case "done":
						right = err == nil && state == change.last
					case "pending":
						right = err != nil && (state == change.through || state == change.last)
					case "failed":
						right = err != nil && state == change.before
					case "unknown":
						right = err != nil
					}
					if !right {
						t.Errorf("%s, %s in request %d: result=%s, and it is %v (%v)", change.name, how, at, result, info.State, err)
					}
					missed = s.Requests.Load() < at
				})
				if missed || at > 60 {
					break
				}
			}
		}
	}
	for _, result := range []string{"done", "pending", "failed", "unknown"} {
		if seen[result] == 0 {
			t.Errorf("no change had the result %s: %v", result, seen)
		}
	}
	t.Logf("report: audit: changes by result: %v", seen)
}
