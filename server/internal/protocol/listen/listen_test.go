package listen

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A service is a Mux with servers that say what they are, and how their
// connection came.
type service struct {
	*Mux
	addr string
}

// serve serves on loopback until the test ends.
func serve(t *testing.T, c Config) *service {
	t.Helper()
	m := New(nettest.Listen(t), c)
	m.refuseWithin = m.config.Hello // a second is short where other tests run too
	return serveMux(t, m)
}

func serveMux(t *testing.T, m *Mux) *service {
	t.Helper()
	var all sync.WaitGroup
	web := &http.Server{ConnContext: WithConn, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := ConnIn(r.Context())
		if r.URL.Path == "/known" {
			MarkKnown(conn)
		}
		fmt.Fprintf(w, "http %v", StateOf(conn) != nil)
	})}
	all.Go(func() { _ = web.Serve(m.Listener(HTTP)) })
	for _, p := range []Protocol{GRPC, RESP} {
		all.Go(func() {
			for {
				conn, err := m.Listener(p).Accept()
				if err != nil {
					return
				}
				all.Go(func() {
					defer conn.Close()
					text, _ := io.ReadAll(conn)
					fmt.Fprintf(conn, "%v %v %q", p, StateOf(conn) != nil, text)
				})
			}
		})
	}
	done := make(chan error, 1)
	go func() { done <- m.Serve() }()
	t.Cleanup(func() {
		for range 2 {
			if err := m.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		}
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve() = %v, want net.ErrClosed", err)
		}
		_ = web.Close()
		all.Wait()
		for _, p := range []Protocol{HTTP, GRPC, RESP} {
			// net/http does not wait for the connections that it closes.
			must.Await(t, func() bool { return m.Open(p) == 0 }, "all connections of %v are closed", p)
		}
	})
	return &service{m, m.listener.Addr().String()}
}

// ask sends text, in pieces of size bytes, and returns all that comes back.
func ask(t *testing.T, conn net.Conn, text string, size int) string {
	t.Helper()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(must.Patience))
	for rest := text; rest != ""; {
		n := min(size, len(rest))
		must.Get(io.WriteString(conn, rest[:n]))(t)
		rest = rest[n:]
	}
	_ = closeWrite(conn) // it may be closed already
	got, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) { // it was closed with bytes of ours unread
		t.Fatal(err)
	}
	return string(got)
}

func (s *service) dial(t *testing.T) net.Conn {
	t.Helper()
	conn := nettest.Dial(t, s.addr)
	return conn
}

var dialects = []struct{ text, want string }{
	{"*1\r\n$4\r\nPING\r\n", "resp"},
	{"PING\r\n", "resp"},
	{"P", "resp"},
	{"NEXT orders 3\r\n", "resp"},
	{"PRINT\r\n", "resp"},
	{"GETEX a\r\n", "resp"},
	{"\x00\x01", "resp"},
	{"FOO x HTTP/1.1\r\n", "resp"},
	{"FOO HTTP/1.1\r\n", "resp"},
	{"$3 / HTTP/1.1\r\n", "resp"},
	{strings.Repeat("F", maxMethod+1) + " / HTTP/1.1\r\n", "resp"},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "grpc"},
	{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "http"},
	{"QUERY / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "http"},
	{"OPTIONS / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "http"},
	{"FOO / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "http"},
	{"get / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "http"},
	{"PROPFIND /v1/sequencers HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "http"},
	{"M-SEARCH * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "http"},
	{"GETS /" + strings.Repeat("a", 1000) + " HTTP/1.0\r\n\r\n", "http"},
	{"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "http"},
}

// TestProtocols: each protocol is recognized, whole or byte by byte, and its
// server gets every byte.
func TestProtocols(t *testing.T) {
	s := serve(t, Config{})
	for _, d := range dialects {
		for _, size := range []int{1, 3, 1000} {
			got := ask(t, s.dial(t), d.text, size)
			want := fmt.Sprintf("%s false %q", d.want, d.text)
			if d.want == "http" {
				want = "http false"
			}
			if !strings.Contains(got, want) {
				t.Errorf("%q in pieces of %d: %q, want %q", d.text, size, got, want)
			}
		}
	}
}

func TestTLS(t *testing.T) {
	cert, pool := nettest.Certificate(t)
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1", "h2"}}
	s := serve(t, Config{TLS: config})
	for _, d := range dialects {
		offer := []string(nil)
		switch d.want {
		case "grpc":
			offer = []string{"h2"}
		case "http":
			offer = []string{"http/1.1", "h2"}
		}
		for _, offer := range [][]string{nil, offer} {
			conn := tls.Client(s.dial(t), &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: offer})
			got := ask(t, conn, d.text, 1000)
			want := fmt.Sprintf("%s true %q", d.want, d.text)
			if d.want == "http" {
				want = "http"
			}
			if !strings.Contains(got, want) {
				t.Errorf("%q with ALPN %v: %q, want %q", d.text, offer, got, want)
			}
		}
	}
	for _, method := range []string{"GET", "OPTIONS"} {
		if got := ask(t, s.dial(t), method+" / HTTP/1.1\r\n\r\n", 1000); !strings.Contains(got, "https://") {
			t.Errorf("HTTP where TLS is spoken: %q, want a hint", got)
		}
	}
	if got := ask(t, s.dial(t), "*1\r\n$4\r\nPING\r\n", 1000); got != "" {
		t.Errorf("RESP where TLS is spoken: %q, want nothing", got)
	}
}

// shake makes a handshake that fails, as a client at one end of a connection.
func shake(t *testing.T, conn net.Conn, roots *x509.CertPool, own ...tls.Certificate) {
	t.Helper()
	c := tls.Client(conn, &tls.Config{ServerName: "localhost", RootCAs: roots, Certificates: own})
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the handshake has not failed: %v", err)
	}
}

// TestRefusedCertificates: a client whose certificate is refused is a warning,
// and many are one in ten seconds. It is not long.
func TestRefusedCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, other := nettest.NewAuthority(t), nettest.NewAuthority(t)
		log, pipes := new(nettest.Output), nettest.NewPipes()
		config := &tls.Config{Certificates: []tls.Certificate{ca.Issue(t, "server", 2, time.Hour)}, ClientCAs: ca.Pool(),
			ClientAuth: tls.VerifyClientCertIfGiven}
		serveMux(t, New(pipes, Config{TLS: config, Logger: slog.New(slog.NewTextHandler(log, nil))}))
		expired := ca.Issue(t, "shop"+strings.Repeat("x", 1000), 3, -time.Minute)
		for range 50 {
			shake(t, pipes.Dial(), ca.Pool(), expired)
		}
		time.Sleep(warnEvery + 1)
		shake(t, pipes.Dial(), ca.Pool(), other.Issue(t, "unknown", 4, time.Hour))
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		const want = `level=WARN msg="client certificate refused" peer=pipe subject="CN=`
		if len(lines) != 2 || !strings.Contains(lines[0], want+"shopxxx") || !strings.Contains(lines[0], "expired") ||
			len(lines[0]) > 600 || !strings.Contains(lines[1], want+"unknown") || !strings.Contains(lines[1], "unknown authority") {
			t.Errorf("the log is\n%s", log)
		}
	})
}

// TestRefusedByClient: a client that refuses the server's certificate is a
// warning.
func TestRefusedByClient(t *testing.T) {
	cert, _ := nettest.Certificate(t)
	_, other := nettest.Certificate(t)
	log := new(nettest.Output)
	s := serve(t, Config{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	shake(t, s.dial(t), other)
	must.Await(t, func() bool { return strings.Contains(log.String(), "\n") }, "something is logged")
	if got := log.String(); !strings.Contains(got, `level=WARN msg="a client refuses the server's certificate" peer=127.0.0.1:`) {
		t.Errorf("the log is %s", got)
	}
}

// TestProtocolNotServed: what is not served is refused.
func TestProtocolNotServed(t *testing.T) {
	s := serve(t, Config{Only: []Protocol{RESP}})
	for _, d := range dialects {
		got := ask(t, s.dial(t), d.text, 1000)
		want := map[string]string{"resp": "resp false", "grpc": "", "http": "HTTP is not served here"}[d.want]
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", d.text, got, want)
		}
	}
}

// TestCloseEndsHellos: a connection whose protocol is not known yet ends with
// the Mux, at once.
func TestCloseEndsHellos(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := nettest.NewPipes()
		m := New(l, Config{})
		done := make(chan error, 1)
		go func() { done <- m.Serve() }()
		conn := l.Dial()
		begin := time.Now()
		_ = m.Close()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%v, want the end", err)
		}
		if err := <-done; !errors.Is(err, net.ErrClosed) || time.Since(begin) != 0 {
			t.Errorf("Serve = %v after %v", err, time.Since(begin))
		}
	})
}
