package kubestore

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// A forgotten is a connection that a load balancer may have forgotten: then
// nothing that is written arrives, and nothing comes back.
type forgotten struct {
	net.Conn
	is *atomic.Bool
}

func (f forgotten) Write(b []byte) (int, error) {
	if f.is.Load() {
		return len(b), nil
	}
	return f.Conn.Write(b)
}

// A pipes accepts what arrives as connections.
type pipes struct {
	conns chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error    { return nil }
func (p pipes) Addr() net.Addr  { return p }
func (p pipes) Network() string { return "pipe" }
func (p pipes) String() string  { return "pipe" }

// TestForgottenConnection: a connection that no longer carries anything, while
// new ones do, costs a member less than the 40 s that a renewal has.
func TestForgottenConnection(t *testing.T) {
	source := httptest.NewTLSServer(http.NotFoundHandler())
	certificates := source.TLS.Certificates
	source.Close()
	synctest.Test(t, func(t *testing.T) {
		listener := pipes{conns: make(chan net.Conn)}
		server := &http.Server{
			Handler:   http.NotFoundHandler(),
			TLSConfig: &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}},
		}
		served := make(chan error)
		go func() { served <- server.ServeTLS(listener, "", "") }()
		s, err := newStore(&rest.Config{Host: "https://api.test", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "ns", "firn")
		if err != nil {
			t.Fatal(err)
		}
		var last *atomic.Bool
		dials := 0
		s.dialer = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			listener.conns <- there
			last = new(atomic.Bool)
			dials++
			return forgotten{here, last}, nil
		}
		ask := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = s.Get(ctx, "v1/a/config")
			return ctx.Err() == nil
		}
		if !ask() {
			t.Fatal("the server does not answer")
		}
		last.Store(true)
		begin := time.Now()
		for !ask() && time.Since(begin) < time.Hour {
		}
		if took := time.Since(begin); took > 20*time.Second || dials != 2 {
			t.Errorf("answered after %v, over %d connections; want at most 20 s, and 2", took, dials)
		}
		_ = s.Close()
		close(listener.conns)
		_ = server.Close()
		<-served
	})
}
