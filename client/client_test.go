package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

func TestConfigFaults(t *testing.T) {
	one := []string{"http://127.0.0.1:3476"}
	for want, c := range map[string]Config{
		"Servers is empty":                                                                {},
		`server "127.0.0.1:3476": write firn://`:                                          {Servers: []string{"127.0.0.1:3476"}},
		`server "localhost:3476": write firn`:                                             {Servers: []string{"localhost:3476"}},
		`server "http://:3476": write http://HOST`:                                        {Servers: []string{"http://:3476"}},
		`server "unix:/a\nb": the path of the`:                                            {Servers: []string{"unix:/a\nb"}},
		`server "http://…": write http://HOST:PORT, without`:                              {Servers: []string{"http://a:secret@b"}},
		`server "http://…": write http://HOST:PORT`:                                       {Servers: []string{"http://b?"}},
		`server "https://…": write https://HOST`:                                          {Servers: []string{"https://b?secret"}},
		`server "firn://…": write firn`:                                                   {Servers: []string{"firn://b/#secret"}},
		`server "…": write firn`:                                                          {Servers: []string{"a:secret@b"}},
		`server "…": write firn:`:                                                         {Servers: []string{"a:secret@b?to=http://c"}},
		`server "…": write firn://`:                                                       {Servers: []string{"a:secret://@b"}},
		`server "unix:": the path of the`:                                                 {Servers: []string{"unix:"}},
		`server "firn://b/x": firn:// has no path`:                                        {Servers: []string{"firn://b/x"}},
		`server "firn://b:3476" occurs twice`:                                             {Servers: []string{"firn://b", "firn://b:3476"}},
		`server "http://b/" occurs twice`:                                                 {Servers: []string{"http://b", "http://b/"}},
		`"unix:/x" cannot be used with an`:                                                {Servers: []string{"unix:/x"}, HTTPClient: http.DefaultClient},
		"both Token and TokenSource":                                                      {Servers: one, Token: "x", TokenSource: func(context.Context) (string, error) { return "", nil }},
		"the token has a character":                                                       {Servers: one, Token: "x\ny"},
		"both TLS and HTTPClient":                                                         {Servers: one, TLS: new(tls.Config), HTTPClient: http.DefaultClient},
		"no server is http:// or https://":                                                {Servers: []string{"firn://b", "firns://c"}, HTTPClient: http.DefaultClient},
		"no server is firns:// or https://":                                               {Servers: one, TLS: new(tls.Config)},
		"the Timeout is -1ns":                                                             {Servers: one, Timeout: -1},
		"a Count of 7 and a MaxCount of 6":                                                {Servers: one, Prefetch: &firn.PrefetchOptions{Count: 7, MaxCount: 6}},
		"Servers is empty: name at least one, such as firn://127.0.0.1:3476; the Timeout": {Timeout: -1}, // all faults together
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, want an error with %q", c, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("New(%+v) = %v, which has a secret", c, err)
		}
	}
	for text, want := range map[string]address{
		"firn://h":           {resp: "h:3476"},
		"firns://[::1]:1/":   {resp: "[::1]:1", secure: true},
		"http://h:1/":        {base: "http://h:1"},
		"https://h/a%20b/c/": {base: "https://h/a%20b/c", secure: true},
		"http://[::1]:3476":  {base: "http://[::1]:3476"},
		"unix:/run/firn":     {base: "http://localhost", socket: "/run/firn"},
		"unix:///run/firn":   {base: "http://localhost", socket: "/run/firn"},
		"unix:firn":          {base: "http://localhost", socket: "firn"},
	} {
		if got, err := parseAddress(text); got != want || err != nil {
			t.Errorf("parseAddress(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// TestPrintedClient: a Client that is printed does not show its token.
func TestPrintedClient(t *testing.T) {
	c := must.Get(New(Config{Servers: []string{"http://127.0.0.1:3476"}, Token: "secret"}))(t)
	defer c.Close(t.Context())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{c, c.Sequencer("orders")} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "secret") || strings.Contains(text, "736563726574") {
				t.Errorf("%s prints %s", verb, text)
			}
		}
	}
}

// The parts of a request, over one connection.
func TestRequest(t *testing.T) {
	h := NewTestHandler(t, 3, "default")
	h.RequireToken("secret")
	var conns atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Clone()
		header.Del("Content-Length")
		if nonce := header.Get("Firn-Nonce"); len(nonce) < 26 {
			t.Errorf("the nonce is %q, want 26 digits of base 32", nonce)
		}
		header.Del("Firn-Nonce")
		got := fmt.Sprintf("%s %s %d %v", r.Method, r.RequestURI, r.ContentLength, header)
		want := "POST /at/v1/sequencers/a:b/next?count=7&runs=true&format=hex 0 " +
			"map[Accept:[application/json] Authorization:[Bearer secret] User-Agent:[firn-client]]"
		if got != want {
			t.Errorf("the request is %s, want %s", got, want)
		}
		http.StripPrefix("/at", h).ServeHTTP(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	q := newClient(t, Config{Servers: []string{s.URL + "/at/"}, Token: "secret"}).Sequencer("a:b")
	for i := range 20 {
		if i%2 == 1 {
			h.FailNext(1, KindBadConfig) // the body of a problem is also read to its end
			if _, err := q.NextBatch(t.Context(), 7); err == nil {
				t.Error("a failure was no error")
			}
			continue
		}
		b, err := q.NextBatch(t.Context(), 7)
		if err != nil || b.Len() != 7 {
			t.Fatalf("NextBatch(7) = %d IDs, %v", b.Len(), err)
		}
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections, want 1", conns.Load())
	}
}

// Over TLS and a Unix domain socket.
func TestTransports(t *testing.T) {
	h := NewTestHandler(t, 0, "default")
	secure := httptest.NewUnstartedServer(h)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())

	socket := filepath.Join(t.TempDir(), "s")
	l := must.Get(net.Listen("unix", socket))(t)
	local := &http.Server{Handler: h}
	go local.Serve(l)
	defer local.Close()

	for name, c := range map[string]Config{
		"TLS":  {Servers: []string{secure.URL}, TLS: &tls.Config{RootCAs: roots}},
		"unix": {Servers: []string{"unix:" + socket}},
		"both": {Servers: []string{secure.URL, "unix:" + socket}, TLS: &tls.Config{RootCAs: roots}},
	} {
		if id, err := newClient(t, c).Sequencer("orders").Next(t.Context()); err != nil || id == 0 {
			t.Errorf("%s: Next() = %v, %v", name, id, err)
		}
	}
	// Wrong root certificates, and an HTTPClient of the caller.
	if _, err := newClient(t, Config{Servers: []string{secure.URL}, Patience: -1}).Sequencer("orders").Next(t.Context()); err == nil {
		t.Error("a certificate of nobody was taken")
	}
	if _, err := newClient(t, Config{Servers: []string{secure.URL}, HTTPClient: secure.Client()}).Sequencer("orders").Next(t.Context()); err != nil {
		t.Errorf("with an HTTPClient: %v", err)
	}
}

// A server that refuses connections is left out, each time longer, and is used
// again in the end.
func TestEjection(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		n.node(t, "up", 1, "default")
		q := n.client(t, Config{Servers: []string{"http://up", "http://down"}})
		for range 600 { // a minute
			mustBatch(t, q.Sequencer("orders"), 10)
			time.Sleep(100 * time.Millisecond)
		}
		// 0.25, 0.5, 1, 2, … 10 s, each between half of it and all of it.
		if got := n.dialled("down"); got < 10 || got > 18 {
			t.Errorf("the server that is down was tried %d times, want about 13", got)
		}
		if h := q.set.health[1]; h.failures != n.dialled("down") || !h.probeAfter.After(time.Now().Add(-time.Second)) {
			t.Errorf("the server that is down is %+v", h)
		}
		if up, down := q.ServerErrors()[0], q.ServerErrors()[1]; up != nil || down == nil {
			t.Errorf("the servers: %v, %v", up, down)
		}
		h := n.node(t, "down", 2, "default")
		for range 400 {
			mustBatch(t, q.Sequencer("orders"), 10)
			time.Sleep(100 * time.Millisecond)
		}
		if h.Requests() < 20 {
			t.Errorf("after its start it was asked %d times", h.Requests())
		}
	})
}

// mustBatch requests n IDs.
func mustBatch(t *testing.T, q *Sequencer, n int) {
	t.Helper()
	must.Get(q.NextBatch(t.Context(), n))(t)
}

// With one server that starts late, a call waits for it, and gives up after its
// patience or its context.
func TestPatience(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		c := n.client(t, Config{Servers: []string{"http://late"}})
		q := c.Sequencer("orders")
		start := time.Now()
		_, err := q.Next(t.Context())
		if took := time.Since(start); err == nil || took > 10*time.Second || took < 3*time.Second || !strings.Contains(err.Error(), `no server gives IDs of "orders": "orders" at http://late: connection refused`) {
			t.Errorf("Next() = %v after %v", err, took)
		}
		q = n.client(t, Config{Servers: []string{"http://late"}}).Sequencer("orders")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err = q.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("Next() = %v, want DeadlineExceeded and the reason", err)
		}
		if _, err = q.NextBatch(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("NextBatch() = %v, want DeadlineExceeded", err)
		}
		q = n.client(t, Config{Servers: []string{"http://late"}}).Sequencer("orders")
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := q.Next(t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		n.node(t, "late", 1, "default")
		all.Wait()
	})
	inBubble(t, func(t *testing.T, n *network) { // without any server
		q := n.client(t, Config{Servers: []string{"http://a", "http://b"}, Patience: -1}).Sequencer("orders")
		start := time.Now()
		if _, err := q.Next(t.Context()); err == nil || time.Since(start) != 0 || n.dialled("a") != 1 || n.dialled("b") != 1 {
			t.Errorf("Next() = %v after %v, %d and %d times", err, time.Since(start), n.dialled("a"), n.dialled("b"))
		}
	})
}

// A batch with more IDs than a request is made of several requests, in runs or
// packed; if one of them fails, there is no batch.
func TestLongBatch(t *testing.T) {
	for _, layout := range []string{"default", "hazelcast"} {
		inBubble(t, func(t *testing.T, n *network) {
			n.node(t, "a", 1, layout)
			q := n.client(t, Config{Servers: []string{"http://a"}}).Sequencer("orders")
			b, err := q.NextBatch(t.Context(), 250_000)
			if _, err := q.NextBatch(t.Context(), 0); err == nil {
				t.Error("a batch of 0 IDs was no error")
			}
			if err != nil || b.Len() != 250_000 || q.Stats().Fetches != 3 {
				t.Fatalf("NextBatch(250000) = %d IDs in %d batches, %v", b.Len(), q.Stats().Fetches, err)
			}
			last, count := firn.ID(0), 0
			for id := range b.All() {
				if id <= last {
					t.Fatalf("ID %d is %d, after %d", count, id, last)
				}
				last = id
				count++
			}
			if count != 250_000 {
				t.Errorf("there are %d IDs", count)
			}
		})
	}
	inBubble(t, func(t *testing.T, n *network) {
		h := n.node(t, "a", 1, "uuidv7")
		answered := 0
		n.serve("a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answered++; answered == 5 { // the very first one is refused: there are no runs
				w.WriteHeader(400)
				return
			}
			h.ServeHTTP(w, r)
		}))
		q := n.client(t, Config{Servers: []string{"http://a"}}).Sequencer128("orders")
		if b, err := q.NextBatch(t.Context(), 200_001); err != nil || b.Len() != 200_001 {
			t.Errorf("packed: %d IDs, %v", b.Len(), err)
		}
		if b, err := q.NextBatch(t.Context(), 100_001); err == nil || b.Len() != 0 {
			t.Errorf("with a failure: %d IDs, %v", b.Len(), err)
		}
	})
}

// The log has a line when a server first fails, and one when it answers again.
func TestLog(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		var log strings.Builder
		c := n.client(t, Config{Servers: []string{"http://late"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		q := c.Sequencer("orders")
		for range 2 {
			if _, err := q.NextBatch(t.Context(), 1); err == nil {
				t.Fatal("there was no error")
			}
		}
		n.node(t, "late", 1, "default")
		time.Sleep(time.Minute)
		for range 2 {
			mustBatch(t, q, 1)
		}
		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `level=WARN msg="server failed" server=http://late sequencer=orders error="client: \"orders\" at http://late: `) ||
			!strings.Contains(lines[1], `level=INFO msg="server answers again" server=http://late sequencer=orders`) {
			t.Errorf("the log is\n%s", log.String())
		}
	})
}

// A server that returns Retry-After is not used earlier, not even as the last
// resort; for other sequencers it is.
func TestRetryAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		h := n.node(t, "a", 1, "default")
		busy := true
		n.serve("a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if busy && strings.Contains(r.URL.Path, "orders") {
				problem(w, 503, "3", `{"type":"urn:firn:problem:busy","title":"No ID was available in time","status":503,"detail":"no"}`)
				return
			}
			h.ServeHTTP(w, r)
		}))
		c := n.client(t, Config{Servers: []string{"http://a"}, Patience: 5 * time.Second})
		q := c.Sequencer("orders")
		start := time.Now()
		_, err := q.NextBatch(t.Context(), 1)
		var e *Error
		if took := time.Since(start); !errors.As(err, &e) || !errors.Is(err, firn.ErrExhausted) || took < 3*time.Second || took > 4*time.Second {
			t.Fatalf("%v after %v", err, took)
		}
		if want := (Error{"orders", "http://a", 503, "busy", "no", problemKinds["busy"].hint, 3 * time.Second}); *e != want {
			t.Errorf("%+v, want %+v", *e, want)
		}
		failures, start := q.Stats().Failures, time.Now()
		if _, err := q.NextBatch(t.Context(), 1); err == nil || q.Stats().Failures != failures+1 || time.Since(start) < 3*time.Second {
			t.Errorf("again: %v after %v and %d requests, want one request after the pause", err, time.Since(start), q.Stats().Failures-failures)
		}
		busy = false
		start = time.Now()
		if _, err := c.Sequencer("users").NextBatch(t.Context(), 1); err != nil || time.Since(start) != 0 {
			t.Errorf("another sequencer: %v after %v", err, time.Since(start))
		}
		if _, err := q.NextBatch(t.Context(), 1); err != nil {
			t.Errorf("after the pause: %v", err)
		}
	})
}

// A seen is the IDs of a test, none of which may come twice.
type seen map[firn.ID]bool

func (s seen) add(t *testing.T, ids ...firn.ID) {
	t.Helper()
	for _, id := range ids {
		if s[id] {
			t.Fatalf("the ID %v comes twice", id)
		}
		s[id] = true
	}
}

// problem answers with a problem.
func problem(w http.ResponseWriter, status int, retryAfter, body string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Retry-After", retryAfter)
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// If all servers refuse a request for one reason, the error is theirs. Each is
// asked once.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		status       int
		media, body  string
		kind         Kind
		detail, hint string
	}{
		{401, "application/problem+json", `{"type":"urn:firn:problem:unauthorized","detail":"no"}`, "unauthorized", "no", "Config.Token"},
		{409, "application/problem+json", `{"type":"urn:firn:problem:detached","detail":"it is detached"}`, "detached", "it is detached", "run firn sequencer attach"},
		{400, "application/problem+json; charset=utf-8", `{"type":"urn:firn:problem:bad-name","title":"T"}`, "bad-name", "T", ""},
		{401, "text/plain", "who are you?", "", `the answer begins with "who are you?"`, "Config.Token"},
		{404, "text/html", strings.Repeat("é", 10000), "", "the answer begins with \"" + strings.Repeat("é", 80) + "\"", "Config.Servers"},
		{403, "application/problem+json", `{"type":"https://proxy/denied\u001b","detail":"no\u001b[2J\n"}`, "https://proxy/denied\ufffd", "no\ufffd[2J\ufffd", ""},
		{418, "application/problem+json", `{"type":`, "", `the answer begins with "{\"type\":"`, ""},
		{410, "application/problem+json", `{"type":"about:blank"}`, "", "", ""},
	} {
		requests := 0
		inBubble(t, func(t *testing.T, n *network) {
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				w.Header().Set("Content-Type", test.media)
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			})
			n.serve("a", h)
			n.serve("b", h)
			q := n.client(t, Config{Servers: []string{"http://a", "http://b"}}).Sequencer("orders")
			_, err := q.Next(t.Context())
			var e *Error
			if !errors.As(err, &e) || e.Status != test.status || e.Kind != test.kind || e.Detail != test.detail || !strings.Contains(e.Hint, test.hint) || requests != 2 {
				t.Errorf("%d %s: %+v after %d requests", test.status, test.body, err, requests)
			}
		})
	}
}

// Answers without valid IDs, and bytes that are not HTTP, are an error with one
// server, and cause none if there is another.
func TestGarbage(t *testing.T) {
	type answer func(w http.ResponseWriter, r *http.Request)
	body := func(media, text string) answer {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header()[nonceHeader] = r.Header[nonceHeader]
			w.Header().Set("Content-Type", media)
			fmt.Fprint(w, text)
		}
	}
	const media = "application/json"
	answers := map[string]answer{
		"html":     body("text/html", "<h1>Welcome to our WLAN</h1>"),
		"no media": body("", runsJSON([3]uint64{1, 1, 3})),
		"packed":   body("application/octet-stream", "012345670123456701234567"),
		"too long": body(media, `{"runs":[],"x":"`+strings.Repeat("x", 5000)+`"}`),
		"204":      func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) },
		"206": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(206)
			fmt.Fprint(w, runsJSON([3]uint64{1, 1, 3}))
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://good/", http.StatusTemporaryRedirect)
		},
		"only health": func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"another token": func(w http.ResponseWriter, r *http.Request) {
			problem(w, 401, "", `{"type":"urn:firn:problem:unauthorized"}`)
		},
		"no end": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			w.Header().Set("Content-Length", "900")
			fmt.Fprint(w, `{"runs":[`)
		},
		"aborted": func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		"long claim": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			w.Header().Set("Content-Length", "99999999999")
			w.WriteHeader(200)
		},
		"no HTTP": func(w http.ResponseWriter, r *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			fmt.Fprint(c, "SSH-2.0-OpenSSH\r\n\r\n")
			c.Close()
		},
	}
	answers["no IDs"] = body(media, `{"runs":[]}`)
	for name, serve := range answers {
		inBubble(t, func(t *testing.T, n *network) {
			n.serve("bad", http.HandlerFunc(serve))
			good := n.node(t, "good", 1, "default")
			q := n.client(t, Config{Servers: []string{"http://bad"}}).Sequencer("orders")
			if b, err := q.NextBatch(t.Context(), 3); err == nil || b.Len() != 0 {
				t.Errorf("%s: %d IDs, %v, want an error", name, b.Len(), err)
			}
			if name == "no IDs" {
				var e *answerError
				if err := q.Stats().Err; !errors.As(err, &e) {
					t.Errorf("%s: %v, want an answerError", name, err)
				}
			}
			if good.Requests() != 0 {
				t.Errorf("%s: a redirect was followed", name)
			}
			q = n.client(t, Config{Servers: []string{"http://bad", "http://good"}}).Sequencer("orders")
			for range 20 {
				if b, err := q.NextBatch(t.Context(), 3); err != nil || b.Len() != 3 {
					t.Errorf("%s: with a good server beside it: %d IDs, %v", name, b.Len(), err)
				}
			}
		})
	}
}

// A cache stores answers by address, so batches of other sizes come in between,
// and several clients share it. A Client detects an answer that is not its own.
func TestCache(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		h := NewTestHandler(t, 0, "default")
		var mu sync.Mutex
		kept := make(map[string]*httptest.ResponseRecorder)
		n.serve("cache", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			answer := kept[r.RequestURI]
			if answer == nil {
				answer = httptest.NewRecorder()
				h.ServeHTTP(answer, r)
				kept[r.RequestURI] = answer
			}
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			w.Write(answer.Body.Bytes())
		}))
		all := make(seen)
		for _, c := range []*Client{
			n.client(t, Config{Servers: []string{"http://cache"}, Patience: -1}),
			n.client(t, Config{Servers: []string{"http://cache"}, Patience: -1}),
		} {
			q := c.Sequencer("orders")
			for i, size := range []int{10, 20, 10, 20} {
				b, err := q.NextBatch(t.Context(), size)
				all.add(t, slices.Collect(b.All())...)
				var answer *answerError
				switch fresh := len(all) <= 30 && i < 2 && err == nil; {
				case fresh:
				case !errors.As(err, &answer) || !strings.Contains(err.Error(), "repeat the header"):
					t.Errorf("batch %d: %d IDs, %v; want an answerError", i, b.Len(), err)
				}
			}
		}
	})
}

// Every layout, over HTTP and RESP. Those without runs are fetched packed, and
// the Sequencer remembers that.
func TestLayouts(t *testing.T) {
	for _, layout := range []string{
		"default", "hazelcast", "lable", "snowcast", "js53", "sonyflake", "bits=seq:6.time:40,epoch=2026-01-01T00:00:00Z", "bits=time:34.rand:12.node:4.seq:10,unit=1s",
		"uuidv7", "boundary", "ulid",
	} {
		l := firn.MustParseLayout(layout)
		for _, scheme := range []string{"http", "firn"} {
			inBubble(t, func(t *testing.T, n *network) {
				h := n.gated(t, scheme, "a", 1, layout, nil)
				c := n.client(t, Config{Servers: []string{scheme + "://a"}})
				seen, other := make(map[firn.ID128]bool), "Sequencer128"
				for range 3 {
					var err error
					if l.Bits() == 64 {
						err = take(c.Sequencer("orders"), seen, l.Decompose)
					} else {
						err = take(c.Sequencer128("orders"), seen, l.Decompose128)
					}
					if err != nil {
						t.Errorf("%s over %s: %v", layout, scheme, err)
					}
				}
				want := 3
				if !l.HasRuns() {
					want = 4 // the first answer is that there are no runs
				}
				if len(seen) != 1500 || h.Requests() != want {
					t.Errorf("%s over %s: %d IDs with %d requests, want 1500 with %d", layout, scheme, len(seen), h.Requests(), want)
				}
				_, err := c.Sequencer("wide").NextBatch(t.Context(), 3)
				if l.Bits() == 64 {
					other = "Sequencer"
					_, err = c.Sequencer128("wide").NextBatch(t.Context(), 3)
				}
				if err == nil || !strings.Contains(err.Error(), "use the Client's method "+other) {
					t.Errorf("%s over %s, with the other method: %v", layout, scheme, err)
				}
			})
		}
	}
}

// take adds the IDs of a batch.
func take[I firn.AnyID](q *SequencerOf[I], seen map[firn.ID128]bool, decompose func(I) (firn.Parts, error)) error {
	b, err := q.NextBatch(context.Background(), 500)
	for id := range b.All() {
		if _, err := decompose(id); err != nil {
			return err
		}
		seen[numberOf(id)] = true
	}
	return err
}

// If every server takes too long for a batch, smaller ones are requested.
func TestSlowLayout(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		n.node(t, "a", 1, "bits=time:40.node:4.seq:3,unit=1s")
		q := n.client(t, Config{Servers: []string{"http://a"}}).Sequencer("orders")
		start := time.Now()
		if b, err := q.NextBatch(t.Context(), 60); err != nil || b.Len() != 60 || q.Stats().Fetches != 2 || time.Since(start) > 12*time.Second {
			t.Errorf("NextBatch(60) = %d IDs in %d batches, %v after %v, want 60 in 2", b.Len(), q.Stats().Fetches, err, time.Since(start))
		}
	})
}

// Close ends waits and work in progress; the bubble ends only when no goroutine
// is left.
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		h := n.node(t, "a", 1, "default")
		h.Delay(time.Hour)
		defer h.Close()
		c := n.client(t, Config{Servers: []string{"http://a"}})
		q := c.Sequencer("orders")
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if id, err := q.Next(t.Context()); err != firn.ErrClosed || id != 0 {
					t.Errorf("Next() = %v, %v, want firn.ErrClosed", id, err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		must.Do(t, q.Close(t.Context()))
		all.Wait()
		if _, err := q.TryNext(); err != firn.ErrClosed || time.Since(start) != 0 {
			t.Errorf("TryNext() = %v, want firn.ErrClosed", err)
		}
		if _, err := q.NextBatch(t.Context(), 1); err != firn.ErrClosed {
			t.Errorf("NextBatch() = %v, want firn.ErrClosed", err)
		}
		h.Delay(0)
		again := c.Sequencer("orders")
		if _, err := again.Next(t.Context()); err != nil || again == q {
			t.Errorf("a new sequencer of the name: %v", err)
		}
		for range 2 {
			must.Do(t, c.Close(t.Context()))
		}
		for _, q := range []*Sequencer{again, c.Sequencer("orders"), c.Sequencer("new")} {
			if err := q.Fill(t.Context(), make([]firn.ID, 1)); err != firn.ErrClosed {
				t.Errorf("Fill() = %v, want firn.ErrClosed", err)
			}
		}
		if _, err := c.Sequencer128("new").Next(t.Context()); err != firn.ErrClosed {
			t.Errorf("Next() = %v, want firn.ErrClosed", err)
		}
	})
}

// A caller that gives up harms neither other callers nor the reputation of the
// server.
func TestCancelledCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		h := n.node(t, "a", 1, "default")
		h.Delay(time.Second)
		c := n.client(t, Config{Servers: []string{"http://a"}})
		q := c.Sequencer("orders")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := q.Next(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Next() = %v, want Canceled", err)
			}
		})
		all.Go(func() {
			if _, err := q.NextBatch(ctx, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("NextBatch() = %v, want Canceled", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if _, err := q.Next(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
		if s := c.set.health[0]; s.failures != 0 || h.Requests() != 3 { // the fetch that ended with its call is made again
			t.Errorf("%+v after %d requests", s, h.Requests())
		}
		// After a call that waits long, and in vain, others prefer another
		// server.
		h.Delay(time.Hour)
		defer h.Close()
		for _, call := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := q.NextBatch(ctx, 1); return err },
			func(ctx context.Context) error { _, err := c.Sequencer("others").Next(ctx); return err },
		} {
			ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || c.ServerErrors()[0] == nil {
				t.Errorf("%v, and then %v", err, c.ServerErrors())
			}
		}
	})
}

// A call that gives up says why it waited: that the token failed, which server is
// silent, or that it is too early to tell. If its caller cancels it, that is no
// outage, unless a server is known to have failed.
func TestReasonOfTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		down := errors.New("down")
		a := n.node(t, "a", 1, "default")
		a.Delay(time.Hour)
		defer a.Close()
		failing := Config{TokenSource: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", errors.Join(down, ctx.Err())
		}}
		for _, test := range []struct {
			config      Config
			limit       time.Duration
			ended       error
			reason      string
			unavailable bool
		}{
			{failing, time.Second, context.DeadlineExceeded, "get a token: down", false},
			{Config{}, time.Second, context.DeadlineExceeded, "no answer after", true},
			{Config{}, time.Millisecond, context.DeadlineExceeded, "no answer so far", true},
			{Config{}, time.Second, context.Canceled, "no answer after", true},
			{Config{}, time.Millisecond, context.Canceled, "no answer so far", false},
		} {
			test.config.Servers = []string{"http://a"}
			q := n.client(t, test.config).Sequencer("orders")
			next := func(ctx context.Context) error { _, err := q.Next(ctx); return err }
			for call, do := range []func(context.Context) error{
				next, next, // the first one fetches, the second one waits for a fetch
				func(ctx context.Context) error { _, err := q.NextBatch(ctx, 2); return err },
			} {
				ctx, cancel := context.WithCancel(t.Context())
				if test.ended == context.Canceled {
					time.AfterFunc(test.limit, cancel)
				} else {
					ctx, cancel = context.WithTimeout(ctx, test.limit)
				}
				err := do(ctx)
				cancel()
				if !errors.Is(err, test.ended) || !strings.Contains(err.Error(), test.reason) ||
					errors.Is(err, firn.ErrUnavailable) != test.unavailable {
					t.Errorf("%q within %v: call %d: %v, want %v, and ErrUnavailable: %t",
						test.reason, test.limit, call, err, test.ended, test.unavailable)
				}
			}
		}
	})
}

func TestErrorText(t *testing.T) {
	e := &Error{Sequencer: "orders", Server: "http://a", Status: 503, Kind: "busy", Detail: "no ID is free"}
	if got, want := e.Error(), `client: "orders" at http://a: 503 busy: no ID is free`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e = &Error{Sequencer: "orders", Server: "http://a", Status: 404}
	if got, want := e.Error(), `client: "orders" at http://a: 404 not found`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for kind, want := range map[Kind]error{
		KindBusy: firn.ErrExhausted, KindNoGrant: firn.ErrGrantOver, KindTimeOver: firn.ErrTimeOver,
		KindBatchTooLarge: firn.ErrBatchTooLarge, KindStoreUnavailable: firn.ErrUnavailable, KindMoved: grant.ErrDetached,
	} {
		for _, other := range []Kind{KindBadConfig, "", "https://proxy/busy"} {
			if !errors.Is(&Error{Kind: kind}, want) || errors.Is(&Error{Kind: other}, want) {
				t.Errorf("%s does not match %v alone: so does %q", kind, want, other)
			}
		}
	}
	for text, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-1": 0, "1.5": 0, "x": 0, "Fri, 31 Dec 1999 23:59:59 GMT": 0, "99999999999999": 0} {
		if got := retryAfter(text); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestUnavailable: a call that no server answers is unavailable, unless one of
// them has found another problem.
func TestUnavailable(t *testing.T) {
	down := errors.New("connection refused")
	for _, c := range []struct {
		name string
		errs []error
		want bool
	}{
		{"down", []error{down}, true},
		{"something else answers", []error{&answerError{"orders", "a", "it is HTML"}}, true},
		{"a proxy without a server", []error{&Error{Status: 502}}, true},
		{"draining", []error{down, &Error{Status: 503, Kind: KindDraining}}, true},
		{"the store is down", []error{down, &Error{Status: 503, Kind: KindStoreUnavailable}}, true},
		{"no node ID is free", []error{down, &Error{Status: 503, Kind: KindNodesExhausted}}, false},
		{"busy", []error{&Error{Status: 503, Kind: KindBusy}, down}, false},
		{"a limit", []error{&Error{Status: 429, Kind: KindRateLimited}}, false},
		{"a wrong token", []error{down, &Error{Status: 401, Kind: KindUnauthorized}}, false},
		{"a wrong path", []error{down, &Error{Status: 404}}, false},
	} {
		for _, cause := range []error{nil, context.DeadlineExceeded} {
			if got := errors.Is(&giveUpError{"orders", cause, c.errs}, firn.ErrUnavailable); got != c.want {
				t.Errorf("%s: it is unavailable: %t, want %t", c.name, got, c.want)
			}
		}
	}
}

// longRuns returns a Sequencer with enough IDs for a test, in one batch.
func longRuns(tb testing.TB, count int) *Sequencer {
	h := NewTestHandler(tb, 0, "default")
	s := httptest.NewServer(h)
	tb.Cleanup(s.Close)
	return newClient(tb, Config{Servers: []string{s.URL}, Prefetch: &firn.PrefetchOptions{Count: count, MaxCount: count}}).Sequencer("orders")
}

// TestAllocs: IDs that were fetched cost no allocation, in the Prefetcher either.
func TestAllocs(t *testing.T) {
	q := longRuns(t, 50_000)
	ctx := t.Context()
	must.Get(q.Next(ctx))(t)
	dst := make([]firn.ID, 10)
	if n := testing.AllocsPerRun(1000, func() { q.Next(ctx); q.TryNext(); q.Fill(ctx, dst) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestBadNames(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		h := n.node(t, "a", 1, "default")
		c := n.client(t, Config{Servers: []string{"http://a"}})
		for name, requests := range map[string]int{"": 0, ".": 0, "..": 0, "a/b": 1, "../x": 1, "a?count=5": 1, "ä": 1, "a b": 1} {
			before := h.Requests()
			if id, err := c.Sequencer(name).Next(t.Context()); err == nil || id != 0 || h.Requests()-before != requests {
				t.Errorf("%q: %v, %v after %d requests, want %d", name, id, err, h.Requests()-before, requests)
			}
		}
	})
}
