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

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/pipes"
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

// TestForgottenConnection: a connection that no longer carries anything, while
// new ones do, costs a member less than the 40 s that a renewal has.
func TestForgottenConnection(t *testing.T) {
	source := httptest.NewTLSServer(http.NotFoundHandler())
	certificates := source.TLS.Certificates
	source.Close()
	synctest.Test(t, func(t *testing.T) {
		listener := pipes.New()
		server := &http.Server{
			Handler:   http.NotFoundHandler(),
			TLSConfig: &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}},
		}
		served := make(chan error)
		go func() { served <- server.ServeTLS(listener, "", "") }()
		config := &rest.Config{Host: "https://api.test", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
		s := must.Get(newStore(config, "ns", "firn"))(t)
		var last *atomic.Bool
		dials := 0
		s.dialer = func(context.Context, string, string) (net.Conn, error) {
			last = new(atomic.Bool)
			dials++
			return forgotten{listener.Dial(), last}, nil
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
		_ = server.Close()
		<-served
	})
}
