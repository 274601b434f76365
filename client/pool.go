package client

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A connection that was idle for longer than maxIdleTime is not used again,
// because a device on the network path may have dropped it. A pool keeps
// maxIdleConns of them.
const (
	maxIdleTime  = 90 * time.Second
	maxIdleConns = 32
)

// aLongTimeAgo is a deadline that ends reads and writes at once.
var aLongTimeAgo = time.Unix(1, 0)

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
	reader   *bufio.Reader
	token    string // that was sent; the server has not refused it
	lastUsed time.Time
}

// newPool returns the pool of a server.
func newPool(c *Config, a address) *pool {
	p := &pool{address: a.resp, dial: new(net.Dialer).DialContext}
	if a.secure {
		p.tls = cmp.Or(c.TLS, new(tls.Config)).Clone()
		if p.tls.ServerName == "" {
			p.tls.ServerName, _, _ = net.SplitHostPort(a.resp)
		}
	}
	return p
}

// roundTrip sends a command, and read reads its answer. A connection that
// fails, or whose caller gives up, is closed. So is one whose client is
// refused: the token and the certificate that were shown on it may be accepted
// later, or have been renewed, which only another login or handshake finds out.
// If it was idle, and the server has closed it or sent unrequested data,
// roundTrip uses another one.
func (p *pool) roundTrip(ctx context.Context, token string, command []byte, read answerReader) error {
	for {
		c, reused, err := p.get(ctx, token)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(aLongTimeAgo) })
		begun, err := c.roundTrip(token, command, read)
		said, _ := errors.AsType[*Error](err)
		if !stop() || err != nil && (said == nil || said.Status == http.StatusUnauthorized) || c.reader.Buffered() > 0 {
			_ = c.Close()
		} else {
			p.put(c)
		}
		switch {
		case err == nil || said != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !reused || begun:
			return err
		}
	}
}

// An answerReader reads the answer to a command. refused is the text of the
// error with which the server has refused the token, or "". After an error
// other than an *Error, the connection is closed.
type answerReader func(r *bufio.Reader, refused string) error

// get returns an idle connection that is authenticated with the token, or a new
// one. A connection keeps its token: a server that refuses another one would
// still accept the first.
func (p *pool) get(ctx context.Context, token string) (c *respConn, reused bool, err error) {
	p.mu.Lock()
	for len(p.idle) > 0 && time.Since(p.idle[0].lastUsed) > maxIdleTime {
		_ = p.idle[0].Close()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	i := len(p.idle) - 1
	for i >= 0 && p.idle[i].token != token {
		i--
	}
	if i < 0 {
		p.mu.Unlock()
		c, err = p.connect(ctx)
		return c, false, err
	}
	defer p.mu.Unlock()
	c = p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	return c, true, nil
}

// put keeps a connection for the next request.
func (p *pool) put(c *respConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= maxIdleConns {
		_ = c.Close()
		return
	}
	c.lastUsed = time.Now()
	p.idle = append(p.idle, c)
}

// close closes the connections that are idle, and the others when their
// requests end.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.idle = nil
}

// connect connects, with TLS if the server uses it.
func (p *pool) connect(ctx context.Context) (*respConn, error) {
	conn, err := p.dial(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	if p.tls != nil {
		secure := tls.Client(conn, p.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		conn = secure
	}
	return &respConn{Conn: conn, reader: bufio.NewReaderSize(conn, 16<<10)}, nil
}

// roundTrip sends a command, after the token if the connection does not have
// it, and a nonce. The server repeats the nonce in front of the answer, so
// nothing else is taken for it. begun reports whether that has arrived.
func (c *respConn) roundTrip(token string, command []byte, read answerReader) (begun bool, err error) {
	login, nonce := token != c.token, rand.Text()
	command = append(appendCommand(nil, "PING", nonce), command...)
	if login {
		command = append(appendCommand(nil, "AUTH", token), command...)
	}
	if _, err := c.Write(command); err != nil {
		return false, err
	}
	var refused string
	if login {
		kind, text, err := readLine(c.reader)
		switch {
		case err != nil:
			return false, err
		case kind == '-':
			refused = string(text)
		case kind != '+':
			return false, errFraming
		}
		c.token = token
	}
	first, err := c.reader.Peek(1)
	if err != nil {
		return false, err
	}
	if first[0] == '-' { // so is the answer to the command
		_, _, err = readLine(c.reader)
	} else if echo, textErr := readText(c.reader, len(nonce)); textErr != nil || string(echo) != nonce {
		err = cmp.Or(textErr, errFraming)
	}
	if err != nil {
		return false, err
	}
	return true, read(c.reader, refused)
}
