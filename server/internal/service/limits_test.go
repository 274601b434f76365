package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
)

// TestTenants: a client is charged for the IDs that it gets and for nothing
// else, is refused with the time to wait, and takes nothing from another.
func TestTenants(t *testing.T) {
	a, hashA := auth.NewToken()
	b, hashB := auth.NewToken()
	set := must.Get(auth.Parse(fmt.Appendf(nil, "tokens:\n- {name: a, role: generate, sha256: %s, rate: 10, burst: 100, max: 60}\n"+
		"- {name: b, role: generate, sha256: %s, rate: 100, request-rate: 50}\n", hashA, hashB), "f"))(t)
	guard := auth.NewGuard(func() *auth.Set { return set }, nil)
	store := new(memstore.Store)
	must.Get(grant.Create(t.Context(), store, "orders", grant.DefaultConfig(store, firn.Default(), nil), nil))(t)
	inStoreBackend(t, StoreBackendConfig{}, store, func(t *testing.T, backend *StoreBackend) {
		backend.config.Options.MustExist = true
		front := Front{Backend: backend, Auth: guard, RequestTimeout: time.Minute}
		take := func(token, name string, q Request) (Kind, time.Duration) {
			creds := &auth.Credentials{Token: token, Given: true}
			must.Do(t, guard.Allow(creds, auth.Take, name))
			if p := front.Take(t.Context(), creds, name, &q, new(Batch)); p != nil {
				return p.Kind, p.Retry
			}
			return NoProblem, 0
		}
		unfit := func(*Sequencer) *Problem { return Problemf(BadParameter, "unfit") }
		for _, step := range []struct {
			what  string
			token string
			name  string
			q     Request
			kind  Kind
			retry time.Duration
		}{
			{"more than max", a, "orders", Request{Count: 61}, BatchTooLarge, 0},
			{"an unknown name", a, "none", Request{Count: 60}, NoSequencer, 0},
			{"an unfit sequencer", a, "orders", Request{Count: 60, Fit: unfit}, BadParameter, 0},
			{"IDs", a, "orders", Request{Count: 60}, NoProblem, 0},
			{"the rest of the burst", a, "orders", Request{Count: 40}, NoProblem, 0},
			{"more", a, "orders", Request{Count: 25}, RateLimited, 2500 * time.Millisecond},
			{"IDs of another", b, "orders", Request{Count: 100}, NoProblem, 0},
		} {
			if kind, retry := take(step.token, step.name, step.q); kind != step.kind || retry != step.retry {
				t.Errorf("%s: %v, retry in %v; want %v, %v", step.what, kind, retry, step.kind, step.retry)
			}
		}
		time.Sleep(2500 * time.Millisecond)
		if kind, _ := take(a, "orders", Request{Count: 25}); kind != NoProblem {
			t.Errorf("after the wait: %v", kind)
		}
		for range 50 { // more requests than it may send, all of which fail
			take(b, "none", Request{Count: 1})
		}
		if kind, _ := take(b, "orders", Request{Count: 1}); kind != RateLimited {
			t.Errorf("request 51 within a second: %v", kind)
		}
		time.Sleep(10 * time.Second)
		creds := &auth.Credentials{Token: a, Given: true}
		must.Do(t, guard.Allow(creds, auth.Take, "orders"))
		if front.Try(t.Context(), creds, "orders", &Request{Count: 50}, new(Batch)) {
			t.Error("several requests of a client with limits are answered as one")
		}
	})
}
