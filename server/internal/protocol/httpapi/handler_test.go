package httpapi

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

func TestPaths(t *testing.T) {
	h := NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}})
	for _, row := range []struct {
		method, target string
		kind           service.Kind
		text           string
	}{
		{"GET", "/nothing", service.NotFound, `"/nothing"`},
		{"GET", "/v1", service.NotFound, "GET /"},
		{"GET", "/v1/sequencers/orders", service.NoStore, "--store"},
		{"POST", "/v1/sequencers/orders", service.MethodNotAllowed, "GET, HEAD, PUT and DELETE"},
		{"GET", "/v1/sequencers/orders/attach", service.MethodNotAllowed, "POST"},
		{"GET", "/v1/sequencers/orders/next/", service.NotFound, ""},
		{"GET", "/v1/sequencers//next", service.NotFound, "empty"},
		{"GET", "/v1/sequencers/a/b/next", service.NotFound, ""},
		{"GET", "/v1/sequencers/../sequencers/orders/next", service.NotFound, ".. segments"},
		{"POST", "//", service.NotFound, ""},
		{"GET", "/healthz/", service.NotFound, ""},
		{"PUT", "/v1/sequencers/orders/next", service.MethodNotAllowed, "GET and POST"},
		{"DELETE", "/v1/sequencers/orders/next", service.MethodNotAllowed, "GET and POST"},
		{"HEAD", "/v1/sequencers/orders/next", service.MethodNotAllowed, "GET and POST"},
		{"OPTIONS", "/v1/sequencers/orders/next", service.MethodNotAllowed, "GET and POST"},
		{"POST", "/v1/inspect/1", service.MethodNotAllowed, "GET and HEAD"},
		{"POST", "/", service.MethodNotAllowed, "GET and HEAD"},
		{"POST", "/healthz", service.MethodNotAllowed, "GET and HEAD"},
		{"GET", "/healthz?x=1", service.BadParameter, `unknown parameter "x": this path has no parameters`},
		{"GET", "/?x", service.BadParameter, `"x"`},
	} {
		w := do(h, row.method, row.target)
		wantProblem(t, w, row.kind, row.text)
		allow := ""
		if row.kind == service.MethodNotAllowed {
			allow = strings.ReplaceAll(row.text, " and ", ", ")
		}
		if got := w.Header().Get("Allow"); got != allow {
			t.Errorf("%s %s: Allow = %q, want %q", row.method, row.target, got, allow)
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s: there is a header %s", row.method, row.target, name)
			}
		}
	}

	// A target that is not a path.
	for _, target := range []string{"*", "localhost:3476"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host, r.URL.Path = "localhost", target
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 404 {
			t.Errorf("target %s: status %d, want 404", target, w.Code)
		}
	}
}

func TestHealth(t *testing.T) {
	h := NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}})
	want := func(target string, status int, body string) {
		t.Helper()
		for _, method := range []string{"GET", "HEAD"} {
			w := do(h, method, target)
			if w.Code != status || !strings.Contains(w.Body.String(), body) {
				t.Errorf("%s %s: %d %q, want %d %q", method, target, w.Code, w.Body, status, body)
			}
			if got := w.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("%s: Cache-Control = %q, want no-store", target, got)
			}
		}
	}
	want("/healthz", 200, "ok\n")
	want("/readyz", 200, "ready\n")
	want("/openapi.yaml", 200, "openapi: 3.1.0")
	h.Drain()
	want("/healthz", 200, "ok\n")
	want("/readyz", 503, "urn:firn:problem:draining")
	// Requests that still arrive are answered.
	want("/", 200, "unique, time-ordered IDs")
	if w := do(h, "GET", "/v1/sequencers/orders/next"); w.Code != 200 {
		t.Errorf("while draining: status %d: %s", w.Code, w.Body)
	}
}

func TestIndex(t *testing.T) {
	h := NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}})
	w := do(h, "GET", "/", "Host: 127.0.0.1:99", "Accept: text/html")
	if w.Code != 200 || strings.Count(w.Body.String(), "\n  curl ") != 3 || !strings.Contains(w.Body.String(), "http://127.0.0.1:99/v1/") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("Content-Type = %q, want text", got)
	}
}

func TestInspect(t *testing.T) {
	h := NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}})
	id := idsOf(t, do(h, "GET", "/v1/sequencers/orders/next").Body.String())[0]
	var got struct {
		Layout, Time, Dec, Hex string
		TimeMs                 int64 `json:"time_ms"`
		Node                   int
		Seq                    *int
		Others                 []struct{ Layout string }
	}
	for _, row := range []struct {
		target   string
		isOthers bool
	}{
		{"/v1/inspect/" + id, true},
		{"/v1/inspect/" + id + "?layout=default", false},
		{"/v1/inspect/" + id + "?from=dec&layout=default", false},
	} {
		got.Others = nil
		w := do(h, "GET", row.target)
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
			t.Fatalf("%s: status %d, %v: %s", row.target, w.Code, err, w.Body)
		}
		if got.Layout != "default" || got.Node != 5 || got.Seq == nil || got.Dec != id || got.Time == "" ||
			len(got.Hex) != 16 || got.TimeMs < day.UnixMilli() || (len(got.Others) > 0) != row.isOthers {
			t.Errorf("%s: %s", row.target, w.Body)
		}
	}
	if w := do(h, "GET", "/v1/inspect/018f6d0c-1b2a-7c3d-8e4f-5a6b7c8d9e0f"); w.Code != 200 || !strings.Contains(w.Body.String(), "uuidv7") {
		t.Errorf("a UUID: status %d: %s", w.Code, w.Body)
	}
	if w := do(h, "HEAD", "/v1/inspect/"+id); w.Code != 200 {
		t.Errorf("HEAD: status %d", w.Code)
	}

	for _, row := range []struct {
		target string
		kind   service.Kind
		text   string
	}{
		{"/v1/inspect/!", service.BadID, "no known encoding"},
		{"/v1/inspect/%20", service.BadID, ""},
		{"/v1/inspect/-1", service.BadID, "sign"},
		{"/v1/inspect/9223372036854775808?layout=default", service.BadID, "default"},
		{"/v1/inspect/12?from=uuid", service.BadID, ""},
		{"/v1/inspect/12?layout=nothing", service.BadParameter, "unknown preset"},
		{"/v1/inspect/12?from=octal", service.BadParameter, "octal"},
		{"/v1/inspect/12?format=dec", service.BadParameter, "layout, from and sequencer"},
		{"/v1/inspect/12?layout=", service.BadParameter, "layout has no value"},
	} {
		wantProblem(t, do(h, "GET", row.target), row.kind, row.text)
	}
	wantProblem(t, do(h, "GET", "/v1/inspect/12?layout=nothing&from=octal&x=1"), service.BadParameter, "unknown preset", "octal", `unknown parameter "x"`)
	wantProblem(t, do(h, "GET", "/v1/inspect/12", "Accept: text/html"), service.NotAcceptable, "application/json")
}

// TestInspectColumn reads a column in the body of a request.
func TestInspectColumn(t *testing.T) {
	h := NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}})
	w := nettest.Ask(h, "POST", "/v1/inspect", "7\nNULL\n\n2126427388892930000\nx\r\n2126427389161360000\r\n2126427413979070000\n")
	for _, want := range []string{`"count":4,`, `"bad":1,`, `"missing":2,`, `"small":1}`, `"rounded":3,`, "rounded to 15 digits, as spreadsheets do"} {
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("status %d, without %s: %s", w.Code, want, w.Body)
		}
	}
	wantProblem(t, nettest.Ask(h, "POST", "/v1/inspect?layout=nothing&sequencer=x", "5"), service.BadParameter, "unknown preset", `unknown parameter "sequencer"`)
	wantProblem(t, nettest.Ask(h, "POST", "/v1/inspect", strings.Repeat("7\n", service.DefaultBody)), service.BadBody, "larger than")
	wantProblem(t, do(h, "GET", "/v1/inspect"), service.MethodNotAllowed, "POST")
}

// A source that breaks its contract is a failure of the server.
func TestShortBatch(t *testing.T) {
	h := NewHandler(Config{Front: service.Front{Backend: servicetest.Open(func(context.Context, int) (firn.Batch, error) { return firn.Batch{}, nil })}})
	wantProblem(t, do(h, "POST", "/v1/sequencers/orders/next"), service.Internal)
}

// TestAllowsHost: never a name that a web site can have. Other machines may use
// addresses and private names.
func TestAllowsHost(t *testing.T) {
	inside, outside := NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}, Hosts: []string{"Ids.Example"}}), NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}})
	outside.Expose()
	for _, row := range []struct {
		hosts           []string
		inside, outside bool
	}{
		{[]string{"localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:65535", "127.1.2.3", "[::1]", "[::1]:3476", "localhost:", "[0:0::1]"}, true, true},
		{[]string{"ids.example", "IDS.example:3476", "ids.example."}, true, false},
		{[]string{"", "10.0.0.1", "10.0.0.1:3476", "0.0.0.0", "[::2]:1", "[fe80::1]", "firn-1", "firn-1:3476", "2130706433", "ids.internal", "host.local",
			"firn.ids.svc", "firn.ids.svc.cluster.local:3476", "firn.ids.svc.cluster.local."}, false, true},
		{[]string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.1", "0177.0.0.1", "local.evil.example", "svc.example",
			"10.0.0.1.example:80", "ids.example.evil.example", "evil.example:80@localhost"}, false, false},
		{[]string{"::1", "[::1", "[::1]x", "[::1]80", "localhost:x", "localhost:80:80", "localhost ", "user@localhost"}, false, true},
	} {
		for _, host := range row.hosts {
			if got := [2]bool{inside.allowsHost(host), outside.allowsHost(host)}; got != [2]bool{row.inside, row.outside} {
				t.Errorf("%q is allowed inside and outside: %v, want %v and %v", host, got, row.inside, row.outside)
			}
		}
	}
}

// TestGetMayCreate: for another machine, a GET needs a token to create a
// sequencer. A browser adds passwords of an address to the request of any page.
func TestGetMayCreate(t *testing.T) {
	h := NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}})
	h.Expose()
	for value, want := range map[string]bool{"": false, " ": false, "Basic YTpi": false, "Bearer": false, "Bearer ": false, "Negotiate x": false, "Bearer x": true} {
		r := httptest.NewRequest("GET", "/v1/sequencers/orders/next", nil)
		if r.Header.Set("Authorization", value); h.mayCreate(r, credentials(r)) != want {
			t.Errorf("Authorization: %q may create a sequencer: %t, want %t", value, !want, want)
		}
	}
}

func TestNegotiate(t *testing.T) {
	for _, row := range []struct {
		accept []string
		offers []media
		want   string // "" if nothing fits
	}{
		{nil, allMedia, "application/json"},
		{[]string{""}, allMedia, "application/json"},
		{[]string{"*/*"}, allMedia, "application/json"},
		{[]string{"application/json"}, allMedia, "application/json"},
		{[]string{"APPLICATION/JSON"}, allMedia, "application/json"},
		{[]string{"application/json; charset=utf-8"}, allMedia, "application/json"},
		{[]string{"text/plain"}, allMedia, "text/plain"},
		{[]string{"text/plain", "application/json"}, allMedia, "text/plain"},
		{[]string{"text/plain;q=0.9", "application/json;q=0.8"}, allMedia, "text/plain"},
		{[]string{"application/json;q=0, */*"}, allMedia, "text/plain"},
		{[]string{"*/*", "application/json;q=0"}, allMedia, "text/plain"},
		{[]string{"application/json;q=0.2, application/*, text/*;q=0.5"}, allMedia, "application/octet-stream"},
		{[]string{"application/*;q=0, */*"}, allMedia, "text/plain"},
		{[]string{"application/json;q=0, */*"}, []media{mediaJSON}, ""},
		{[]string{"text/plain, */*"}, allMedia, "text/plain"},
		{[]string{"*/*, text/plain"}, allMedia, "application/json"},
		{[]string{"*/*;q=0.1, application/*;q=0.2"}, allMedia, "application/json"},
		{[]string{"application/*;q=0.2, text/*;q=0.3"}, allMedia, "text/plain"},
		{[]string{"text/html, image/gif, *; q=.2, */*; q=.2"}, allMedia, "application/json"},
		{[]string{"text/plain;q=x, application/octet-stream;q=0.001"}, allMedia, "application/octet-stream"},
		{[]string{"text/html"}, allMedia, ""},
		{[]string{"*/*;q=0"}, allMedia, ""},
		{[]string{"nonsense"}, allMedia, ""},
		{[]string{"application/problem+json"}, allMedia, ""},
		{[]string{"text/*"}, []media{mediaJSON}, ""},
		{[]string{"application/*"}, []media{mediaOctets}, "application/octet-stream"},
	} {
		m, ok := negotiate(row.accept, row.offers)
		got := ""
		if ok {
			got = m.String()
		}
		if got != row.want {
			t.Errorf("negotiate(%q, %v) = %q, want %q", row.accept, row.offers, got, row.want)
		}
	}
}

// TestManyParamErrors: a long query full of errors does not make a long answer.
func TestManyParamErrors(t *testing.T) {
	query := strings.Repeat(strings.Repeat("x", 1000)+"&", 1000)
	_, errs := readParams(query)
	if text := strings.Join(errs, "; "); len(text) > 2000 || !strings.Contains(text, "possibly more") {
		t.Errorf("the error has %d characters", len(text))
	}
}
