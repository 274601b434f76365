package server

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A browserRequest is a request that a page can make a browser send to another
// origin without asking that origin first.
type browserRequest struct {
	method, path string
	headers      []string
	body         string
	silent       bool // over plain HTTP nothing says that a page of another origin sent it
}

const fromEvil = "Origin: http://evil.example"

var browserRequests = []browserRequest{
	{"GET", "/v1/sequencers/NAME/next", []string{"Accept: image/avif,*/*;q=0.8"}, "", true},                                         // <img>, <script>, fetch no-cors
	{"GET", "/v1/sequencers/NAME/next?count=7", []string{"Accept: text/html,*/*;q=0.8"}, "", true},                                  // a link, a frame, a form with GET
	{"GET", "/v1/sequencers/NAME/next", []string{fromEvil}, "", false},                                                              // fetch
	{"GET", "/v1/sequencers/NAME/next", []string{fromEvil, "Upgrade: websocket", "Connection: Upgrade"}, "", false},                 // new WebSocket
	{"POST", "/v1/sequencers/NAME/next", []string{fromEvil, "Content-Type: text/plain"}, "", false},                                 // fetch no-cors
	{"POST", "/v1/sequencers/NAME/next", []string{"Origin: null", "Content-Type: application/x-www-form-urlencoded"}, "a=b", false}, // of a sandboxed frame
	{"POST", "/v1/sequencers/NAME/attach", []string{fromEvil}, "", false},
	{"POST", "/v1/sequencers/NAME/detach", []string{fromEvil}, "", false},
	{"POST", "/create", []string{fromEvil, "Accept: text/html", "Content-Type: application/x-www-form-urlencoded"}, "name=NAME&layout=default", false},
	{"POST", "/sequencers/NAME/detach", []string{fromEvil, "Accept: text/html", "Content-Type: application/x-www-form-urlencoded"}, "name=NAME", false},
	{"POST", "/sign-in", []string{fromEvil, "Accept: text/html"}, "", false},
	{"POST", "/sign-out", []string{"Origin: null", "Accept: text/html"}, "", false},
	{"POST", "/make", []string{fromEvil, "Accept: text/html", "Content-Type: application/x-www-form-urlencoded"}, "name=NAME", false},
	{"POST", "/v1/sequencers/NAME/next", []string{fromEvil, "Content-Type: text/plain"}, "NEXT NAME\r\nINCR NAME\r\n", false},
	{"OPTIONS", "/v1/sequencers/NAME", []string{fromEvil, "Access-Control-Request-Method: DELETE"}, "", false},
	{"HEAD", "/v1/sequencers/NAME/next", nil, "", true},
}

// An exposedListener says that other machines can reach it.
type exposedListener struct{ net.Listener }

func (l exposedListener) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4zero, Port: l.Listener.Addr().(*net.TCPAddr).Port}
}

// TestOtherSites: a page of another origin, or of a name that resolves to the
// server, changes nothing and takes no ID. One thing is not prevented: over
// plain HTTP to another machine, a browser does not say whose GET it sends. It
// takes IDs, but creates nothing.
func TestOtherSites(t *testing.T) {
	tokens, token := tokensOf(t)
	for _, mode := range []struct {
		name, host           string // the host is one under which the server is known
		exposed, trustworthy bool   // browsers send Sec-Fetch-Site to a trustworthy one
		tokens               string
	}{
		{"loopback", "localhost:3476", false, true, ""},
		{"network", "10.1.2.3:3476", true, false, ""},
		{"container, published on loopback", "localhost:3476", true, true, ""},
		{"behind TLS, with tokens", "ids.example", true, true, tokens},
	} {
		store := new(memstore.Store)
		l := net.Listener(nettest.Listen(t))
		address := l.Addr().String()
		if mode.exposed {
			l = exposedListener{l}
		}
		s := serveOn(t, Config{Store: store, TokenFile: mode.tokens}, l)
		authorization := ""
		if mode.tokens != "" {
			authorization = "Authorization: Bearer " + token + "\r\n"
		}
		ask := func(q browserRequest, name, host string, more ...string) (int, string) {
			replace := strings.NewReplacer("NAME", name).Replace
			headers := append(append([]string{"Host: " + host}, q.headers...), more...)
			return send(t, address, fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\nContent-Length: %d\r\n\r\n%s",
				q.method, replace(q.path), strings.Join(headers, "\r\n"), len(replace(q.body)), replace(q.body)))
		}
		issued := func() (n uint64) {
			s.backends.storeBackend.Usage(func(_ string, u *service.Usage) { n += u.IDs })
			return n
		}
		if code, answer := send(t, address, "POST /v1/sequencers/old/next HTTP/1.1\r\nHost: "+mode.host+"\r\n"+authorization+"Content-Length: 0\r\n\r\n"); code != 200 {
			t.Fatalf("%s: a client gets %d %s", mode.name, code, answer)
		}
		before := issued()
		settings := must.Get(grant.Lookup(t.Context(), store, "old"))(t)
		taken := uint64(0)
		for i, q := range browserRequests {
			for _, name := range []string{"old", fmt.Sprint("new-", i)} {
				sites := []string(nil)
				if mode.trustworthy {
					sites = []string{"Sec-Fetch-Site: cross-site"}
				}
				code, answer := ask(q, name, mode.host, sites...)
				if strings.Contains(answer, "Access-Control") {
					t.Errorf("%s, %s %s: the answer has CORS headers: %s", mode.name, q.method, q.path, answer)
				}
				if mode.name == "network" && q.silent && q.method == "GET" {
					if want := map[bool]int{true: 200, false: 404}[name == "old"]; code != want {
						t.Errorf("%s, %s %s: %d, want %d: %s", mode.name, q.method, q.path, code, want, answer)
					}
					if code == 200 {
						taken += map[bool]uint64{true: 7, false: 1}[strings.Contains(q.path, "count=7")]
					}
				} else if q.method == "POST" && mode.tokens == "" && code != 403 || code == 200 && q.path != "/make" {
					t.Errorf("%s, %s %s: %d %s", mode.name, q.method, q.path, code, answer)
				}
				if mode.tokens != "" {
					continue // with TLS, no name of an attacker reaches it
				}
				// DNS rebinding: to the browser, the page and the server are
				// one origin.
				own := q
				own.headers = []string{"Origin: http://evil.example:3476", "Sec-Fetch-Site: same-origin"}
				for _, headers := range [][]string{nil, own.headers[:1], own.headers} {
					own.headers = headers
					if code, answer := ask(own, name, "evil.example:3476"); code != 421 {
						t.Errorf("%s, %s %s from evil.example: %d %s", mode.name, q.method, q.path, code, answer)
					}
				}
			}
		}
		if got := issued() - before; got != taken {
			t.Errorf("%s: other sites have taken %d IDs, want %d", mode.name, got, taken)
		}
		if got, err := grant.Lookup(t.Context(), store, "old"); got != settings {
			t.Errorf("%s: other sites have changed %+v into %+v, %v", mode.name, settings, got, err)
		}
		for i := range browserRequests {
			if _, err := grant.Lookup(t.Context(), store, fmt.Sprint("new-", i)); err == nil {
				t.Errorf("%s: another site has created the sequencer of %s %s", mode.name, browserRequests[i].method, browserRequests[i].path)
			}
		}
		// A program creates by POST, with a token by GET, and on loopback by
		// GET.
		for _, method := range []string{"GET", "POST"} {
			want := 200
			if method == "GET" && mode.exposed && mode.tokens == "" {
				want = 404
			}
			code, answer := send(t, address, method+" /v1/sequencers/own-"+method+"/next HTTP/1.1\r\nHost: "+mode.host+"\r\n"+authorization+"Content-Length: 0\r\n\r\n")
			if code != want {
				t.Errorf("%s: %s gets %d, want %d: %s", mode.name, method, code, want, answer)
			}
		}
	}
}
