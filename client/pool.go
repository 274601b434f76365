package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// An idle connection is closed after idleAfter, before a device on the network
// path drops it. A pool keeps mostIdle of them.
const (
	idleAfter = 90 * time.Second
	mostIdle  = 32
)

// past is a deadline that ends reads and writes at once.
var past = time.Unix(1, 0)

// A pool holds the RESP connections to a server. Each serves one request at a
// time, so that an answer cannot be taken for that of another request, and the
// goroutine of the request does all of the work: waking another one would take
// longer than the request itself.
type pool struct {
	address string      // HOST:PORT
	tls     *tls.Config // nil without TLS
	dial    func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	idle   []*respConn // the most recently used last
	closed bool
}

// A respConn is a connection that speaks RESP.
type respConn struct {
	net.Conn
	raw   syscall.RawConn // without TLS; nil if it has none
	r     *bufio.Reader
	token string      // it is authenticated with
	timer *time.Timer // closes it if idle
}

// newPool returns the pool of a server.
func newPool(c *Config, a address) *pool {
	p := &pool{address: a.resp, dial: new(net.Dialer).DialContext}
	if a.secure {
		p.tls = new(tls.Config)
		if c.TLS != nil {
			p.tls = c.TLS.Clone()
		}
		if p.tls.ServerName == "" {
			p.tls.ServerName, _, _ = net.SplitHostPort(a.resp)
		}
	}
	return p
}

// ask sends a command and reads its answer. A connection that fails, or whose
// caller gives up, is closed. If the server closed an idle connection, ask uses
// another one.
func (p *pool) ask(ctx context.Context, token string, want expectation, command []byte) (reply, error) {
	for {
		c, reused, err := p.get(ctx, token)
		if err != nil {
			return reply{}, err
		}
		stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(past) })
		a, begun, err := c.ask(token, want, command)
		if !stop() || err != nil || c.r.Buffered() > 0 {
			_ = c.Close()
		} else {
			p.put(c)
		}
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return reply{}, context.Cause(ctx)
		case !reused || begun:
			return reply{}, err
		}
	}
}

// get returns an idle connection that is authenticated with the token, or a new
// one. A connection keeps its token: a server that refuses another one would
// still accept the first.
func (p *pool) get(ctx context.Context, token string) (c *respConn, reused bool, err error) {
	for {
		p.mu.Lock()
		i := len(p.idle) - 1
		for i >= 0 && p.idle[i].token != token {
			i--
		}
		if i < 0 {
			p.mu.Unlock()
			c, err = p.open(ctx)
			return c, false, err
		}
		c = p.idle[i]
		p.idle = slices.Delete(p.idle, i, i+1)
		p.mu.Unlock()
		c.timer.Stop()
		if !c.isUnread() {
			return c, true, nil
		}
		_ = c.Close()
	}
}

// put keeps a connection for the next request.
func (p *pool) put(c *respConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= mostIdle {
		_ = c.Close()
		return
	}
	p.idle = append(p.idle, c)
	if c.timer == nil {
		c.timer = time.AfterFunc(idleAfter, func() { p.expire(c) })
	} else {
		c.timer.Reset(idleAfter)
	}
}

// expire closes a connection that was not used for long.
func (p *pool) expire(c *respConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, c); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		_ = c.Close()
	}
}

// close closes the connections that are idle, and the others when their
// requests end.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.timer.Stop()
		_ = c.Close()
	}
	p.idle = nil
}

// open connects, with TLS if the server uses it.
func (p *pool) open(ctx context.Context) (*respConn, error) {
	conn, err := p.dial(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	c := &respConn{Conn: conn}
	if raw, ok := conn.(syscall.Conn); ok {
		c.raw, _ = raw.SyscallConn()
	}
	if p.tls != nil {
		secure := tls.Client(conn, p.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		c.Conn = secure
	}
	c.r = bufio.NewReaderSize(c.Conn, 16<<10)
	return c, nil
}

// ask sends a command, after the token if the connection does not have it, and
// reads the answer. begun reports whether any of it arrived.
func (c *respConn) ask(token string, want expectation, command []byte) (a reply, begun bool, err error) {
	login := token != c.token
	if login {
		command = append(appendCommand(nil, "AUTH", token), command...)
	}
	if _, err := c.Write(command); err != nil {
		return a, false, err
	}
	if _, err := c.r.Peek(1); err != nil {
		return a, false, err
	}
	var refused string
	if login {
		if refused, err = readStatus(c.r); err != nil {
			return a, true, err
		}
		c.token = token
	}
	a, err = readReply(c.r, want)
	if refused != "" && a.fault != "" { // not if the server needs no token
		a.fault = refused
	}
	return a, true, err
}

// isUnread reports whether something has arrived on an idle connection that no
// request asked for, or its end.
func (c *respConn) isUnread() bool {
	if _, ok := c.Conn.(*tls.Conn); ok { // it may hold what it has not decrypted yet
		_ = c.SetReadDeadline(past)
		_, err := c.r.Peek(1)
		_ = c.SetReadDeadline(time.Time{})
		if !isTimeout(err) {
			return true
		}
	}
	return c.raw != nil && isUnread(c.raw)
}
