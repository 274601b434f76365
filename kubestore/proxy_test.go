//go:build unix

package kubestore

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/internal/kubetest"
	"github.com/firnid/firn/internal/must"
)

// A proxy stands between a store and the API server, like a load balancer. It
// passes requests on, unless it has a fault for them.
type proxy struct {
	url    string
	client http.Client
	target string
	writes atomic.Int64 // write requests of the store

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
	p := &proxy{target: "https://" + c.Address}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	p.client.Transport = transport
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
	if q.URL.Query().Get("watch") == "true" {
		p.stream(w, q)
		return
	}
	p.pass(q, body).to(w)
}

func (p *proxy) request(q *http.Request, body []byte) (*http.Response, error) {
	again, err := http.NewRequestWithContext(q.Context(), q.Method, p.target+q.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	again.Header = q.Header.Clone()
	again.Header.Set("Authorization", "Bearer "+kubetest.AdminToken) // clients do not send it without TLS
	again.Header.Del("Accept-Encoding")
	return p.client.Do(again)
}

// pass passes a request on, again with each call.
func (p *proxy) pass(q *http.Request, body []byte) passed {
	r, err := p.request(q, body)
	if err != nil {
		return passed{http.StatusBadGateway, http.Header{}, []byte(err.Error())}
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return passed{http.StatusBadGateway, http.Header{}, []byte(err.Error())}
	}
	return passed{r.StatusCode, r.Header, text}
}

func (a passed) to(w http.ResponseWriter) {
	w.Header().Set("Content-Type", a.header.Get("Content-Type"))
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body)
}

func (p *proxy) stream(w http.ResponseWriter, q *http.Request) {
	r, err := p.request(q, nil)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = r.Body.Close() }()
	w.WriteHeader(r.StatusCode)
	b := make([]byte, 1<<16)
	for {
		n, err := r.Body.Read(b)
		if n > 0 {
			_, _ = w.Write(b[:n])
			w.(http.Flusher).Flush()
		}
		if err != nil {
			return
		}
	}
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
