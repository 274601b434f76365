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
	"cmp"
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

	// Only lists the protocols that are served; nil means all. A connection
	// that speaks another one is closed, after an HTTP answer if it is HTTP.
	Only []Protocol

	// MaxConns is how many connections may be open at once, of all protocols
	// together; 0 means DefaultMaxConns. Further connections get an error in
	// their protocol and are closed.
	MaxConns int

	// Hello is how long a connection may take for its TLS handshake, and for
	// its first bytes if its client must still authenticate; 0 means
	// DefaultHello. Another one may be silent before its first byte: clients
	// open connections ahead of need.
	Hello time.Duration

	// Authenticates reports whether a client is authenticated by its
	// certificate; nil means that clients need not authenticate.
	Authenticates func(*tls.ConnectionState) bool

	// Strangers are the connections of unknown clients, which several Muxes can
	// share; nil means those of this Mux alone.
	Strangers *Strangers

	// Logger receives connections that fail early, at level debug, and warnings
	// of certificates that a side refuses, of connections beyond MaxConns, and
	// of errors of accept: of each kind one in 10 s.
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

	// turns has one per connection that is worked on before its protocol is
	// known. More wait in the system's queue: after a restart, when very many
	// clients connect and shake hands, each is served soon after it was
	// accepted, and the Strangers are few.
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
	m := &Mux{
		config:       c,
		listener:     l,
		turns:        make(chan struct{}, 4*runtime.GOMAXPROCS(0)),
		refusals:     make(chan struct{}, maxRefusals),
		refuseWithin: min(refuseTimeout, c.Hello),
		warned:       make(map[string]time.Time),
	}
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

// dispatch determines the protocol of a connection and passes it to its server.
func (m *Mux) dispatch(raw *countedConn) {
	defer func() { <-m.turns }()
	stop := context.AfterFunc(m.ctx, func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(m.config.Hello))
	conn, p, err := m.detect(raw)
	if err == nil && m.config.Only != nil && !slices.Contains(m.config.Only, p) {
		err = fmt.Errorf("%v is not served here", p)
		if p == HTTP {
			refuseHTTP(conn, "HTTP is not served here")
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
	raw.setHeld(0)
	select {
	case m.accept[p].conns <- conn:
	case <-m.ctx.Done():
		_ = conn.Close()
	}
}
