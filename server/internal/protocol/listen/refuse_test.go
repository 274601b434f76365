package listen

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// get asks over a connection that stays.
func get(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(must.Patience))
	must.Get(io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"))(t)
	return must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
}

// TestTooManyConnections: one connection too many gets an error in its
// protocol. The others continue, and when one of them leaves there is room
// again.
func TestTooManyConnections(t *testing.T) {
	s := serve(t, Config{MaxConns: 2})
	a, b := s.dial(t), s.dial(t)
	defer a.Close()
	for _, conn := range []net.Conn{a, b} {
		if r := get(t, conn); r.StatusCode != 200 {
			t.Fatal(r.Status)
		}
	}
	if n := s.Open(HTTP); n != 2 {
		t.Errorf("Open(HTTP) = %d, want 2", n)
	}

	c := s.dial(t)
	r := get(t, c)
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	must.Do(t, json.NewDecoder(r.Body).Decode(&p))
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || !r.Close || r.Header.Get("Content-Type") != "application/problem+json" ||
		p.Type != "about:blank" || p.Title != "Service Unavailable" || p.Status != 503 || !strings.Contains(p.Detail, "too many connections") {
		t.Errorf("HTTP: %v, %v, %+v", r.Status, r.Header, p)
	}
	if _, err := io.Copy(io.Discard, c); err != nil { // until the end
		t.Errorf("after it: %v", err)
	}
	c.Close()
	for _, text := range []string{"PING\r\n", "*1\r\n$4\r\nPING\r\n", strings.Repeat("PING\r\n", 5000)} {
		if got, want := ask(t, s.dial(t), text, 1<<20), "-ERR max number of clients reached\r\n"; got != want {
			t.Errorf("RESP: %q, want %q", got, want)
		}
	}
	if got := ask(t, s.dial(t), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1<<20); got != "" {
		t.Errorf("gRPC: %q, want nothing", got)
	}

	for _, conn := range []net.Conn{a, b} {
		if r := get(t, conn); r.StatusCode != 200 {
			t.Errorf("one that is inside: %v", r.Status)
		}
	}
	b.Close()
	must.Await(t, func() bool { return s.Open(HTTP) <= 1 }, "its slot is given back")
	if got := ask(t, s.dial(t), "PING\r\n", 1000); !strings.Contains(got, "resp false") {
		t.Errorf("when one has left: %q", got)
	}
}

// TestFullOfTheSilent: more than can be refused at a time, that say nothing,
// keep others out no longer than a refusal may take, which is a second or less
// if Hello is less, and end with the Mux.
func TestFullOfTheSilent(t *testing.T) {
	for _, tt := range []struct{ hello, want time.Duration }{{5 * time.Second, refuseTimeout}, {refuseTimeout / 2, refuseTimeout / 2}} {
		synctest.Test(t, func(t *testing.T) {
			l := nettest.NewPipes()
			serveMux(t, New(l, Config{MaxConns: 1, Hello: tt.hello}))
			first := l.Dial()
			if r := get(t, first); r.StatusCode != 200 {
				t.Fatal(r.Status)
			}
			begin := time.Now()
			for range 2 * maxRefusals {
				defer l.Dial().Close()
			}
			if took := time.Since(begin); took != tt.want {
				t.Errorf("Hello %v: twice as many as can be refused were accepted within %v, want %v", tt.hello, took, tt.want)
			}
			first.Close() // and a silent one may take its slot
			time.Sleep(tt.hello)
			synctest.Wait()
			next := l.Dial()
			if r := get(t, next); r.StatusCode != 200 {
				t.Errorf("Hello %v: after another %[1]v: %s, want 200", tt.hello, r.Status)
			}
			next.Close()
		})
	}
}

func secured(conn net.Conn, pool *x509.CertPool) net.Conn {
	return tls.Client(conn, &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"http/1.1"}})
}

// TestFullWithTLS: the refusal is encrypted too, and has the same text.
func TestFullWithTLS(t *testing.T) {
	cert, pool := nettest.Certificate(t)
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1", "h2"}}
	s := serve(t, Config{TLS: config, MaxConns: 1})
	inside := secured(s.dial(t), pool)
	defer inside.Close()
	if r := get(t, inside); r.StatusCode != 200 {
		t.Fatal(r.Status)
	}
	outside := secured(s.dial(t), pool)
	defer outside.Close()
	if r := get(t, outside); r.StatusCode != 503 {
		t.Errorf("%v, want 503", r.Status)
	}
	if r := get(t, inside); r.StatusCode != 200 {
		t.Errorf("one that is inside: %v", r.Status)
	}
}
