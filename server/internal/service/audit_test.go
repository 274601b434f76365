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
	"github.com/firnid/firn/server/internal/service"
)

// A trap is a store in whose at-th request the client leaves, or the store fails
// from then on.
type trap struct {
	grant.Store
	at, n int
	how   string
	leave context.CancelFunc
}

var errTrap = errors.New("connection reset")

// trips reports whether a request fails, and whether it is done before that.
func (s *trap) trips() (fails, done bool, err error) {
	if s.n++; s.at == 0 || s.n < s.at || s.n > s.at && strings.HasPrefix(s.how, "client") {
		return false, false, nil
	}
	if strings.HasPrefix(s.how, "client") {
		s.leave()
	}
	return true, strings.HasSuffix(s.how, "after"), errTrap
}

func (s *trap) Get(ctx context.Context, key string) ([]byte, error) {
	if fails, _, err := s.trips(); fails {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

func (s *trap) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	if fails, _, err := s.trips(); fails {
		return err
	}
	return s.Store.List(ctx, prefix, yield)
}

func (s *trap) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	fails, done, err := s.trips()
	switch {
	case fails && strings.HasSuffix(s.how, "unsent"):
		return false, fmt.Errorf("%w: %w", grant.ErrNotSent, err)
	case fails && !done:
		return false, err
	}
	applied, e := s.Store.CAS(ctx, key, old, next)
	if fails {
		return false, err
	}
	return applied, e
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
		{"created", 0, grant.Attached, grant.Attached, func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) {
			return a.Create(ctx, "orders", a.Configure(firn.Default(), nil))
		}},
		{"attached", grant.Detached, grant.Attached, grant.Attached, func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) { return a.Attach(ctx, "orders") }},
		{"detached", grant.Attached, grant.Detaching, grant.Detached, func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) { return a.Detach(ctx, "orders") }},
		{"destroyed", grant.Attached, grant.Destroying, grant.Destroyed, func(ctx context.Context, a *service.StoreAdmin) (grant.Info, error) { return a.Destroy(ctx, "orders") }},
	}
	seen := make(map[string]int)
	for _, change := range changes {
		for _, how := range []string{"client before", "client after", "client unsent", "store before", "store after", "store unsent"} {
			for at := 1; ; at++ {
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
					s := &trap{Store: mem, at: at, how: how, leave: leave}
					admin := service.NewStoreAdmin(s, nil).By(service.Client{Name: "ops"}, slog.New(slog.NewTextHandler(&log, nil)))
					_, err := change.do(ctx, admin)
					s.at = 0
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
					missed = s.n < at
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
