package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/operate/metrics"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
	"github.com/firnid/firn/veil"
)

// newWorld is a console over a cluster with an empty store, behind the API's
// handler as firn serve has it.
func newWorld(t *testing.T, change func(*Config)) (http.Handler, *Console, *service.StoreBackend) {
	t.Helper()
	return worldOn(t, new(memstore.Store), change)
}

// worldOn is a world on a store.
func worldOn(t *testing.T, store grant.Store, change func(*Config)) (http.Handler, *Console, *service.StoreBackend) {
	t.Helper()
	cluster := servicetest.NewStoreBackend(t, store, service.StoreBackendConfig{})
	c := Config{Front: service.Front{Backend: cluster}, Version: "v9.9.9", Every: time.Hour}
	c.Figures = func() (all []metrics.Sequencer) {
		cluster.Usage(func(name string, q *service.Usage) {
			all = append(all, metrics.Sequencer{Name: name, Stats: q.Stats.Stats})
		})
		return all
	}
	if change != nil {
		change(&c)
	}
	k := New(c)
	t.Cleanup(k.Close)
	return httpapi.NewHandler(httpapi.Config{Front: service.Front{Backend: c.Front.Backend}, Console: k, Metrics: http.NotFoundHandler()}), k, cluster
}

// get asks for a page.
func get(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	return ask(h, "GET", path, nil, headers...)
}

// post sends a form.
func post(h http.Handler, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	return ask(h, "POST", path, form, headers...)
}

// ask asks as a browser does.
func ask(h http.Handler, method, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	if !slices.ContainsFunc(headers, func(header string) bool { return strings.HasPrefix(header, "Accept: ") }) {
		headers = append(headers, "Accept: text/html")
	}
	headers = append(headers, "Content-Type: application/x-www-form-urlencoded")
	return nettest.Ask(h, method, path, form.Encode(), headers...)
}

// paths are all pages of a fleet with one sequencer.
func paths(id string) []string {
	return []string{
		"/", "/members", "/inspect", "/inspect/" + id, "/inspect/" + id + "?layout=default&of=orders&made=1", "/inspect/" + id + "," + id,
		"/inspect/0190163d-8694-739b-aea5-966c26f8ad91", "/inspect/9m4e2mr0ui3e8a215n4g", "/inspect/f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		"/inspect/00000000-0000-0000-0000-000000000000", "/create", "/sequencers/orders", "/sequencers/orders/detach", "/sequencers/orders/destroy",
	}
}

// TestPagesAreStrict: every page comes with a policy, and does nothing that it
// forbids.
func TestPagesAreStrict(t *testing.T) {
	h, k, _ := newWorld(t, nil)
	id := makeOne(t, k, "orders")
	inline := regexp.MustCompile(`(?i)\s(style|on[a-z]+)=|<style|javascript:|<script(?: [a-z]+)*>`)
	foreign := regexp.MustCompile(`(?:src|href|action|content)="(?:[a-z]+:)?//`)
	for _, path := range paths(id) {
		w := get(h, path)
		body := w.Body.String()
		if w.Code != 200 {
			t.Errorf("%s: status %d: %.300s", path, w.Code, body)
		}
		if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") || strings.Contains(got, "unsafe") {
			t.Errorf("%s: Content-Security-Policy = %q", path, got)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control = %q, want no-store", path, got)
		}
		if found := inline.FindString(body); found != "" {
			t.Errorf("%s: %q, which the policy forbids", path, found)
		}
		if found := foreign.FindString(body); found != "" {
			t.Errorf("%s: %q leads elsewhere", path, found)
		}
		if !strings.Contains(body, "<title>") || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
			t.Errorf("%s: the page is not whole", path)
		}
	}
}

// TestBudget: everything that a browser loads is less than 40 kB,
// uncompressed.
func TestBudget(t *testing.T) {
	const budget = 40_000
	h, k, _ := newWorld(t, nil)
	shared := 0
	for _, name := range glob("static/*") {
		shared += get(h, assetDir()+"/"+path.Base(name)).Body.Len()
	}
	most, largest := 0, ""
	for _, path := range paths(makeOne(t, k, "orders")) {
		if n := get(h, path).Body.Len(); n > most {
			most, largest = n, path
		}
	}
	t.Logf("report: console: %d bytes of files and %d of the largest page, %s", shared, most, largest)
	if shared+most > budget {
		t.Errorf("files have %d bytes and %s has %d: %d in all, want at most %d", shared, largest, most, shared+most, budget)
	}
}

func makeOne(t *testing.T, k *Console, name string) string {
	t.Helper()
	s := must.Get(k.front.Backend.Sequencer(t.Context(), name, nil))(t)
	b := must.Get(s.Take(t.Context(), 1))(t)
	f := form.Of(s.Layout.Format())
	return string(b.At(0).Append(nil, &f))
}

// TestAPIGoesFirst: no path of the API is the console's, whatever the client
// accepts.
func TestAPIGoesFirst(t *testing.T) {
	h, _, _ := newWorld(t, nil)
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml", "/v1/sequencers", "/v1/members", "/v1/inspect/1", "/v1/sequencers/orders/next", "/metrics"} {
		if w := get(h, path); w.Header().Get("Content-Security-Policy") != "" {
			t.Errorf("GET %s is the console's", path)
		}
	}
	if w := get(h, "/", "Accept: */*"); !strings.Contains(w.Body.String(), "curl -s") {
		t.Errorf("GET / without text/html: %.100q, want words for a terminal", w.Body)
	}
	if w := get(h, "/nothing", "Accept: application/json"); !strings.Contains(w.Body.String(), "urn:firn:problem:not-found") {
		t.Errorf("GET /nothing for a program: %s", w.Body)
	}
	if w := get(h, "/nothing"); w.Code != 404 || !strings.Contains(w.Body.String(), "Page not found") {
		t.Errorf("GET /nothing for a browser: %d %s", w.Code, w.Body)
	}
	if w := get(h, "/", "Host: evil.example"); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("with a foreign Host: status %d, want 421", w.Code)
	}
}

// TestAssets: files are kept by browsers for good, under a name that changes
// with them.
func TestAssets(t *testing.T) {
	h, _, _ := newWorld(t, nil)
	for name, media := range map[string]string{"console.css": "text/css", "console.js": "text/javascript", "firn.svg": "image/svg+xml"} {
		w := get(h, assetDir()+"/"+name)
		data, _ := files.ReadFile("static/" + name)
		if w.Code != 200 || w.Body.String() != string(data) || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || !strings.HasPrefix(w.Header().Get("Content-Type"), media) {
			t.Errorf("%s: status %d, %d bytes, %s", name, w.Code, w.Body.Len(), w.Header())
		}
	}
	for _, path := range []string{"/console/000000000000/console.css", assetDir() + "/nothing.css"} {
		if w := get(h, path); w.Code != 404 || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, %s, want 404", path, w.Code, w.Header())
		}
	}
}

// tokens are a set with a token of each role, and one for orders alone.
func tokens(t *testing.T) (*auth.Set, map[string]string) {
	t.Helper()
	file, secrets := "tokens:\n", make(map[string]string)
	for _, role := range []string{"generate", "read", "admin", "some"} {
		token, hash := auth.NewToken()
		secrets[role] = token
		r, more := role, ""
		if role == "some" {
			r, more = "admin", "    sequencers: [\"orders\"]\n"
		}
		file += fmt.Sprintf("  - name: a-%s\n    sha256: %s\n    role: %s\n%s", role, hash, r, more)
	}
	set := must.Get(auth.Parse([]byte(file), "tokens.yaml"))(t)
	return set, secrets
}

// signInAs is the cookie of a session with a token.
func signInAs(t *testing.T, h http.Handler, token string) string {
	t.Helper()
	w := post(h, "/sign-in", url.Values{"token": {token}})
	if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) != 1 {
		t.Fatalf("sign in: status %d: %.200s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", c)
	}
	return "Cookie: " + c.Name + "=" + c.Value
}

// TestRights is who may do what, path by path.
func TestRights(t *testing.T) {
	set, secrets := tokens(t)
	h, k, cluster := newWorld(t, func(c *Config) { c.Guard = auth.NewGuard(func() *auth.Set { return set }, nil) })
	for _, name := range []string{"orders", "secret"} {
		must.Get(cluster.Create(t.Context(), name, servicetest.Config(firn.Default())))(t)
	}
	id := makeOne(t, k, "secret")
	const see, in, no = 200, 303, 403
	for _, row := range []struct {
		method, path                        string
		nobody, generate, read, admin, some int
		form                                url.Values
		shows                               string // to those who see it
	}{
		{"GET", "/", in, in, see, see, see, nil, "Sequencers"},
		{"GET", "/members", in, no, see, see, see, nil, "Servers"},
		{"GET", "/inspect/" + id, in, see, see, see, see, nil, "Made"},
		{"GET", "/sequencers/secret", in, no, see, see, no, nil, "secret"},
		{"GET", "/sequencers/orders", in, no, see, see, see, nil, "orders"},
		{"GET", "/sequencers/secret/destroy", in, no, no, see, no, nil, "secret"},
		{"GET", "/create", in, no, no, see, see, nil, "New sequencer"},
		{"GET", "/sign-in", see, in, in, in, in, nil, "Sign in"},
		{"POST", "/make", in, in, no, in, no, url.Values{"name": {"secret"}}, ""},
		{"POST", "/make", in, in, no, in, in, url.Values{"name": {"orders"}}, ""},
		{"POST", "/create", in, no, no, in, no, url.Values{"name": {"more"}}, ""},
		{"POST", "/sequencers/secret/attach", in, no, no, in, no, nil, ""},
		{"POST", "/sequencers/secret/destroy", in, no, no, 400, no, url.Values{"confirm": {"orders"}}, ""},
	} {
		for who, want := range map[string]int{"": row.nobody, "generate": row.generate, "read": row.read, "admin": row.admin, "some": row.some} {
			var headers []string
			if who != "" {
				headers = append(headers, signInAs(t, h, secrets[who]))
			}
			w := ask(h, row.method, row.path, row.form, headers...)
			if w.Code != want {
				t.Errorf("%s %s as %q: status %d, want %d", row.method, row.path, who, w.Code, want)
			}
			for role, hidden := range map[string]string{"generate": `href="/members"`, "read": `href="/create"`} {
				if who == role && strings.Contains(w.Body.String(), hidden) {
					t.Errorf("%s %s as %q offers %s", row.method, row.path, who, hidden)
				}
			}
			if want == see && !strings.Contains(w.Body.String(), row.shows) {
				t.Errorf("%s %s as %q does not show %q", row.method, row.path, who, row.shows)
			}
			// What one may not see is on no page.
			if (who == "some" || who == "generate") && !strings.Contains(row.path, "secret") && row.form.Get("name") != "secret" && strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s %s as %q shows another's sequencer", row.method, row.path, who)
			}
		}
	}
}

// TestSessionEnds: a session ends with its token, and when the user signs out.
func TestSessionEnds(t *testing.T) {
	set, secrets := tokens(t)
	now := set
	h, _, _ := newWorld(t, func(c *Config) { c.Guard = auth.NewGuard(func() *auth.Set { return now }, nil) })
	cookie := signInAs(t, h, secrets["admin"])
	if w := get(h, "/", cookie); w.Code != 200 {
		t.Fatalf("signed in: status %d", w.Code)
	}
	w := post(h, "/sign-out", nil, cookie)
	if c := w.Result().Cookies(); len(c) != 1 || c[0].MaxAge >= 0 {
		t.Errorf("signing out sets %v", c)
	}
	now, _ = tokens(t) // the old ones are gone
	if w := get(h, "/", cookie); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/sign-in" {
		t.Errorf("after its token is gone: status %d", w.Code)
	}
	if w := post(h, "/sign-in", url.Values{"token": {secrets["admin"]}}); w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) != 0 {
		t.Errorf("with a token that is gone: status %d", w.Code)
	}
}

// TestSignInLeadsNowhereElse: after signing in one is on this server.
func TestSignInLeadsNowhereElse(t *testing.T) {
	set, secrets := tokens(t)
	h, _, _ := newWorld(t, func(c *Config) { c.Guard = auth.NewGuard(func() *auth.Set { return set }, nil) })
	for next, want := range map[string]string{
		"/inspect/1?layout=twitter": "/inspect/1?layout=twitter", "": "/", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/",
		"/x\r\nSet-Cookie: a=b": "/", "evil": "/", "/a\\b": "/", "/\t/evil.example": "/",
	} {
		w := post(h, "/sign-in", url.Values{"token": {secrets["read"]}, "next": {next}})
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("next=%q leads to %q, want %q", next, got, want)
		}
	}
	// A link from elsewhere comes without the cookie, and the page asks again
	// by itself.
	w := get(h, "/inspect/117232474546765824", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `http-equiv="refresh" content="0;url=/inspect/117232474546765824"`) {
		t.Errorf("a link from elsewhere: %d %.600s", w.Code, w.Body)
	}
}

// TestLifeOfSequencer creates a sequencer, and does by forms what can be done
// to it.
func TestLifeOfSequencer(t *testing.T) {
	h, k, cluster := newWorld(t, nil)
	state := func(want grant.State) {
		t.Helper()
		must.Await(t, func() bool {
			return must.Get(cluster.Lookup(t.Context(), "parcels"))(t).State == want
		}, "it is %v", want)
	}
	if w := post(h, "/create", url.Values{"name": {"-x"}}); w.Code != 400 || !strings.Contains(w.Body.String(), `value="-x"`) {
		t.Errorf("create -x: status %d, want 400", w.Code)
	}
	w := post(h, "/create", url.Values{"name": {"parcels"}, "layout": {"hazelcast"}, "max-ahead": {"2s"}, "window": {"40 s"}})
	if w.Code != 303 || w.Header().Get("Location") != "/sequencers/parcels" {
		t.Fatalf("create: %d %s", w.Code, w.Body)
	}
	info, err := cluster.Lookup(t.Context(), "parcels")
	if err != nil || info.Config.Layout.String() != "hazelcast" || info.Config.MaxAhead != 2*time.Second || info.Config.Window != 40*time.Second {
		t.Errorf("what was created is %+v, %v", info.Config, err)
	}
	w = post(h, "/create", url.Values{"name": {"sharded"}, "layout": {"default,even=5"}, "prefix": {"shard"}})
	if info, err := cluster.Lookup(t.Context(), "sharded"); w.Code != 303 || err != nil || info.Config.Layout.String() != "default,even=5" || info.Config.Prefix != "shard" {
		t.Errorf("with a prefix: %d, %+v, %v", w.Code, info.Config, err)
	}
	// Fields that are left empty are as usual for the store.
	w = post(h, "/create", url.Values{"name": {"empty"}, "layout": {""}, "max-ahead": {""}, "window": {""}})
	if info, err := cluster.Lookup(t.Context(), "empty"); w.Code != 303 || err != nil || info.Config != servicetest.Config(firn.Default()) {
		t.Errorf("with empty fields: %d, %+v, %v", w.Code, info.Config, err)
	}
	if w := post(h, "/create", url.Values{"name": {"parcels"}}); w.Code != 409 {
		t.Errorf("create it twice: status %d, want 409", w.Code)
	}
	makeOne(t, k, "parcels")
	for _, action := range []struct {
		verb string
		want grant.State
	}{{"detach", grant.Detached}, {"attach", grant.Attached}, {"destroy", grant.Destroyed}, {"recreate", grant.Attached}} {
		if action.verb == "destroy" {
			if w := post(h, "/sequencers/parcels/destroy", url.Values{"confirm": {"parcel"}}); w.Code != 400 {
				t.Errorf("destroy with another name: status %d, want 400", w.Code)
			}
			state(grant.Attached)
		}
		if w := post(h, "/sequencers/parcels/"+action.verb, url.Values{"confirm": {"parcels"}}); w.Code != 303 {
			t.Errorf("%s: status %d: %.300s", action.verb, w.Code, w.Body)
		}
		state(action.want)
	}
	if w := post(h, "/sequencers/nobody/attach", nil); w.Code != 404 {
		t.Errorf("attach what is not there: status %d", w.Code)
	}
}

// TestActionWaits: an action that waits for other servers continues after its
// page was answered, until the console is closed.
func TestActionWaits(t *testing.T) {
	_, k, _ := newWorld(t, nil)
	free, ended := make(chan struct{}, 1), make(chan error, 2)
	slow := action{Verb: "detach", do: func(_ *service.StoreAdmin, ctx context.Context, _ string) (info grant.Info, err error) {
		select {
		case <-free: // as a server does that gives its node ID back at last
		case <-ctx.Done():
		}
		ended <- ctx.Err()
		return info, ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		must.Do(t, k.startAction(ctx, k.admin, "orders", slow))
	}
	cancel() // the pages were answered
	free <- struct{}{}
	if err := <-ended; err != nil {
		t.Errorf("the action has ended with its page: %v", err)
	}
	failing := action{do: func(*service.StoreAdmin, context.Context, string) (grant.Info, error) {
		return grant.Info{}, firn.ErrUnavailable
	}}
	if err := k.startAction(t.Context(), k.admin, "orders", failing); !errors.Is(err, firn.ErrUnavailable) {
		t.Errorf("an action that fails at once: %v", err)
	}
	k.Close()
	if err := <-ended; err == nil {
		t.Error("the action has not ended with the console")
	}
	if err := k.startAction(t.Context(), k.admin, "orders", failing); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("an action after the end: %v", err)
	}
}

// TestTroubles: what is wrong with a sequencer is said, and nothing else.
func TestTroubles(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var nodes []grant.NodeInfo
	for n := range uint64(32) {
		nodes = append(nodes, grant.NodeInfo{Node: n, Owner: "x", Held: true, Until: at.Add(time.Minute + time.Duration(n)*time.Second)})
	}
	for _, row := range []struct {
		want   string // the words, and until when
		change func(q *sequencerInfo)
		here   *metrics.Sequencer
	}{
		{"", func(q *sequencerInfo) { q.Nodes = nodes[:31] }, &metrics.Sequencer{Attached: true}},
		{"no node ID free the first window ends in 60 seconds;", func(q *sequencerInfo) { q.Nodes = nodes }, nil},
		{"no node ID free the first window ends in 61 seconds;", func(q *sequencerInfo) { q.Nodes, q.Info.Config.Nodes = nodes[:3], &grant.NodeRange{Lo: 1, Hi: 2} }, nil},
		{"no IDs until 10:05:00 UTC, in 5 minutes;", func(q *sequencerInfo) { q.Info.Floor = at.Add(5*time.Minute + q.Info.Config.MaxAhead) }, nil},
		{"detached ;", func(q *sequencerInfo) { q.Info.State = grant.Detached }, &metrics.Sequencer{Err: grant.ErrDetached}},
		{"detaching until 10:01:02 UTC, in 62 seconds;", func(q *sequencerInfo) { q.Info.State, q.Nodes = grant.Detaching, nodes[:3] }, nil},
		{"detaching by me, 5 seconds ago;damaged ;", func(q *sequencerInfo) {
			q.Info.State, q.Damaged = grant.Detaching, []grant.NodeInfo{{Node: 1}}
			q.Info.LastChange = grant.Change{What: "detach", By: "me", At: at.Add(-5 * time.Second)}
		}, nil},
		{"detaching ;", func(q *sequencerInfo) { q.Info.State, q.NodesRead = grant.Detaching, false }, nil},
		{"no node ID free ;damaged ;", func(q *sequencerInfo) {
			q.Info.Config.Nodes, q.Damaged = &grant.NodeRange{Lo: 1, Hi: 1}, []grant.NodeInfo{{Node: 1}}
		}, nil},
		{"moved ;", func(q *sequencerInfo) { q.Info.MovedTo = "etcd://a" }, nil},
		{"", func(q *sequencerInfo) { q.Info.State = grant.Destroyed }, nil},
		{"damaged ;", func(q *sequencerInfo) { q.Damage = "it is cut" }, nil},
		{"damaged ;", func(q *sequencerInfo) { q.Damaged = []grant.NodeInfo{{}} }, nil},
		{"time over since 2026-09-07;", func(q *sequencerInfo) { q.Info.Config.Layout = firn.MustParseLayout("js53,epoch=1957-01-01T00:00:00Z") }, nil},
		{"not renewed IDs until 10:00:20 UTC, in 20 seconds;", nil, &metrics.Sequencer{Attached: true, WindowLeft: 20 * time.Second, Err: firn.ErrUnavailable}},
		{"no IDs here ;", nil, &metrics.Sequencer{Err: firn.ErrUnavailable}},
		{"", nil, &metrics.Sequencer{Err: firn.ErrClosed}},
		{"cloned since this server started;", nil, &metrics.Sequencer{KeeperStats: grant.KeeperStats{Alarms: grant.AlarmCounts{grant.AlarmCloned: 1}}}},
	} {
		q := sequencerInfo{Name: "orders", NodesRead: true, Info: grant.Info{State: grant.Attached, Config: servicetest.Config(firn.MustParseLayout("js53"))}}
		if row.change != nil {
			row.change(&q)
		}
		got := ""
		for _, x := range troublesOf(q, row.here, at) {
			got += x.State.Word + " " + x.When + ";"
		}
		if got != row.want {
			t.Errorf("it says %q, want %q", got, row.want)
		}
	}
}

// TestSlowStore: if the store does not answer, a page shows its previous state
// and reports that, before the time for the store has passed.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)))
		store := &faultstore.Store{Store: new(memstore.Store)}
		cluster := servicetest.NewStoreBackend(t, store, service.StoreBackendConfig{})
		k := New(Config{Front: service.Front{Backend: cluster}})
		defer k.Close()
		store.Hangs.Store(true)
		if w := get(k, "/"); !strings.Contains(w.Body.String(), "The store is unavailable.") || strings.Contains(w.Body.String(), "No sequencers yet") {
			t.Errorf("nothing is known yet: %s", w.Body)
		}
		store.Hangs.Store(false)
		time.Sleep(2 * keepFor)
		must.Get(cluster.Create(t.Context(), "orders", servicetest.Config(firn.Default())))(t)
		time.Sleep(2 * keepFor)
		if w := get(k, "/"); !strings.Contains(w.Body.String(), "/sequencers/orders") || strings.Contains(w.Body.String(), "is unavailable") {
			t.Errorf("when it answers: %s", w.Body)
		}
		store.Hangs.Store(true)
		time.Sleep(2 * keepFor)
		begin := time.Now()
		w := get(k, "/")
		if took := time.Since(begin); took > loadLimit {
			t.Errorf("the page took %v, want %v", took, loadLimit)
		}
		begin = time.Now()
		if w := get(k, "/members"); time.Since(begin) > 0 || !strings.Contains(w.Body.String(), "The store is unavailable.") {
			t.Errorf("the next page took %v: %s", time.Since(begin), w.Body)
		}
		if !strings.Contains(w.Body.String(), "/sequencers/orders") || !strings.Contains(w.Body.String(), "The store is unavailable.") {
			t.Errorf("when it does not answer again: %s", w.Body)
		}
	})
}

// A veiled ID is read with the key of its sequencer, which the visitor names.
func TestVeiled(t *testing.T) {
	keys := must.Get(veil.ParseKeys(strings.Repeat("00", 32)))(t)
	h, k, _ := newWorld(t, func(c *Config) { c.Front.VeilKeys = keys })
	makeOne(t, k, "users")
	id := must.Get(firn.ParseID(makeOne(t, k, "orders")))(t)
	codec := must.Get(keys.Codec("orders", firn.Default()))(t)
	veiled := must.Get(codec.Text(id))(t)
	address := "/inspect/" + veiled
	for _, path := range []string{address + "?of=orders", address + "?of=orders&layout=twitter"} {
		if body := get(h, path).Body.String(); !strings.Contains(body, id.String()) || !strings.Contains(body, "read as veiled") || !strings.Contains(body, "<h2>Sequencers that could have made it</h2>") || !strings.Contains(body, "unveiled for orders") {
			t.Errorf("%s does not explain %d: %s", path, id, body)
		}
	}
	for path, want := range map[string]string{
		address:                               "is a veiled ID: name its sequencer",
		"/inspect/v2_0000000000001?of=orders": "this key is not known",
		address + "?of=nowhere":               "Sequencer nowhere not found",
		"/inspect/" + id.String() + "," + veiled + "?layout=default": "is veiled with key 1",
	} {
		if body := get(h, path).Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s: want %q: %s", path, want, body)
		}
	}
	set, secrets := tokens(t)
	h, _, _ = newWorld(t, func(c *Config) { c.Front.VeilKeys, c.Guard = keys, auth.NewGuard(func() *auth.Set { return set }, nil) })
	if body := get(h, address+"?of=users", signInAs(t, h, secrets["some"])).Body.String(); !strings.Contains(body, "Permission denied") {
		t.Errorf("a visitor who may not see users: %s", body)
	}
	h, _, _ = newWorld(t, nil)
	if body := get(h, address).Body.String(); !strings.Contains(body, "start it with --veil-keys") {
		t.Errorf("without keys: %s", body)
	}
}

// TestHolders says who held a node ID, and what is not known.
func TestHolders(t *testing.T) {
	h, k, cluster := newWorld(t, nil)
	id, host := makeOne(t, k, "orders"), must.Get(os.Hostname())(t)
	if w := get(h, "/inspect/"+id+"?of=orders&layout=default"); !strings.Contains(w.Body.String(), host+" holds node") {
		t.Errorf("an ID made now: %s", w.Body)
	}
	if w := get(h, "/inspect/"+id); !strings.Contains(w.Body.String(), "as in orders") {
		t.Errorf("an ID of which only the layout is known: %s", w.Body)
	}
	var node uint64
	must.Do(t, cluster.Nodes(t.Context(), "orders", func(n grant.NodeInfo, _ error) bool { node = n.Node; return false }))
	for _, row := range []struct {
		time time.Time
		node uint64
		want string
	}{
		{time.Now().Add(-24 * time.Hour), node, host + " holds node"},
		{time.Now().Add(24 * time.Hour), node, "The time would be"},
		{time.Now(), (node + 1) % 1024, "No server has ever held"},
	} {
		x := must.Get(firn.Default().Compose(firn.Parts{Time: row.time, Node: row.node}))(t)
		if w := get(h, "/inspect/"+x.String()+"?of=orders&layout=default"); !strings.Contains(w.Body.String(), row.want) {
			t.Errorf("node %d at %v: want %q", row.node, row.time, row.want)
		}
	}
}

// TestDamagedNode: a node ID whose record is damaged is shown as that, and not
// as one that was never used.
func TestDamagedNode(t *testing.T) {
	store := new(memstore.Store)
	h, _, _ := worldOn(t, store, nil)
	must.Get(grant.Create(t.Context(), store, "orders", grant.DefaultConfig(store, firn.Default(), nil), nil))(t)
	faultstore.Put(t, store, "v1/orders/n/0017", "no record")
	for _, row := range []struct{ path, want, wrong string }{
		{"/sequencers/orders", "it is not known who used it", "No node ID was ever used"},
		{"/inspect/" + must.Get(firn.Default().Compose(firn.Parts{Time: time.Now(), Node: 17}))(t).String(),
			"The record of node 17 cannot be read", "has ever held"},
	} {
		if text := get(h, row.path).Body.String(); !strings.Contains(text, row.want) || strings.Contains(text, row.wrong) ||
			strings.Contains(text, "0001-01-01") {
			t.Errorf("%s: want %q: %s", row.path, row.want, text)
		}
	}
}

// TestUnreadNeighbours: a sequencer whose record cannot be read hides neither
// the node IDs nor the troubles of the others, and the overview says how many
// sequencers it did not look into.
func TestUnreadNeighbours(t *testing.T) {
	store := new(memstore.Store)
	h, k, _ := worldOn(t, store, nil)
	set := func(key, value string) {
		t.Helper()
		faultstore.Put(t, store, key, value)
		k.snapshots.forget()
	}
	overview := func(has bool, texts ...string) {
		t.Helper()
		body := get(h, "/").Body.String()
		for _, text := range texts {
			if strings.Contains(body, text) != has {
				t.Errorf("the overview has %q: %t, want %t: %s", text, !has, has, body)
			}
		}
	}
	for _, name := range []string{"aaa", "bbb", "ccc", "ddd"} {
		must.Get(grant.Create(t.Context(), store, name, grant.DefaultConfig(store, firn.Default(), nil), nil))(t)
	}
	makeOne(t, k, "ddd")
	set("v1/ccc/n/0017", "no record")
	overview(true, "<dt>Node IDs held</dt><dd>1</dd>", "1 record of node IDs cannot be read")
	set("v1/aaa/config", "no record")
	set("v1/bbb/config", `{"version":99}`)
	overview(true, "<dt>Node IDs held</dt><dd>1 or more</dd>", "1 record of node IDs cannot be read")
	overview(false, "are not read here")

	for i := range maxCounted - 1 {
		name := fmt.Sprintf("c%03d", i)
		must.Get(grant.Create(t.Context(), store, name, grant.DefaultConfig(store, firn.Default(), nil), nil))(t)
	}
	k.snapshots.forget()
	overview(true, "<dt>Node IDs held</dt><dd>0 or more</dd>", "The node IDs of 1 sequencer are not read here")
	overview(true, "1 record of node IDs cannot be read")
}

// TestManyNodeIDs: of a server whose record has no room for all its node IDs,
// pages say how many more it holds, and the overview adds what it made to the
// total alone.
func TestManyNodeIDs(t *testing.T) {
	store := new(memstore.Store)
	set, secrets := tokens(t)
	h, k, _ := worldOn(t, store, func(c *Config) { c.Guard = auth.NewGuard(func() *auth.Set { return set }, nil) })
	for _, name := range []string{"q00", "orders"} {
		must.Get(grant.Create(t.Context(), store, name, grant.DefaultConfig(store, firn.Default(), nil), nil))(t)
	}
	all, some := signInAs(t, h, secrets["admin"]), signInAs(t, h, secrets["some"])
	for _, size := range []int{20, 25} {
		m := members.Server{ID: "x", Host: "ids-1", Until: time.Now().Add(time.Hour), NodeIDs: size, IDs: uint64(size) * 1000}
		for i := range min(size, members.MaxHeld) {
			m.Holds = append(m.Holds, members.Held{Sequencer: fmt.Sprintf("q%02d", i), Until: m.Until, IDs: 1000})
		}
		m.Partial = size > len(m.Holds)
		faultstore.Put(t, store, "members/v1/0000", string(must.Get(json.Marshal(m))(t)))
		k.snapshots.forget()
		for _, row := range []struct {
			who, path, text string
			want            bool
		}{
			{all, "/members", "and 5 more.", m.Partial},
			{some, "/members", "<dt>IDs made</dt><dd>0 or more</dd>", m.Partial},
			{all, "/", "<dt>IDs made</dt><dd>" + number(m.IDs) + "</dd>", true},
			{all, "/", "IDs made: without those of 1 server ", m.Partial},
			{all, "/", "IDs made\">1,000 ", !m.Partial},
			{some, "/", "<dt>IDs made</dt><dd>0 or more</dd>", m.Partial},
		} {
			if body := get(h, row.path, row.who).Body.String(); strings.Contains(body, row.text) != row.want {
				t.Errorf("%d node IDs: %s has %q: %t: %s", size, row.path, row.text, !row.want, body)
			}
		}
	}
}

// TestMoved: the page of a sequencer that another store has says which, and
// offers no action: all of them would fail.
func TestMoved(t *testing.T) {
	store, to := new(memstore.Store), new(memstore.Store)
	h, _, _ := worldOn(t, store, nil)
	must.Get(grant.Create(t.Context(), store, "orders", grant.DefaultConfig(store, firn.Default(), nil), nil))(t)
	must.Get(grant.Move(t.Context(), grant.Place{Store: store, URL: "etcd://old"}, grant.Place{Store: to, URL: "etcd://new"},
		"orders", nil))(t)
	body := get(h, "/sequencers/orders").Body.String()
	if !strings.Contains(body, "Another store has it now, etcd://new") || strings.Contains(body, "Manage") ||
		strings.Contains(body, "/sequencers/orders/") {
		t.Errorf("its page: %s", body)
	}
	for _, verb := range []string{"attach", "detach", "destroy", "recreate"} {
		if w := get(h, "/sequencers/orders/"+verb); w.Code != 409 || !strings.Contains(w.Body.String(), "is moved") {
			t.Errorf("%s: status %d: %s", verb, w.Code, w.Body)
		}
	}
}

// TestWithoutStore: a server with a static node shows what it knows, and says
// what it does not.
func TestWithoutStore(t *testing.T) {
	static := must.Get(service.NewStaticBackend(service.StaticBackendConfig{Layout: firn.Default(), Node: 7}))(t)
	h, k, _ := newWorld(t, func(c *Config) {
		c.Front.Backend = static
		c.Figures = func() (all []metrics.Sequencer) {
			static.Usage(func(name string, s *service.Usage) {
				all = append(all, metrics.Sequencer{Name: name, Stats: s.Stats.Stats})
			})
			return all
		}
	})
	if w := get(h, "/"); !strings.Contains(w.Body.String(), "No sequencers yet") {
		t.Errorf("GET /: %s", w.Body)
	}
	makeOne(t, k, "orders")
	for path, want := range map[string]string{
		"/": "without a store", "/members": "No store", "/sequencers/orders": "static node ID",
	} {
		if w := get(h, path); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("GET %s: status %d without %q", path, w.Code, want)
		}
	}
	for _, path := range []string{"/sequencers/orders/destroy"} {
		if w := get(h, path); w.Code != 409 {
			t.Errorf("GET %s: status %d, want 409", path, w.Code)
		}
	}
	if w := get(h, "/sequencers/nobody"); w.Code != 404 {
		t.Errorf("a name that nobody has used: status %d, want 404", w.Code)
	}
}
