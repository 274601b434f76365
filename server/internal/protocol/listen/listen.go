// Package listen distinguishes three protocols on one port: HTTP/1.1, gRPC,
// which is HTTP/2, and RESP.
//
// Without TLS the first bytes decide. HTTP/2 begins with "PRI ". HTTP/1.1
// begins with a common method and a space, or with another word, a space and /
// or *. Anything else is RESP, whose server rejects invalid input. With TLS the
// negotiated protocol decides, or the first bytes if none was negotiated, as by
// RESP clients.
//
// It does not support HTTP/2 clients other than gRPC: see package tlsconf for
// what is negotiated.
package listen

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
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
	// together; 0 means DefaultMaxConns. Further connections get an error in their
	// protocol and are closed.
	MaxConns int

	// Hello is how long a connection may take for its TLS handshake, and for its
	// first bytes if its client must still authenticate; 0 means DefaultHello.
	// Another one may be silent before its first byte: clients open connections
	// ahead of need.
	Hello time.Duration

	// Authenticates reports whether a client is authenticated by its certificate;
	// nil means that clients need not authenticate.
	Authenticates func(*tls.ConnectionState) bool

	// Strangers are the connections of unknown clients, which several Muxes can
	// share; nil means those of this Mux alone.
	Strangers *Strangers

	// Logger receives connections that fail early, at level debug, and warnings of
	// certificates that a side refuses, of connections beyond MaxConns, and of
	// errors of accept: of each kind one in 10 s.
	Logger *slog.Logger
}

// Values that zero fields of Config stand for.
const (
	DefaultMaxConns = 10_000
	DefaultHello    = 10 * time.Second
)

// A Mux passes the connections of one listener to the servers of the protocols.
// It must be made by New, and is safe for concurrent use.
type Mux struct {
	config   Config
	listener net.Listener
	accept   [protocols]*protocolListener
	slots    atomic.Int64 // connections that count toward MaxConns
	open     [protocols]atomic.Int64

	// turns has one per connection that is worked on before its protocol is known.
	// More wait in the system's queue: after a restart, when very many clients
	// connect and shake hands, each is served soon after it was accepted, and the
	// Strangers are few.
	turns chan struct{}

	refusals     chan struct{} // one per connection that is being refused
	refuseWithin time.Duration // how long a refusal may take

	warnMu sync.Mutex           // guards warned
	warned map[string]time.Time // of the last warning, by its text

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc
	closed sync.Once
	hellos sync.WaitGroup // connections whose protocol is not known yet
}

// New makes a Mux over a listener, which it then owns.
func New(l net.Listener, c Config) *Mux {
	c.MaxConns = cmp.Or(c.MaxConns, DefaultMaxConns)
	c.Hello = cmp.Or(c.Hello, DefaultHello)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Strangers = cmp.Or(c.Strangers, new(Strangers))
	m := &Mux{config: c, listener: l, turns: make(chan struct{}, 4*runtime.GOMAXPROCS(0)),
		refusals: make(chan struct{}, maxRefusals), refuseWithin: min(refuseTimeout, c.Hello), warned: make(map[string]time.Time)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	for p := range m.accept {
		m.accept[p] = &protocolListener{mux: m, conns: make(chan net.Conn)}
	}
	return m
}

// Listener returns a listener for the connections of one protocol. Closing it
// closes the Mux.
func (m *Mux) Listener(p Protocol) net.Listener { return m.accept[p] }

// Addr returns the address of the Mux.
func (m *Mux) Addr() net.Addr { return m.listener.Addr() }

// Open returns the current number of connections of a protocol.
func (m *Mux) Open(p Protocol) int64 { return m.open[p].Load() }

// Serve accepts connections until Close, and returns net.ErrClosed once all
// connections whose protocol was not known yet are closed. Meanwhile the
// servers of all served protocols must accept connections.
func (m *Mux) Serve() error {
	defer m.hellos.Wait()
	defer m.Close()
	for {
		raw, err := m.listener.Accept()
		if err != nil {
			if m.ctx.Err() != nil {
				return net.ErrClosed
			}
			// Too many open files, for example: the number will fall again.
			var temporary interface{ Temporary() bool }
			if !errors.As(err, &temporary) || !temporary.Temporary() {
				return err
			}
			m.warn("accept failed", "error", err)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-m.ctx.Done():
			}
			continue
		}
		m.admit(&countedConn{Conn: newDirectConn(raw), mux: m, accepted: time.Now()})
	}
}

// Close stops listening, and closes connections whose protocol is not known
// yet. The servers close the others. Closing again has no effect.
func (m *Mux) Close() (err error) {
	m.closed.Do(func() {
		m.cancel()
		err = m.listener.Close()
	})
	return err
}

// hello determines the protocol of a connection and passes it to its server.
func (m *Mux) hello(raw *countedConn) {
	defer func() { <-m.turns }()
	stop := context.AfterFunc(m.ctx, func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(m.config.Hello))
	conn, p, err := m.detect(raw)
	if err == nil && m.config.Only != nil && !slices.Contains(m.config.Only, p) {
		err = fmt.Errorf("%v is not served here", p)
		if p == HTTP {
			refuse(conn, "HTTP is not served here")
		}
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if !stop() || err != nil {
		_ = conn.Close()
		if err != nil && !errors.Is(err, io.EOF) {
			m.warnOfCertificate(raw.RemoteAddr(), err)
			m.config.Logger.Debug("connection closed before its protocol was known", "peer", raw.RemoteAddr(), "error", err)
		}
		return
	}
	raw.protocol.Store(int32(p) + 1)
	m.open[p].Add(1)
	raw.base += protocolCost[p]
	raw.settle(0)
	select {
	case m.accept[p].conns <- conn:
	case <-m.ctx.Done():
		_ = conn.Close()
	}
}

// detect determines the protocol of a connection. The returned connection still
// has all its bytes, and is not nil even after an error.
func (m *Mux) detect(raw *countedConn) (net.Conn, Protocol, error) {
	if m.config.TLS == nil {
		return m.sniff(raw, raw, m.config.Authenticates == nil)
	}
	secure := tls.Server(raw, m.config.TLS)
	ctx, cancel := context.WithTimeout(m.ctx, m.config.Hello)
	defer cancel()
	raw.inHandshake = true
	err := secure.HandshakeContext(ctx)
	raw.inHandshake = false
	if err != nil {
		if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && e.Conn != nil {
			if p, sure := protocolOf(e.RecordHeader[:]); p == HTTP || !sure { // of a long method
				refuse(e.Conn, "this is HTTP, but this listener needs HTTPS: begin the URL with https://")
			}
		}
		return secure, 0, fmt.Errorf("TLS: %w", err)
	}
	state := secure.ConnectionState()
	needsNone := m.config.Authenticates == nil
	if !needsNone && m.config.Authenticates(&state) {
		Known(raw)
		needsNone = true
	}
	switch state.NegotiatedProtocol {
	case "h2":
		return &prefixedConn{Conn: secure, counted: raw}, GRPC, nil
	case "http/1.1":
		return &prefixedConn{Conn: secure, counted: raw}, HTTP, nil
	}
	return m.sniff(secure, raw, needsNone)
}

// methods are those that need no / or * after them to be recognized.
var methods = []string{"GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "QUERY"}

// maxMethod is the length of the longest method that is recognized.
const maxMethod = 32

// sniff determines the protocol. A client that need not authenticate may take its
// time for the first byte, unless it is refused.
func (m *Mux) sniff(conn net.Conn, raw *countedConn, needsNone bool) (net.Conn, Protocol, error) {
	began := func() {}
	if needsNone && raw.slot {
		_ = conn.SetDeadline(time.Time{}) // fails only if Read does
		began = func() { _ = conn.SetDeadline(time.Now().Add(m.config.Hello)) }
	}
	first, p, err := sniff(conn, began)
	return &prefixedConn{Conn: conn, counted: raw, first: first}, p, err
}

// sniff reads as many bytes as needed to determine the protocol, and calls began
// after the first ones.
func sniff(conn net.Conn, began func()) (first []byte, p Protocol, err error) {
	first = make([]byte, 0, maxMethod+2)
	for {
		n, err := conn.Read(first[len(first):cap(first)])
		if len(first) == 0 {
			began()
		}
		first = first[:len(first)+n]
		p, sure := protocolOf(first)
		switch {
		case sure || len(first) > 0 && errors.Is(err, io.EOF): // the server of RESP rejects invalid input
			return first, p, nil
		case err != nil:
			return first, 0, err
		}
	}
}

// protocolOf determines the protocol that begins with these bytes, if they
// suffice; maxMethod+2 bytes always do.
func protocolOf(first []byte) (p Protocol, sure bool) {
	n := 0
	for n < len(first) && n <= maxMethod && isMethodChar(first[n]) {
		n++
	}
	switch word := string(first[:n]); {
	case n == len(first) && n <= maxMethod:
		return RESP, false
	case n == 0 || n > maxMethod || first[n] != ' ':
		return RESP, true
	case word == "PRI":
		return GRPC, true
	case slices.Contains(methods, word):
		return HTTP, true
	case n+1 == len(first):
		return RESP, false
	case first[n+1] == '/' || first[n+1] == '*':
		return HTTP, true
	}
	return RESP, true
}

// isMethodChar reports whether registered HTTP methods have the character.
func isMethodChar(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '-' }

// refuse answers HTTP with an error, if possible.
func refuse(conn net.Conn, why string) {
	answer(conn, "400 Bad Request", "text/plain; charset=utf-8", "firn: "+why+"\n")
}

// answer answers HTTP and closes the sending half.
func answer(conn net.Conn, status, media, body string) {
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: %s\r\nConnection: close\r\nContent-Length: "+
		"%d\r\n\r\n%s", status, media, len(body), body); err == nil {
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

// A protocolListener is the listener of one protocol.
type protocolListener struct {
	mux   *Mux
	conns chan net.Conn
}

func (s *protocolListener) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.mux.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (s *protocolListener) Close() error   { return s.mux.Close() }
func (s *protocolListener) Addr() net.Addr { return s.mux.listener.Addr() }

// A prefixedConn is a connection whose protocol is known, and whose first bytes
// may have been read. It counts what its server holds of a stranger.
type prefixedConn struct {
	net.Conn
	counted *countedConn
	first   []byte
	most    atomic.Int64 // cost of the longest read
	lines   atomic.Int64 // of HTTP, since the last answer
}

func (b *prefixedConn) Read(p []byte) (n int, err error) {
	if len(b.first) > 0 {
		n = copy(p, b.first)
		if b.first = b.first[n:]; len(b.first) == 0 {
			b.first = nil // the connection can be open for long
		}
	} else {
		n, err = b.Conn.Read(p)
	}
	return b.arrived(p, n, err)
}

// A Buffer is lent for a read: while the reader waits, it holds none.
type Buffer interface {
	Take() []byte
	Give() // takes it back
}

// ReadLate is conn.Read into a Buffer, which it takes, if the connection can do
// that, when bytes have arrived. The Buffer is not given back if something was
// read.
func ReadLate(conn net.Conn, into Buffer) (n int, err error) {
	b, ok := conn.(*prefixedConn)
	if ok && len(b.first) == 0 && b.Conn == net.Conn(b.counted) {
		if late, ok := b.counted.Conn.(interface{ ReadLate(Buffer) (int, error) }); ok {
			n, err = late.ReadLate(into)
			return b.arrived(nil, n, err)
		}
	}
	return conn.Read(into.Take())
}

// arrived counts n bytes that were read into p, which is known for HTTP.
func (b *prefixedConn) arrived(p []byte, n int, err error) (int, error) {
	switch protocol := Protocol(b.counted.protocol.Load() - 1); {
	case protocol == HTTP && b.lines.Add(int64(bytes.Count(p[:n], newline))) > maxLines:
		return 0, errManyLines
	case b.counted.known.Load():
	case protocol == GRPC:
		b.counted.charge(n * byteCostRPC)
	default:
		b.counted.charge(n * byteCost)
		b.most.Store(max(b.most.Load(), int64(n*byteCost)))
	}
	return n, err
}

func (b *prefixedConn) Write(p []byte) (int, error) {
	n, err := b.Conn.Write(p)
	if Protocol(b.counted.protocol.Load()-1) != GRPC {
		b.lines.Store(0)
		b.counted.settle(int(b.most.Load())) // the reader may have kept as much
	}
	return n, err
}

// CloseWrite closes the sending half, if the connection supports that.
func (b *prefixedConn) CloseWrite() error { return closeWrite(b.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// A countedConn is a connection that may count toward the limit.
type countedConn struct {
	net.Conn
	mux      *Mux
	accepted time.Time
	protocol atomic.Int32 // protocol + 1, once it is known
	once     sync.Once

	slot        bool // it counts
	inHandshake bool // of TLS
	handshake   int  // bytes of it

	base  int         // cost of the connection itself; used by hello alone until it is known
	known atomic.Bool // it is no stranger, or closed

	// Guarded by Strangers.mu.
	place *list.Element // among them; nil if it is no stranger
	held  int           // cost of what it holds
}

// Read counts what a stranger sends before its protocol is known. While it and
// Write wait for the client, others have its turn.
func (c *countedConn) Read(p []byte) (int, error) {
	if c.protocol.Load() > 0 {
		return c.Conn.Read(p)
	}
	<-c.mux.turns
	n, err := c.Conn.Read(p)
	c.mux.turns <- struct{}{}
	if c.inHandshake {
		if c.handshake += n; c.handshake > maxHandshake {
			return 0, errLongHandshake
		}
	}
	if n > 0 {
		cost := n * byteCostTLS
		if c.base == connCost && c.mux.config.TLS != nil {
			c.base += tlsCost
			cost += tlsCost
		}
		c.charge(cost)
	}
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	if c.protocol.Load() == 0 {
		<-c.mux.turns
		defer func() { c.mux.turns <- struct{}{} }()
	}
	return c.Conn.Write(p)
}

func (c *countedConn) Close() error {
	c.free()
	Known(c)
	return c.Conn.Close()
}

// free gives the slot back.
func (c *countedConn) free() {
	c.once.Do(func() {
		if c.slot {
			c.mux.slots.Add(-1)
		}
		// When Open falls, there is room for another connection.
		if p := c.protocol.Load(); p > 0 {
			c.mux.open[p-1].Add(-1)
		}
	})
}

// CloseWrite closes the sending half, if the connection supports that.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }
