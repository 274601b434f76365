package server

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A memConn is one end of a connection in memory, which a bubble of synctest
// can see. As in TCP it has a buffer for each direction, halves that are closed
// one by one, and resets.
type memConn struct {
	pair *memPair
	in   *memHalf // what this end reads
	out  *memHalf
}

// A memPair is what both ends share.
type memPair struct {
	mu    sync.Mutex // guards the halves
	cond  sync.Cond
	reset bool
}

// A memHalf is one direction.
type memHalf struct {
	buf    []byte
	most   int  // how much buf holds
	ended  bool // no end writes to it any more
	closed bool // no end reads from it any more
	reads  memDeadline
	writes memDeadline
}

type memDeadline struct {
	at    time.Time
	timer *time.Timer
}

// over reports whether the deadline has passed.
func (d *memDeadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set sets the deadline, and wakes waiting calls when it has passed.
func (d *memDeadline) set(p *memPair, at time.Time) {
	if d.timer != nil {
		d.timer.Stop()
	}
	d.at = at
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.cond.Broadcast()
		})
	}
	p.cond.Broadcast()
}

// newMemConn makes a connection that buffers most bytes in each direction.
func newMemConn(most int) (client, server *memConn) {
	p := new(memPair)
	p.cond.L = &p.mu
	up, down := &memHalf{most: most}, &memHalf{most: most}
	return &memConn{p, down, up}, &memConn{p, up, down}
}

func (c *memConn) Read(b []byte) (int, error) {
	c.pair.mu.Lock()
	defer c.pair.mu.Unlock()
	for {
		switch {
		case c.in.closed:
			return 0, net.ErrClosed
		case c.pair.reset:
			return 0, syscall.ECONNRESET
		case c.in.reads.over():
			return 0, os.ErrDeadlineExceeded
		case len(c.in.buf) > 0:
			n := copy(b, c.in.buf)
			c.in.buf = c.in.buf[n:]
			c.pair.cond.Broadcast()
			return n, nil
		case c.in.ended:
			return 0, io.EOF
		}
		c.pair.cond.Wait()
	}
}

func (c *memConn) Write(b []byte) (n int, err error) {
	c.pair.mu.Lock()
	defer c.pair.mu.Unlock()
	for {
		switch {
		case c.out.ended:
			return n, net.ErrClosed
		case c.pair.reset:
			return n, syscall.ECONNRESET
		case c.out.closed:
			return n, syscall.EPIPE
		case c.out.writes.over():
			return n, os.ErrDeadlineExceeded
		case len(b) == 0:
			return n, nil
		}
		if room := min(c.out.most-len(c.out.buf), len(b)); room > 0 {
			c.out.buf = append(c.out.buf, b[:room]...)
			b, n = b[room:], n+room
			c.pair.cond.Broadcast()
			continue
		}
		c.pair.cond.Wait()
	}
}

// CloseWrite ends what this end writes.
func (c *memConn) CloseWrite() error {
	c.pair.mu.Lock()
	defer c.pair.mu.Unlock()
	c.out.ended = true
	c.pair.cond.Broadcast()
	return nil
}

// Close ends both halves. If unread bytes of the other end remain, it is a
// reset.
func (c *memConn) Close() error { return c.end(false) }

// Reset ends both halves at once, and what is on its way is lost.
func (c *memConn) Reset() error { return c.end(true) }

func (c *memConn) end(reset bool) error {
	c.pair.mu.Lock()
	defer c.pair.mu.Unlock()
	if c.in.closed {
		return net.ErrClosed
	}
	c.pair.reset = c.pair.reset || reset || len(c.in.buf) > 0
	c.in.closed, c.out.ended = true, true
	c.in.reads.set(c.pair, time.Time{})
	c.out.writes.set(c.pair, time.Time{})
	return nil
}

func (c *memConn) SetDeadline(at time.Time) error {
	_ = c.SetReadDeadline(at)
	return c.SetWriteDeadline(at)
}

func (c *memConn) SetReadDeadline(at time.Time) error {
	c.pair.mu.Lock()
	defer c.pair.mu.Unlock()
	c.in.reads.set(c.pair, at)
	return nil
}

func (c *memConn) SetWriteDeadline(at time.Time) error {
	c.pair.mu.Lock()
	defer c.pair.mu.Unlock()
	c.out.writes.set(c.pair, at)
	return nil
}

func (c *memConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (c *memConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
