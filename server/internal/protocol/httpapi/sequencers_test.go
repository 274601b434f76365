package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// TestAdmin: the whole life of a sequencer over HTTP.
func TestAdmin(t *testing.T) {
	store := new(memstore.Store)
	h := handlerOn(t, store, service.Front{RequestTimeout: 2 * time.Second})
	const path = "/v1/sequencers/orders"
	wantProblem(t, do(h, "GET", path), service.NoSequencer, "sequencer orders not found")
	wantProblem(t, do(h, "POST", path+"/attach"), service.NoSequencer)
	for _, row := range []struct {
		body, text string
	}{
		{`{"layuot":"default"}`, "must be a JSON object whose keys are layout, max_ahead"},
		{`{"layout":"default,even=11"}`, `even is "11", not a number from 0 to 10`},
		{`{"layout":"default","max_ahead":"fast"}`, "max_ahead"},
		{`{"window":5}`, "must be a JSON object"},
		{`{}{}`, "must be a JSON object"},
		{`{}}`, "must be a JSON object"},
		{`[]`, "must be a JSON object"},
		{`x`, "must be a JSON object"},
		{`{"layout":"default"`, "must be a JSON object"},
		{strings.Repeat(" ", service.DefaultBody+1), "larger than"},
	} {
		p := wantProblem(t, nettest.Ask(h, "PUT", path, row.body), service.BadBody, row.text)
		for _, internal := range []string{"unmarshal", "Go ", "struct", "json:", "EOF", "invalid character"} {
			if strings.Contains(p.Detail, internal) {
				t.Errorf("%s: %q has words of the program's", row.body, p.Detail)
			}
		}
	}
	wantProblem(t, do(h, "GET", path), service.NoSequencer) // none of these has created it

	want := func(w *httptest.ResponseRecorder, status int, state string) {
		t.Helper()
		var got SequencerJSON
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != status || got.State != state || got.Name != "orders" || got.Layout != "hazelcast" || got.Window != "45s" {
			t.Errorf("status %d and %s (%v), want %d and the state %s", w.Code, w.Body, err, status, state)
		}
	}
	const body = `{"layout":"hazelcast","window":"45s"}`
	want(nettest.Ask(h, "PUT", path, body), 201, "attached")
	want(nettest.Ask(h, "PUT", path, body), 200, "attached")
	want(nettest.Ask(h, "PUT", path, `{"prefix":"",`+body[1:]), 200, "attached") // from a client that sends all fields
	wantProblem(t, nettest.Ask(h, "PUT", path, ""), service.Different, "layout")
	if w := do(h, "POST", path+"/next?count=10"); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var shown struct{ Nodes []struct{ Held bool } }
	if err := json.Unmarshal(do(h, "GET", path).Body.Bytes(), &shown); err != nil || len(shown.Nodes) != 1 || !shown.Nodes[0].Held {
		t.Errorf("%+v, %v, want one node ID that is held", shown, err)
	}
	want(do(h, "POST", path+"/detach"), 200, "detached")
	wantProblem(t, do(h, "POST", path+"/next"), service.Detached)
	want(do(h, "POST", path+"/attach"), 200, "attached")
	must.Await(t, func() bool { return do(h, "POST", path+"/next").Code == 200 }, "an ID after attach")
	want(do(h, "DELETE", path), 200, "destroyed")
	wantProblem(t, do(h, "POST", path+"/next"), service.Destroyed)
	want(nettest.Ask(h, "PUT", path, body), 201, "attached")
	if w := do(h, "GET", "/v1/sequencers"); w.Code != 200 || !strings.Contains(w.Body.String(), `"name":"orders"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wantProblem(t, do(h, "DELETE", path, "Origin: http://evil.example"), service.CrossSite)
}

// TestKeptRange: a purged sequencer whose range the new layout does not have
// exists with other settings; the store is not at fault.
func TestKeptRange(t *testing.T) {
	ctx, store := t.Context(), new(memstore.Store)
	h := handlerOn(t, store, service.Front{})
	c := grant.DefaultConfig(store, firn.Default(), nil)
	c.Nodes = &grant.NodeRange{Lo: 40, Hi: 50}
	must.Get(grant.Create(ctx, store, "orders", c, nil))(t)
	must.Get(grant.Destroy(ctx, store, "orders", nil))(t)
	must.Get(grant.Purge(ctx, store, "orders"))(t)
	wantProblem(t, nettest.Ask(h, "PUT", "/v1/sequencers/orders", `{"layout":"bits=time:42.node:5.seq:16"}`), service.Different,
		"keeps the node IDs 40..50")
}

// TestEmptyLater: detaching waits for what another process holds, up to the
// limit of a request, and then answers 202.
func TestEmptyLater(t *testing.T) { synctest.Test(t, testEmptyLater) }

func testEmptyLater(t *testing.T) {
	time.Sleep(time.Until(day))
	cut := newFlaky()
	q := must.Get(sequencer.Open(t.Context(), cut, "orders", &sequencer.Options{Layout: firn.Default()}))(t)
	defer func() {
		cut.Cut.Store(false)
		_ = q.Close(context.Background())
	}()
	cut.Cut.Store(true) // it does not see what follows
	h := handlerOn(t, cut.Store, service.Front{RequestTimeout: 100 * time.Millisecond})
	for _, path := range []string{"POST /v1/sequencers/orders/detach", "DELETE /v1/sequencers/orders"} {
		method, target, _ := strings.Cut(path, " ")
		if w := do(h, method, target); w.Code != http.StatusAccepted || !strings.Contains(w.Body.String(), `ing"`) {
			t.Errorf("%s: %d %s, want 202", path, w.Code, w.Body)
		}
	}
}

// TestEmptyNotBegun: if the store takes no writes, nothing was begun, and the
// answer is not 202.
func TestEmptyNotBegun(t *testing.T) {
	for _, state := range []string{"attached", "detached"} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(27 * 365 * 24 * time.Hour)
			var hangs atomic.Bool // writes
			m := &faultstore.Store{Store: new(memstore.Store)}
			m.Fault = func(ctx context.Context, r faultstore.Request) error {
				if r.Kind == grant.RequestCAS && hangs.Load() {
					<-ctx.Done()
					return ctx.Err()
				}
				return r.Do()
			}
			h := handlerOn(t, m, service.Front{RequestTimeout: time.Second})
			paths := []string{"DELETE /v1/sequencers/orders", "POST /v1/sequencers/orders/detach"}
			if w := do(h, "PUT", "/v1/sequencers/orders"); w.Code != 201 {
				t.Fatal(w.Code, w.Body)
			}
			if state == "detached" {
				if w := do(h, "POST", "/v1/sequencers/orders/detach"); w.Code != 200 {
					t.Fatal(w.Code, w.Body)
				}
				paths = paths[:1]
			}
			hangs.Store(true)
			for _, path := range paths {
				method, target, _ := strings.Cut(path, " ")
				w := do(h, method, target)
				wantProblem(t, w, service.StoreUnavailable)
				if w.Header().Get("Retry-After") != "1" {
					t.Errorf("%s of one that is %s: %s", path, state, w.Header())
				}
			}
			hangs.Store(false)
			for _, path := range paths {
				method, target, _ := strings.Cut(path, " ")
				if w := do(h, method, target); w.Code != 200 {
					t.Errorf("%s of one that is %s: %d %s, want 200", path, state, w.Code, w.Body)
				}
				do(h, "PUT", "/v1/sequencers/orders")
			}
		})
	}
}

// A nameGuard lets every client request lists, and see some sequencers.
type nameGuard []string

func (g nameGuard) Allow(_ *auth.Credentials, do auth.Action, name string) error {
	if do == auth.See && (name == "" || slices.Contains(g, name)) {
		return nil
	}
	return auth.ErrForbidden
}

// TestListsShowWhatCallerMaySee: lists have only the sequencers that the caller
// may see, and metrics, which have all, need a caller who may see all.
func TestListsShowWhatCallerMaySee(t *testing.T) {
	store := new(memstore.Store)
	backend := servicetest.NewStoreBackend(t, store, service.StoreBackendConfig{})
	h := NewHandler(Config{Front: service.Front{Backend: backend}})
	held := []members.Held{{Sequencer: "orders"}, {Sequencer: "users"}, {Sequencer: "carts"}}
	for _, m := range held {
		if w := nettest.Ask(h, "PUT", "/v1/sequencers/"+m.Sequencer, ""); w.Code != 201 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	a := members.New(store, members.Options{})
	go func() {
		a.Run(ctx, func() members.Server { return members.Server{Host: "h1", Holds: held} })
		close(done)
	}()
	t.Cleanup(func() { cancel(); <-done })
	must.Await(t, func() bool { return strings.Contains(do(h, "GET", "/v1/members").Body.String(), `"host":"h1"`) }, "the member is listed")
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "all") })
	for _, row := range []struct {
		g    auth.Authorizer
		want string // over every protocol, because service.Front has the rule
	}{{nil, "carts orders users"}, {nameGuard{"orders", "nowhere"}, "orders"}, {nameGuard{"users", "carts"}, "carts users"}, {nameGuard{}, ""}} {
		h := NewHandler(Config{Front: service.Front{Backend: backend, Auth: row.g}, Metrics: metrics})
		var list struct{ Sequencers []struct{ Name string } }
		must.Do(t, json.Unmarshal(do(h, "GET", "/v1/sequencers").Body.Bytes(), &list))
		var names []string
		for _, q := range list.Sequencers {
			names = append(names, q.Name)
		}
		if got := strings.Join(names, " "); got != row.want {
			t.Errorf("%v sees the sequencers %q, want %q", row.g, got, row.want)
		}
		var there struct{ Members []members.Server }
		if err := json.Unmarshal(do(h, "GET", "/v1/members").Body.Bytes(), &there); err != nil || len(there.Members) != 1 {
			t.Fatalf("%+v, %v, want one member", there, err)
		}
		names = nil
		for _, held := range there.Members[0].Holds {
			names = append(names, held.Sequencer)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != row.want {
			t.Errorf("%v sees that the member holds %q, want %q", row.g, got, row.want)
		}
		if w := do(h, "GET", "/metrics"); (w.Code == 200) != (row.g == nil) {
			t.Errorf("%v and /metrics: %d %s", row.g, w.Code, w.Body)
		}
	}
}

// A roleGuard knows tokens made of a role and a name.
type roleGuard struct{}

func (roleGuard) Allow(c *auth.Credentials, do auth.Action, name string) error {
	switch {
	case !c.Given:
		return auth.ErrUnauthorized
	case c.Token == fmt.Sprint(int(do)) || c.Token == fmt.Sprint(int(do))+name:
		return nil
	}
	return auth.ErrForbidden
}

// TestGuard: each path requires its action, and nothing happens without it.
func TestGuard(t *testing.T) {
	store := new(memstore.Store)
	h := handlerOn(t, store, service.Front{Auth: roleGuard{}})
	for _, row := range []struct {
		method, path string
		need         auth.Action
	}{
		{"GET", "/", auth.Nothing},
		{"GET", "/healthz", auth.Nothing},
		{"GET", "/readyz", auth.Nothing},
		{"GET", "/v1/inspect/1", auth.Inspect},
		{"GET", "/v1/sequencers", auth.See},
		{"GET", "/v1/members", auth.See},
		{"PUT", "/v1/sequencers/orders", auth.Change},
		{"GET", "/v1/sequencers/orders", auth.See},
		{"POST", "/v1/sequencers/orders/next", auth.Take},
		{"GET", "/v1/sequencers/orders/next", auth.Take},
		{"POST", "/v1/sequencers/orders/attach", auth.Change},
		{"POST", "/v1/sequencers/orders/detach", auth.Change},
		{"DELETE", "/v1/sequencers/orders", auth.Change},
	} {
		for need := auth.Nothing; need <= auth.Change; need++ {
			w := do(h, row.method, row.path, fmt.Sprintf("Authorization: Bearer %d", need))
			if row.need != auth.Nothing && need != row.need {
				wantProblem(t, w, service.Forbidden)
			} else if w.Code >= 300 {
				t.Errorf("%s %s with what it needs: %d %s", row.method, row.path, w.Code, w.Body)
			}
		}
		if row.need != auth.Nothing {
			w := do(h, row.method, row.path)
			wantProblem(t, w, service.Unauthorized, "Bearer")
			if w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: no WWW-Authenticate", row.method, row.path)
			}
		}
	}
}
