package listen

import (
	"bytes"
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A protocolListener is the listener of one protocol.
type protocolListener struct {
	mux   *Mux
	conns chan net.Conn
}

func (l *protocolListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.mux.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *protocolListener) Close() error { return l.mux.Close() }

func (l *protocolListener) Addr() net.Addr { return l.mux.listener.Addr() }

// A prefixedConn is a connection whose protocol is known, and whose first bytes
// may have been read. It counts what its server holds of a stranger.
type prefixedConn struct {
	net.Conn
	counted *countedConn
	first   []byte
	most    atomic.Int64 // cost of the longest read
	lines   atomic.Int64 // of HTTP, since the last answer
}

func (c *prefixedConn) Read(p []byte) (n int, err error) {
	if len(c.first) > 0 {
		n = copy(p, c.first)
		if c.first = c.first[n:]; len(c.first) == 0 {
			c.first = nil // the connection can be open for long
		}
	} else {
		n, err = c.Conn.Read(p)
	}
	return c.countRead(p, n, err)
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
	c, ok := conn.(*prefixedConn)
	if ok && len(c.first) == 0 && c.Conn == net.Conn(c.counted) {
		if late, ok := c.counted.Conn.(interface{ ReadLate(Buffer) (int, error) }); ok {
			n, err = late.ReadLate(into)
			return c.countRead(nil, n, err)
		}
	}
	return conn.Read(into.Take())
}

// countRead counts n bytes that were read into p, which is known for HTTP.
func (c *prefixedConn) countRead(p []byte, n int, err error) (int, error) {
	switch protocol := Protocol(c.counted.protocol.Load() - 1); {
	case protocol == HTTP && c.lines.Add(int64(bytes.Count(p[:n], newline))) > maxLines:
		return 0, errManyLines
	case c.counted.known.Load():
	case protocol == GRPC:
		c.counted.charge(n * byteCostRPC)
	default:
		c.counted.charge(n * byteCost)
		c.most.Store(max(c.most.Load(), int64(n*byteCost)))
	}
	return n, err
}

func (c *prefixedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if Protocol(c.counted.protocol.Load()-1) != GRPC {
		c.lines.Store(0)
		c.counted.setHeld(int(c.most.Load())) // the reader may have kept as much
	}
	return n, err
}

// CloseWrite closes the sending half, if the connection supports that.
func (c *prefixedConn) CloseWrite() error { return closeWrite(c.Conn) }

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
	c.freeSlot()
	MarkKnown(c)
	return c.Conn.Close()
}

// freeSlot gives the slot back.
func (c *countedConn) freeSlot() {
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
