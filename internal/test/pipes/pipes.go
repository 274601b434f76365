// Package pipes has a listener for tests whose connections are made by net.Pipe,
// and so work in a bubble of testing/synctest.
package pipes

import (
	"context"
	"net"
	"sync"
)

// A Listener is a net.Listener of such connections.
type Listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// New returns a Listener without connections.
func New() *Listener { return &Listener{conns: make(chan net.Conn), done: make(chan struct{})} }

// Add passes a connection to the server, and waits until it is accepted.
func (l *Listener) Add(c net.Conn) { l.conns <- c }

// Pass is Add until ctx is done or the Listener is closed, which is an error.
func (l *Listener) Pass(ctx context.Context, c net.Conn) error {
	select {
	case l.conns <- c:
		return nil
	case <-l.done:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Dial returns the client's end of a new connection, once it is accepted.
func (l *Listener) Dial() net.Conn {
	client, server := net.Pipe()
	l.Add(server)
	return client
}

// DialContext is Dial for a transport. It fails once the Listener is closed.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	if err := l.Pass(ctx, server); err != nil {
		return nil, err
	}
	return client, nil
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Closing again has no effect.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns a loopback address.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3476} }
