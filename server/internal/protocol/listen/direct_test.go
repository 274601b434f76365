package listen

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// directPair returns both ends of a TCP connection on loopback; the first is
// made by newDirectConn. Their buffers are small, whatever the system's
// defaults.
func directPair(t *testing.T) (net.Conn, *net.TCPConn) {
	t.Helper()
	l := nettest.Listen(t)
	defer l.Close()
	far := nettest.Dial(t, l.Addr().String())
	near := must.Get(l.Accept())(t)
	for _, conn := range []net.Conn{near, far} {
		if tcp := conn.(*net.TCPConn); tcp.SetReadBuffer(64<<10) != nil || tcp.SetWriteBuffer(64<<10) != nil {
			t.Fatal("the buffers of a connection cannot be set")
		}
	}
	d := newDirectConn(near)
	t.Cleanup(func() { _, _ = d.Close(), far.Close() })
	return d, far.(*net.TCPConn)
}

// TestDirectCarriesAll: all data arrives, whatever its size and however slowly
// it is read, in both directions at once; the end is io.EOF.
func TestDirectCarriesAll(t *testing.T) {
	d, far := directPair(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB fill every buffer on the way
	var all sync.WaitGroup
	for _, end := range []net.Conn{d, far} {
		all.Go(func() {
			if n, err := end.Write(sent); n != len(sent) || err != nil {
				t.Errorf("%T.Write(%d bytes) = %d, %v", end, len(sent), n, err)
			}
			if err := end.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Errorf("%T.CloseWrite() = %v", end, err)
			}
		})
		all.Go(func() {
			if got, err := io.ReadAll(end); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%T: read %d bytes, %v, want the %d that were sent", end, len(got), err, len(sent))
			}
		})
	}
	all.Wait()
	if n, err := d.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("Read at the end = %d, %v, want 0, EOF", n, err)
	}
}

// TestDirectHalfClose: bytes that arrive together with the end are read before
// it.
func TestDirectHalfClose(t *testing.T) {
	d, far := directPair(t)
	for range 2 {
		must.Get(far.Write([]byte("PING")))(t)
	}
	must.Do(t, far.CloseWrite())
	if got, err := io.ReadAll(d); string(got) != "PINGPING" || err != nil {
		t.Errorf("read %q, %v, want PINGPING", got, err)
	}
	if n, err := d.Write(nil); n != 0 || err != nil {
		t.Errorf("Write(nil) = %d, %v", n, err)
	}
}

// TestDirectDeadlines: a deadline ends waiting reads and writes, a past one
// fails them at once, and a later one allows both to continue.
func TestDirectDeadlines(t *testing.T) {
	d, far := directPair(t)
	var timeout net.Error
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: %v, want a timeout", what, err)
		}
	}
	reading := make(chan error, 1)
	go func() {
		_, err := d.Read(make([]byte, 1))
		reading <- err
	}()
	must.Do(t, d.SetReadDeadline(time.Unix(1, 0)))
	check("a read that waits", <-reading)
	_, err := d.Read(make([]byte, 1))
	check("a read after its deadline", err)

	writing := make(chan int, 1)
	go func() {
		n, err := d.Write(make([]byte, 4<<20)) // more than both sockets hold
		check("a write that waits", err)
		writing <- n
	}()
	if _, err := io.ReadFull(far, make([]byte, 1)); err != nil { // the write has begun
		t.Fatal(err)
	}
	must.Do(t, d.SetWriteDeadline(time.Unix(1, 0)))
	n := <-writing
	_, err = d.Write([]byte("x"))
	check("a write after its deadline", err)
	must.Do(t, d.SetDeadline(time.Time{}))
	if got, err := io.CopyN(io.Discard, far, int64(n-1)); err != nil {
		t.Errorf("%d bytes of the %d that Write reported, then %v", got+1, n, err)
	}
	if _, err := d.Write([]byte("y")); err != nil {
		t.Errorf("Write without a deadline: %v", err)
	}
	var last [1]byte
	if _, err := io.ReadFull(far, last[:]); err != nil || last[0] != 'y' {
		t.Errorf("read %q, %v, want y", last, err)
	}
}

// TestDirectClose: Close ends a waiting read and write, and later calls fail
// like those of package net.
func TestDirectClose(t *testing.T) {
	d, far := directPair(t)
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := d.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read that waits: %v, want %v", err, net.ErrClosed)
		}
	})
	all.Go(func() {
		if _, err := d.Write(make([]byte, 4<<20)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a write that waits: %v, want %v", err, net.ErrClosed)
		}
	})
	must.Get(io.ReadFull(far, make([]byte, 1)))(t)
	must.Do(t, d.Close())
	all.Wait()
	if _, err := d.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	var op *net.OpError
	if _, err := d.Write([]byte("x")); !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) || op.Op != "write" {
		t.Errorf("Write after Close: %v", err)
	}
}

// TestDirectReset: a reset is an error in both directions, not an end.
func TestDirectReset(t *testing.T) {
	d, far := directPair(t)
	must.Do(t, far.SetLinger(0))
	_ = far.Close()
	if n, err := d.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("Read = %d, %v, want an error", n, err)
	}
	if n, err := d.Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("Write = %d, %v, want an error", n, err)
	}
}

// TestDirectDoesNotAllocate: a read or write that need not wait allocates
// nothing.
func TestDirectDoesNotAllocate(t *testing.T) {
	d, far := directPair(t)
	buf := make([]byte, 64)
	if got := testing.AllocsPerRun(100, func() {
		_, err := d.Write(buf)
		if err == nil {
			_, err = io.ReadFull(far, buf)
		}
		if err == nil {
			_, err = far.Write(buf)
		}
		if err == nil {
			_, err = d.Read(buf)
		}
		if err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("a write and a read: %v allocations, want none", got)
	}
}

// A lender is a Buffer that tells when it is given back.
type lender struct {
	b     []byte
	given chan struct{}
}

func (l *lender) Take() []byte { return l.b }
func (l *lender) Give()        { l.given <- struct{}{} }

// TestReadLate: a connection that waits for its client has given its buffer
// back. It counts what it reads as Read does.
func TestReadLate(t *testing.T) {
	m := New(nettest.Listen(t), Config{Authenticates: func(*tls.ConnectionState) bool { return false }})
	go m.Serve()
	defer m.Close()
	far := nettest.Dial(t, m.listener.Addr().String())
	must.Get(io.WriteString(far, "PING\n"))(t)
	conn := must.Get(m.Listener(RESP).Accept())(t)
	defer conn.Close()
	l := &lender{make([]byte, 1<<10), make(chan struct{}, 100)}
	for i, want := range []string{"PING\n", "one", "a longer text"} {
		if i > 0 {
			go func() {
				if _, plain := conn.(*prefixedConn).counted.Conn.(*net.TCPConn); !plain {
					<-l.given
				}
				_, _ = io.WriteString(far, want)
			}()
		}
		if n, err := ReadLate(conn, l); string(l.b[:n]) != want || err != nil {
			t.Fatalf("ReadLate = %q, %v, want %q", l.b[:n], err, want)
		}
	}
	must.Do(t, far.Close())
	if n, err := ReadLate(conn, l); n != 0 || err != io.EOF {
		t.Errorf("ReadLate at the end = %d, %v, want EOF", n, err)
	}
	if got := conn.(*prefixedConn).most.Load(); got != int64(len("a longer text")*byteCost) {
		t.Errorf("the longest read counts %d", got)
	}
}
