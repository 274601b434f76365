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

func (s *protocolListener) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.mux.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (s *protocolListener) Close() error { return s.mux.Close() }

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
	return b.countRead(p, n, err)
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
			return b.countRead(nil, n, err)
		}
	}
	return conn.Read(into.Take())
}

// countRead counts n bytes that were read into p, which is known for HTTP.
func (b *prefixedConn) countRead(p []byte, n int, err error) (int, error) {
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
		b.counted.setHeld(int(b.most.Load())) // the reader may have kept as much
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
