// Package listen distinguishes three protocols on one port: HTTP/1.1, gRPC,
// which is HTTP/2, and RESP.
//
// Without TLS the first bytes decide. HTTP/2 begins with "PRI ". HTTP/1.1
// begins with a common method and a space, or with a line that ends like a
// request line, which its server answers with an error. Anything else is RESP,
// whose server rejects invalid input. With TLS the negotiated protocol decides,
// or the first bytes if none was negotiated, as by RESP clients.
//
// It does not support HTTP/2 clients other than gRPC: see package tlsconf for
// what is negotiated.
package listen

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Protocol is a protocol that a connection can speak.
type Protocol int

// The protocols.
const (
	HTTP Protocol = iota
	GRPC
	RESP
	protocols
)

// String returns the name of a protocol in flags, metrics and logs.
func (p Protocol) String() string {
	return [...]string{"http", "grpc", "resp"}[p]
}

// Config is the configuration of a Mux.
type Config struct {
	// TLS is the TLS configuration of connections; nil means no TLS. Its
	// NextProtos, or those of GetConfigForClient, are the protocols that may be
	// negotiated.
	TLS *tls.Config

	// Only lists the protocols that are served; nil means all. A connection that
	// speaks another one is closed, after an HTTP answer if it is HTTP.
	Only []Protocol

	// MaxConns is how many connections may be open at once, of all protocols
	// together; 0 means no limit. Further connections get an error in their
	// protocol and are closed.
	MaxConns int

	// Hello is how long a connection may take for its TLS handshake and its first
	// bytes; 0 means DefaultHello.
	Hello time.Duration

	// Log receives connections that fail early, at level debug.
	Log *slog.Logger
}

// DefaultHello is the value of Config.Hello that 0 stands for.
const DefaultHello = 10 * time.Second

// A Mux passes the connections of one listener to the servers of the protocols.
// It must be made by New, and is safe for concurrent use.
type Mux struct {
	c      Config
	l      net.Listener
	accept [protocols]*sub
	slots  chan struct{} // one per connection; nil without a limit
	open   [protocols]atomic.Int64
	serves [protocols]bool

	refusals     chan struct{} // one per connection that is being refused
	refuseWithin time.Duration // how long a refusal may take
	refused      atomic.Uint64
	warned       atomic.Int64 // Unix nanoseconds of the last warning

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc

	mu      sync.Mutex // guards the fields below
	greeted map[net.Conn]struct{}
	hellos  sync.WaitGroup
}

// New makes a Mux over a listener, which it then owns.
func New(l net.Listener, c Config) *Mux {
	c.Hello = cmp.Or(c.Hello, DefaultHello)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	m := &Mux{c: c, l: l, greeted: make(map[net.Conn]struct{}), refuseWithin: min(refuseTimeout, c.Hello)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	for p := range m.accept {
		m.accept[p] = &sub{m: m, conns: make(chan net.Conn)}
		m.serves[p] = c.Only == nil
	}
	for _, p := range c.Only {
		m.serves[p] = true
	}
	if c.MaxConns > 0 {
		m.slots = make(chan struct{}, c.MaxConns)
		m.refusals = make(chan struct{}, maxRefusals)
	}
	return m
}

// Listener returns a listener for the connections of one protocol. Closing it
// closes the Mux.
func (m *Mux) Listener(p Protocol) net.Listener { return m.accept[p] }

// Addr returns the address of the Mux.
func (m *Mux) Addr() net.Addr { return m.l.Addr() }

// Open returns the current number of connections of a protocol.
func (m *Mux) Open(p Protocol) int64 { return m.open[p].Load() }

// Refused returns how many connections exceeded Config.MaxConns.
func (m *Mux) Refused() uint64 { return m.refused.Load() }

// Serve accepts connections until Close, and returns net.ErrClosed once all
// connections whose protocol was not known yet are closed. Meanwhile the
// servers of all served protocols must accept connections.
func (m *Mux) Serve() error {
	defer m.hellos.Wait()
	defer m.Close()
	var told time.Time // when an error of accept was last logged
	for {
		raw, err := m.l.Accept()
		if err != nil {
			if m.ctx.Err() != nil {
				return net.ErrClosed
			}
			// Too many open files, for example: the number will fall again.
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() {
				if told.IsZero() || time.Since(told) > refusedEvery {
					told = time.Now()
					m.c.Log.Warn("accept failed", "error", err)
				}
				select {
				case <-time.After(50 * time.Millisecond):
					continue
				case <-m.ctx.Done():
					return net.ErrClosed
				}
			}
			return err
		}
		conn := &limited{Conn: newDirect(raw), m: m}
		if !m.admit(conn) {
			_ = conn.Close()
			return net.ErrClosed
		}
	}
}

// Close stops listening, and closes connections whose protocol is not known
// yet. The servers close the others. Closing again has no effect.
func (m *Mux) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return nil
	}
	m.cancel()
	for c := range m.greeted {
		_ = c.Close()
	}
	return m.l.Close()
}

// greet registers a connection whose protocol is to be determined.
func (m *Mux) greet(c net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return false
	}
	m.greeted[c] = struct{}{}
	m.hellos.Add(1)
	return true
}

// hello determines the protocol of a connection and passes it to its server.
func (m *Mux) hello(raw *limited) {
	defer m.hellos.Done()
	_ = raw.SetDeadline(time.Now().Add(m.c.Hello))
	conn, p, err := m.detect(raw)
	if err == nil && !m.serves[p] {
		err = fmt.Errorf("%v is not served here", p)
		if p == HTTP {
			refuse(conn, "HTTP is not served here")
		}
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	m.mu.Lock()
	delete(m.greeted, raw)
	m.mu.Unlock()
	if err != nil {
		_ = conn.Close()
		if !errors.Is(err, io.EOF) {
			m.c.Log.Debug("connection closed before its protocol was known", "peer", raw.RemoteAddr(), "error", err)
		}
		return
	}
	raw.protocol.Store(int32(p) + 1)
	m.open[p].Add(1)
	select {
	case m.accept[p].conns <- conn:
	case <-m.ctx.Done():
		_ = conn.Close()
	}
}

// detect determines the protocol of a connection. The returned connection still
// has all its bytes, and is not nil even after an error.
func (m *Mux) detect(raw net.Conn) (net.Conn, Protocol, error) {
	conn := raw
	if m.c.TLS != nil {
		first := make([]byte, 1)
		if _, err := io.ReadFull(raw, first); err != nil {
			return raw, 0, err
		}
		whole := &prefixedConn{Conn: raw, first: first}
		if first[0] != 0x16 { // no TLS record of a handshake
			if prefixed, p, err := sniff(whole); err == nil && p == HTTP {
				refuse(prefixed, "this is HTTP, but this listener needs HTTPS: begin the URL with https://")
			}
			return raw, 0, errors.New("not a TLS handshake")
		}
		secure := tls.Server(whole, m.c.TLS)
		ctx, cancel := context.WithTimeout(m.ctx, m.c.Hello)
		defer cancel()
		if err := secure.HandshakeContext(ctx); err != nil {
			return secure, 0, fmt.Errorf("TLS: %w", err)
		}
		switch secure.ConnectionState().NegotiatedProtocol {
		case "h2":
			return secure, GRPC, nil
		case "http/1.1":
			return secure, HTTP, nil
		}
		conn = secure
	}
	prefixed, p, err := sniff(conn)
	return prefixed, p, err
}

// methods are the usual beginnings of HTTP/1.1 requests.
var methods = [...]string{"GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE ", "QUERY "}

// preface is how HTTP/2 begins; these bytes suffice.
const preface = "PRI "

// A request with another method is recognized by its whole first line, of up to
// maxLine bytes, with a method of up to maxMethod.
const (
	maxMethod = 32
	maxLine   = 8 << 10
)

// sniff reads as many bytes as needed to determine the protocol: eight at
// first, and more if they may begin an HTTP request with an unusual method.
func sniff(conn net.Conn) (net.Conn, Protocol, error) {
	b := &prefixedConn{Conn: conn}
	buf := make([]byte, 0, 8)
	for {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, min(4*cap(buf), maxLine)), buf...)
		}
		n, err := conn.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		b.first = buf
		if p, sure := protocolOf(buf); sure {
			return b, p, nil
		}
		if err != nil {
			if len(buf) > 0 && errors.Is(err, io.EOF) {
				return b, RESP, nil // its server rejects invalid input
			}
			return b, 0, err
		}
	}
}

// protocolOf determines the protocol that begins with these bytes, if they
// suffice; maxLine bytes always do.
func protocolOf(first []byte) (p Protocol, sure bool) {
	if len(first) == 0 {
		return 0, false
	}
	whole := false
	begins := func(word string) bool {
		n := min(len(word), len(first))
		if string(first[:n]) != word[:n] {
			return false
		}
		whole = n == len(word)
		return true
	}
	if begins(preface) {
		return GRPC, whole
	}
	for _, method := range methods {
		if begins(method) {
			return HTTP, whole
		}
	}
	return byLine(first[:min(len(first), maxLine)])
}

// byLine decides for input without a common method. An inline RESP command has
// no slash or star after its first word, or does not end like an HTTP request.
func byLine(first []byte) (p Protocol, sure bool) {
	n := 0
	for n < len(first) && n <= maxMethod && isTokenChar(first[n]) {
		n++
	}
	switch {
	case n == 0, n > maxMethod:
		return RESP, true
	case n == len(first):
		return RESP, false
	case first[n] != ' ':
		return RESP, true
	case n+1 == len(first):
		return RESP, false
	case first[n+1] != '/' && first[n+1] != '*':
		return RESP, true
	}
	line, _, ended := bytes.Cut(first, []byte("\n"))
	if !ended {
		return RESP, len(first) == maxLine
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if at := len(line) - len(" HTTP/1.1"); at > n && string(line[at:at+8]) == " HTTP/1." {
		return HTTP, true
	}
	return RESP, true
}

// isTokenChar reports whether an HTTP method may contain the character by RFC
// 9110, except * and $, with which RESP begins.
func isTokenChar(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("!#%&'+-.^_`|~", c) >= 0
}

// refuse answers HTTP with an error, if possible.
func refuse(conn net.Conn, why string) {
	answer(conn, "400 Bad Request", "text/plain; charset=utf-8", "firn: "+why+"\n")
}

// answer answers HTTP and closes the sending half.
func answer(conn net.Conn, status, media, body string) {
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, media, len(body), body); err == nil {
		Linger(conn)
	}
}

// Linger closes the sending half of a connection after the last answer, and
// briefly reads what the client still sends: unread bytes would make the system
// drop the answer.
func Linger(conn net.Conn) {
	if closeWrite(conn) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = io.CopyN(io.Discard, conn, 256<<10)
}

// StateOf returns the TLS state of a connection from a Mux, or nil without TLS.
func StateOf(conn net.Conn) *tls.ConnectionState {
	for {
		switch c := conn.(type) {
		case *tls.Conn:
			s := c.ConnectionState()
			return &s
		case *prefixedConn:
			conn = c.Conn
		default:
			return nil
		}
	}
}

// A sub is the listener of one protocol.
type sub struct {
	m     *Mux
	conns chan net.Conn
}

func (s *sub) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.m.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (s *sub) Close() error   { return s.m.Close() }
func (s *sub) Addr() net.Addr { return s.m.l.Addr() }

// A prefixedConn is a connection whose first bytes were already read.
type prefixedConn struct {
	net.Conn
	first []byte
}

func (b *prefixedConn) Read(p []byte) (int, error) {
	if len(b.first) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// CloseWrite closes the sending half, if the connection supports that.
func (b *prefixedConn) CloseWrite() error { return closeWrite(b.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// A limited is a connection that counts toward the limit.
type limited struct {
	net.Conn
	m        *Mux
	slot     bool         // it holds one of the slots
	protocol atomic.Int32 // protocol + 1, once it is known
	once     sync.Once
}

func (l *limited) Close() error {
	l.once.Do(func() {
		if l.slot {
			<-l.m.slots
		}
		// When Open falls, there is room for another connection.
		if p := l.protocol.Load(); p > 0 {
			l.m.open[p-1].Add(-1)
		}
	})
	return l.Conn.Close()
}

// CloseWrite closes the sending half, if the connection supports that.
func (l *limited) CloseWrite() error { return closeWrite(l.Conn) }
