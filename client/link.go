package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// respToken is the name of RESP in the header Upgrade.
const respToken = "firn-resp"

// offerHeader offers RESP in an answer, together with a Connection that names
// it, so that proxies drop both.
const offerHeader = "Firn-Upgrade"

// How long RESP is not tried with a server after it has refused, and after a
// connection has failed or ended.
const (
	refusedPause = 10 * time.Minute
	failedPause  = 250 * time.Millisecond
)

// A link is the connection over which a client speaks RESP with a server, if
// there is no proxy between them.
//
// It sends no byte of RESP before the server has confirmed twice that it
// understands it: first in an HTTP answer, with headers that proxies do not
// pass on, and then by switching a separate connection. The server refuses the
// switch if the connection does not come from the client's own address. See
// docs/decisions/client-transport.md.
type link struct {
	config *Config
	target *http.Request // request that switches a connection to RESP
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup // goroutines, each of which owns a pipe

	mu      sync.Mutex // guards the fields below
	pipe    *pipe      // nil if there is no pipe
	token   string     // the token that the pipe was made with
	opening bool
	until   time.Time // no pipe is opened before this time
	closed  bool
}

// newLink returns the link of a server, or nil if only HTTP is possible. An
// address with a path, or one for which the environment names a proxy, leads to
// a proxy; the peer of a Unix domain socket has no address to check; and an
// HTTPClient set by the caller may do more than send requests.
func newLink(c *Config, a address) *link {
	target, err := http.NewRequest(http.MethodGet, a.base+"/v1/resp", nil)
	if err != nil || c.HTTPClient != nil || a.socket != "" || target.URL.Path != "/v1/resp" {
		return nil
	}
	if proxy, err := http.ProxyFromEnvironment(target); proxy != nil || err != nil {
		return nil
	}
	target.Header.Set("User-Agent", c.UserAgent)
	target.Header.Set("Connection", "Upgrade")
	target.Header.Set("Upgrade", respToken)
	l := &link{config: c, target: target, dial: (&net.Dialer{Timeout: c.Timeout}).DialContext}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// get returns the pipe for requests with this token, or nil.
func (l *link) get(token string) *pipe {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token != token {
		return nil
	}
	return l.pipe
}

// offered opens a pipe in the background after an HTTP answer to a request with
// this token, if the answer offers RESP and there is no pipe.
func (l *link) offered(h http.Header, token string) {
	if l == nil || !slices.Equal(h[offerHeader], []string{respToken}) || !slices.Equal(h["Connection"], []string{offerHeader}) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.opening || l.pipe != nil && l.token == token || time.Now().Before(l.until) {
		return
	}
	l.opening = true
	l.all.Go(func() { l.run(token) })
}

// run opens a pipe and owns it until it ends.
func (l *link) run(token string) {
	p, err := l.open(token)
	l.mu.Lock()
	l.opening = false
	if err != nil || l.closed {
		l.pause(err)
		l.mu.Unlock()
		if p != nil {
			_ = p.conn.Close()
			p.fail(net.ErrClosed)
		}
		return
	}
	old := l.pipe
	l.pipe, l.token = p, token
	l.pause(nil) // so that alternating tokens do not open one for each request
	l.mu.Unlock()
	if old != nil {
		old.retire()
	}
	p.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pipe == p {
		l.pipe = nil
		l.pause(nil)
	}
}

// A refusal is the reason why a server does not switch to RESP.
type refusal string

func (e refusal) Error() string { return string(e) }

// pause prevents the link from opening pipes for a while. The caller holds mu.
func (l *link) pause(err error) {
	d := failedPause
	if _, refused := errors.AsType[refusal](err); refused {
		d = refusedPause
	}
	if l.until = time.Now().Add(d); err != nil && !l.closed {
		l.config.Log.Debug("RESP not used", "server", l.target.URL.Host, "pause", d, "err", err)
	}
}

// open connects, and switches from HTTP to RESP.
func (l *link) open(token string) (_ *pipe, err error) {
	ctx, cancel := context.WithTimeout(l.ctx, l.config.Timeout)
	defer cancel()
	conn, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			_ = conn.Close()
		}
	}()

	target := l.target.Clone(ctx)
	target.Header.Set("Firn-Peer", conn.LocalAddr().String())
	if err := target.Write(conn); err != nil {
		return nil, err
	}
	limit := &io.LimitedReader{R: conn, N: maxProblem} // of the headers
	r := bufio.NewReaderSize(limit, 16<<10)
	resp, err := http.ReadResponse(r, target)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != respToken {
		return nil, refusal(fmt.Sprintf("the server answered %s to the switch", resp.Status))
	}
	if err := l.greet(conn, r, token); err != nil {
		return nil, err
	}
	limit.N = math.MaxInt64
	return newPipe(conn, r, l.config.Timeout), nil
}

// connect dials, with TLS if the server uses it.
func (l *link) connect(ctx context.Context) (net.Conn, error) {
	u := l.target.URL
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	conn, err := l.dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil || u.Scheme == "http" {
		return conn, err
	}
	config := new(tls.Config)
	if l.config.TLS != nil {
		config = l.config.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	config.NextProtos = []string{"http/1.1"}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// greet authenticates to the server.
func (l *link) greet(conn net.Conn, r *bufio.Reader, token string) error {
	if token == "" {
		return nil
	}
	if _, err := conn.Write(appendCommand(nil, "AUTH", token)); err != nil {
		return err
	}
	line, err := r.ReadString('\n')
	switch {
	case err != nil:
		return err
	case line == "+OK\r\n":
	case strings.HasPrefix(line, "-ERR Client sent AUTH"): // it needs no token
	default:
		return refusal("the server does not take the token over RESP")
	}
	return nil
}

// close ends the pipe, and waits until nothing runs or ctx is done.
func (l *link) close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	p := l.pipe
	l.mu.Unlock()
	l.cancel()
	if p != nil {
		p.fail(net.ErrClosed)
	}
	return waitFor(ctx, &l.all)
}

// waitFor waits until nothing runs or ctx is done.
func waitFor(ctx context.Context, all *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
