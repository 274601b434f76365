package listen

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// Limits of what strangers hold. Bytes are counted at the most that one of them
// can cost: a field of two bytes takes 60 in a map, and a byte of HPACK can
// stand for a whole field.
const (
	maxStrange  = 32 << 20 // together
	connCost    = 8 << 10  // of a connection, whatever it speaks
	tlsCost     = 16 << 10 // of TLS
	byteCostTLS = 16       // in a handshake
	byteCost    = 32
	byteCostRPC = 140
)

// maxHandshake is how many bytes a client may send in a handshake of TLS: room
// for a long chain of certificates.
const maxHandshake = 16 << 10

// maxLines is how many lines of HTTP, known or not, may arrive without an answer:
// a field in a header costs 130 bytes, however short its line. Pipelined requests
// in a buffer of net/http have fewer.
const maxLines = 512

var (
	newline          = []byte("\n")
	errManyLines     = errors.New("too many lines in a request")
	errLongHandshake = errors.New("the client sent too many bytes")
)

// protocolCost is the cost of the server of a connection, in addition.
var protocolCost = [protocols]int{HTTP: 8 << 10, GRPC: 24 << 10, RESP: 4 << 10}

// Strangers are the connections of a server whose clients it does not know yet:
// they are not authenticated, or, where they need not be, have had no request
// accepted. If they hold too much memory together, the oldest are closed. It is
// safe for concurrent use, and its zero value is empty.
type Strangers struct {
	mu    sync.Mutex
	conns list.List // of *countedConn, the oldest first
	held  int       // by all of them
}

// enter adds a connection.
func (s *Strangers) enter(c *countedConn) {
	c.base = connCost
	s.mu.Lock()
	c.place = s.conns.PushBack(c)
	s.mu.Unlock()
	c.charge(connCost)
}

// leave removes a connection, if it is there. The caller holds s.mu.
func (s *Strangers) leave(c *countedConn) {
	if c.place != nil {
		s.conns.Remove(c.place)
		s.held -= c.held
		c.place, c.held = nil, 0
	}
	c.known.Store(true) // or closed
}

// makeRoom closes the oldest connection that holds a slot of m and has done so
// for a while, and reports whether there was one.
func (s *Strangers) makeRoom(m *Mux, before time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.conns.Front(); e != nil; e = e.Next() {
		c := e.Value.(*countedConn)
		if c.accepted.After(before) {
			return false
		}
		if c.mux == m && c.slot {
			s.leave(c)
			_ = c.Conn.Close()
			c.freeSlot()
			return true
		}
	}
	return false
}

// charge adds to what a stranger holds, and closes the oldest strangers if that
// is too much.
func (c *countedConn) charge(n int) {
	if c.known.Load() {
		return
	}
	for _, oldest := range c.mux.config.Strangers.charge(c, n) {
		_ = oldest.Conn.Close() // its server notices, and calls Close
		oldest.mux.warn("closing the oldest connections without an accepted request: they hold too much memory",
			"limit", maxStrange, "peer", oldest.RemoteAddr())
	}
}

// charge is that of countedConn, and returns the strangers that it removed.
func (s *Strangers) charge(c *countedConn, n int) (removed []*countedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.place == nil {
		return nil
	}
	c.held += n
	s.held += n
	for s.held > maxStrange {
		oldest := s.conns.Front().Value.(*countedConn)
		s.leave(oldest)
		removed = append(removed, oldest)
	}
	return removed
}

// setHeld records that a stranger holds only n bytes beyond what its connection
// costs.
func (c *countedConn) setHeld(n int) {
	if c.known.Load() {
		return
	}
	s := c.mux.config.Strangers
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.place != nil {
		s.held -= c.held
		c.held = c.base + n
		s.held += c.held
	}
}

// countedOf returns the connection of a Mux below another one; nil if there is
// none.
func countedOf(conn net.Conn) *countedConn {
	for {
		switch c := conn.(type) {
		case *countedConn:
			return c
		case *prefixedConn:
			return c.counted
		case *tls.Conn:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// MarkKnown records that the client of a connection from a Mux is a stranger no
// longer.
func MarkKnown(conn net.Conn) {
	if c := countedOf(conn); c != nil && !c.known.Load() {
		s := c.mux.config.Strangers
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leave(c)
	}
}

// Charge records that a connection from a Mux holds n more bytes.
func Charge(conn net.Conn, n int) {
	if c := countedOf(conn); c != nil {
		c.charge(n)
	}
}

// Answered records that everything that a connection has received is answered.
// Of HTTP and RESP, an answer does so.
func Answered(conn net.Conn) {
	if c := countedOf(conn); c != nil {
		c.setHeld(0)
	}
}

type connKey struct{}

// WithConn returns a context with a connection, for ConnIn.
func WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// ConnIn returns the connection of WithConn, or nil.
func ConnIn(ctx context.Context) net.Conn {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	return conn
}
