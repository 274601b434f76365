//go:build unix

package kubestore

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/internal/test/kubetest"
	"github.com/firnid/firn/internal/test/must"
)

// A proxy stands between a store and the API server, like a load balancer. It
// passes requests on, unless it has a fault for them.
type proxy struct {
	url     string
	reverse httputil.ReverseProxy
	writes  atomic.Int64 // write requests of the store

	mu    sync.Mutex
	fault func(w http.ResponseWriter, q *http.Request, pass func() passed) bool // returns false if it has not answered
}

// A passed is an answer of the API server.
type passed struct {
	code   int
	header http.Header
	body   []byte
}

func startProxy(t testing.TB, c *kubetest.Cluster) *proxy {
	t.Helper()
	text := must.Get(os.ReadFile(c.CA()))(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	p := &proxy{reverse: httputil.ReverseProxy{
		Rewrite: func(q *httputil.ProxyRequest) {
			q.SetURL(&url.URL{Scheme: "https", Host: c.Address})
			q.Out.Header.Set("Authorization", "Bearer "+kubetest.AdminToken) // clients do not send it without TLS
			q.Out.Header.Del("Accept-Encoding")
		},
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	}}
	server := httptest.NewServer(http.HandlerFunc(p.serve))
	p.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	return p
}

// proxied opens two stores in a new namespace, one of them by a proxy.
func proxied(t testing.TB) (c *kubetest.Cluster, p *proxy, namespace string, s, direct *store) {
	t.Helper()
	c = sharedCluster(t)
	p = startProxy(t, c)
	namespace = newNamespace(t, c)
	return c, p, namespace, open(t, Options{Kubeconfig: c.Kubeconfig(p.url, namespace, "")}), open(t, Options{Kubeconfig: c.Kubeconfig("", namespace, "")})
}

// setWrites sets a fault that answers all writes.
func (p *proxy) setWrites(fault func(w http.ResponseWriter, q *http.Request, pass func() passed)) {
	p.set(func(w http.ResponseWriter, q *http.Request, pass func() passed) bool {
		if q.Method == http.MethodGet {
			return false
		}
		fault(w, q, pass)
		return true
	})
}

// set sets the fault; nil means none.
func (p *proxy) set(fault func(w http.ResponseWriter, q *http.Request, pass func() passed) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

func (p *proxy) serve(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	if q.Method != http.MethodGet {
		p.writes.Add(1)
	}
	p.mu.Lock()
	fault := p.fault
	p.mu.Unlock()
	if fault != nil && fault(w, q, func() passed { return p.pass(q, body) }) {
		return
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	p.reverse.ServeHTTP(w, q)
}

// pass passes a request on, again with each call.
func (p *proxy) pass(q *http.Request, body []byte) passed {
	again := q.Clone(q.Context())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	w := httptest.NewRecorder()
	p.reverse.ServeHTTP(w, again)
	return passed{w.Code, w.Header(), w.Body.Bytes()}
}

func (a passed) to(w http.ResponseWriter) {
	w.Header().Set("Content-Type", a.header.Get("Content-Type"))
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body)
}

// answer answers like the API server when it refuses or, without a reason, like
// a proxy.
func answer(w http.ResponseWriter, code int, reason string) {
	if reason == "" {
		http.Error(w, "upstream is not well", code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if reason == "TooManyRequests" {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused for the test","reason":%q,"code":%d}`, reason, code)
}

// cut ends the connection of a request, after some bytes of an answer.
func cut(w http.ResponseWriter, after []byte) {
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = buffered.Write(after)
	_ = buffered.Flush()
	_ = conn.Close()
}
