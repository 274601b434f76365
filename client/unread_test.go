//go:build unix && !aix

package client

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
)

// An answer that no request asked for is not given to the next request, in
// plain text or over TLS.
func TestUnaskedAnswer(t *testing.T) {
	for _, scheme := range []string{"firn", "firns"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		config := Config{Servers: []string{scheme + "://" + l.Addr().String()}}
		if scheme == "firns" {
			s := httptest.NewUnstartedServer(nil)
			s.StartTLS() // for its certificate
			defer s.Close()
			config.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
			config.TLS.RootCAs.AddCert(s.Certificate())
			l = tls.NewListener(l, &tls.Config{Certificates: s.TLS.Certificates})
		}
		d := newRESP(t, 1, "default")
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go d.serve(conn)
			}
		}()
		defer d.cut()
		defer l.Close()

		c := newClient(t, config)
		q, p := c.Sequencer("orders"), c.roster.servers[0].pool
		if b, err := q.NextBatch(t.Context(), 3); err != nil || b.Len() != 3 {
			t.Fatalf("%d IDs, %v", b.Len(), err)
		}
		const stranger = 7
		var conn net.Conn
		d.set(func() { conn = d.conns[0] })
		if _, err := io.WriteString(conn, runsRESP([3]string{"0000000000000007", "1", "3"})); err != nil {
			t.Fatal(err)
		}
		used := p.idle[0]
		for !isUnread(used.raw) {
			runtime.Gosched()
		}
		b, err := q.NextBatch(t.Context(), 3)
		if err != nil || b.Len() != 3 || slices.Contains(slices.Collect(b.All()), stranger) {
			t.Errorf("%s: %v, %v, want the IDs of this request", scheme, slices.Collect(b.All()), err)
		}
		if len(p.idle) != 1 || p.idle[0] == used {
			t.Errorf("%s: the connection is still in use", scheme)
		}
	}
}
