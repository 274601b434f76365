package client

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/pipes"
)

// A network is a set of servers in memory, for clients in a synctest bubble.
// They are named by their hosts; a host without a server refuses connections.
type network struct {
	mu      sync.Mutex
	hosts   map[string]*host
	dials   map[string]int
	open    map[io.Closer]string // the connections and answers of clients, by host
	servers []*http.Server
}

// inBubble runs a test in a bubble, with a network. At its end, after the
// clients were closed, no connection or answer is left open, and synctest
// checks that no goroutine is: however the calls of the test have ended.
func inBubble(t *testing.T, test func(t *testing.T, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
		n := &network{hosts: make(map[string]*host), dials: make(map[string]int), open: make(map[io.Closer]string)}
		t.Cleanup(func() {
			synctest.Wait()
			n.mu.Lock()
			for _, host := range n.open {
				t.Errorf("a connection to %s, or its answer, is left open after Close", host)
			}
			n.mu.Unlock()
			for _, s := range n.servers {
				s.Close()
			}
		})
		test(t, n)
	})
}

// A host accepts connections.
type host struct {
	*pipes.Listener
	gate *gate // nil if it cannot be stopped
}

// listen returns the listener of a host.
func (n *network) listen(name string) *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[name] = &host{Listener: pipes.New()}
	return n.hosts[name]
}

// serve starts a server at http://host.
func (n *network) serve(host string, h http.Handler) {
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	l := n.listen(host)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers = append(n.servers, s)
	go s.Serve(l)
}

// A TestHandler is a clienttest.Handler.
type TestHandler interface {
	http.Handler
	FailNext(n int, kind Kind)
	Delay(d time.Duration)
	RequireToken(token string)
	Requests() int
	Taken() uint64
	Close()
}

// NewTestHandler returns a handler that makes IDs. Package clienttest imports
// this one, whose external tests therefore set the function.
var NewTestHandler func(t testing.TB, node uint64, layout string) TestHandler

// node starts a server that makes IDs, at http://host.
func (n *network) node(t *testing.T, host string, node uint64, layout string) TestHandler {
	t.Helper()
	h := NewTestHandler(t, node, layout)
	n.serve(host, h)
	return h
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, _ := strings.Cut(address, ":")
	n.mu.Lock()
	l := n.hosts[host]
	n.dials[host]++
	n.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	c, s := net.Pipe()
	if g := l.gate; g != nil {
		if g.how == "connect" {
			select {
			case <-g.wait():
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		n.mu.Lock()
		g.conns = append(g.conns, c)
		n.mu.Unlock()
		s = gatedConn{s, g}
	}
	switch err := l.Pass(ctx, s); {
	case err == net.ErrClosed:
		return nil, errors.New("connection refused")
	case err != nil:
		return nil, err
	}
	client := &clientConn{c, n}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[client] = host
	return client, nil
}

// A clientConn is a client's end of a connection.
type clientConn struct {
	net.Conn
	network *network
}

func (c *clientConn) Close() error {
	c.network.closed(c)
	return c.Conn.Close()
}

// An openBody is the body of an answer.
type openBody struct {
	io.ReadCloser
	network *network
}

func (b *openBody) Close() error {
	b.network.closed(b)
	return b.ReadCloser.Close()
}

func (n *network) closed(c io.Closer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, c)
}

// A recordingTransport records the answers that a client has to close.
type recordingTransport struct {
	*http.Transport
	network *network
}

func (r recordingTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	resp, err := r.Transport.RoundTrip(q)
	if err == nil {
		body := &openBody{resp.Body, r.network}
		resp.Body = body
		r.network.mu.Lock()
		defer r.network.mu.Unlock()
		r.network.open[body] = q.URL.Host
	}
	return resp, err
}

func (n *network) dialled(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[host]
}

// client makes a client of this network, and closes it at the end of the test.
func (n *network) client(t *testing.T, c Config) *Client {
	t.Helper()
	if slices.ContainsFunc(c.Servers, func(text string) bool { return strings.HasPrefix(text, "http") }) {
		transport := &http.Transport{DialContext: n.dial}
		t.Cleanup(transport.CloseIdleConnections) // after the client's Close
		c.HTTPClient = &http.Client{Transport: recordingTransport{transport, n}}
	}
	client := newClient(t, c)
	for _, s := range client.set.servers {
		if s.pool != nil {
			s.pool.dial = n.dial
		}
	}
	return client
}

// newClient makes a client, and closes it at the end of the test.
func newClient(t testing.TB, c Config) *Client {
	t.Helper()
	client := must.Get(New(c))(t)
	t.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return client
}
