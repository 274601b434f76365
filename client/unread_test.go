package client

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/client/clienttest"
)

// An answer that no request asked for is not given to the next request, however
// it arrives: in plain text or over TLS, and together with the answer before it
// or after that.
func TestUnaskedAnswer(t *testing.T) {
	if !seesUnread {
		t.Skip("the owner of a pipe reads all answers on this system")
	}
	for _, test := range []struct {
		name             string
		secure, together bool
	}{
		{"plain", false, false}, {"plain, in one segment", false, true},
		{"TLS", true, false}, {"TLS, in one segment", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := clienttest.NewHandler(nil)
			if err != nil {
				t.Fatal(err)
			}
			d := &direct{Handler: h}
			s := httptest.NewUnstartedServer(d)
			corks := &corkListener{Listener: s.Listener}
			s.Listener = corks
			config := Config{Servers: []string{"http://" + s.Listener.Addr().String()}}
			if test.secure {
				s.StartTLS()
				config.Servers[0] = s.URL
				config.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
				config.TLS.RootCAs.AddCert(s.Certificate())
			} else {
				s.Start()
			}
			defer s.Close()
			defer d.cut()
			c := newClient(t, config)
			p := openPipe(t, c, c.Sequencer("orders"))

			const stranger = 7
			extra := runsRESP([3]string{"0000000000000007", "1", "3"})
			hang := make(chan struct{})
			defer close(hang)
			if test.together {
				d.set(func() {
					d.answer = func(said string) string {
						d.answer = nil
						conn := d.conns[0]
						d.mu.Unlock()
						defer d.mu.Lock()
						corks.join(func() {
							_, _ = io.WriteString(conn, said)
							_, _ = io.WriteString(conn, extra)
						})
						<-hang
						return ""
					}
				})
			}
			if b, err := c.Sequencer("orders").NextBatch(t.Context(), 3); err != nil || b.Len() != 3 {
				t.Fatalf("%d IDs, %v", b.Len(), err)
			}
			if !test.together {
				var conn net.Conn
				d.set(func() { conn = d.conns[0] })
				if _, err := io.WriteString(conn, extra); err != nil {
					t.Fatal(err)
				}
				for !isUnread(p.raw) && !p.hasEnded() {
					runtime.Gosched()
				}
			}
			b, err := c.Sequencer("users").NextBatch(t.Context(), 3)
			if err != nil || b.Len() != 3 || slices.Contains(slices.Collect(b.All()), stranger) {
				t.Errorf("%v, %v, want the IDs of this request", slices.Collect(b.All()), err)
			}
			if !p.hasEnded() {
				t.Error("the connection is still in use")
			}
		})
	}
}

// openPipe returns the pipe of a client with one server. No goroutine reads
// from it when it returns.
func openPipe(t *testing.T, c *Client, q *Sequencer) *pipe {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 10*time.Minute; {
		if _, err := q.NextBatch(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if p := c.roster.servers[0].link.get(""); p != nil {
			p.mu.Lock()
			reading := p.reading
			p.mu.Unlock()
			if !reading {
				return p
			}
		}
		runtime.Gosched()
	}
	t.Fatal("no RESP connection")
	return nil
}

func (p *pipe) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

// A corkListener accepts connections that can join their writes.
type corkListener struct {
	net.Listener

	mu     sync.Mutex
	corked bool
	held   []byte
	conn   net.Conn // of the bytes held
}

func (l *corkListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return corkConn{conn, l}, err
}

// join sends the writes that f makes on one connection as one.
func (l *corkListener) join(f func()) {
	l.mu.Lock()
	l.corked = true
	l.mu.Unlock()
	f()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.corked = false
	_, _ = l.conn.Write(l.held)
}

type corkConn struct {
	net.Conn
	l *corkListener
}

func (c corkConn) Write(b []byte) (int, error) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if !c.l.corked {
		return c.Conn.Write(b)
	}
	c.l.conn, c.l.held = c.Conn, append(c.l.held, b...)
	return len(b), nil
}
