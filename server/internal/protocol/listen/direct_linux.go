package listen

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// A directConn is a TCP connection whose reads and writes are plain system
// calls.
//
// Package net announces every system call to the runtime, because some block,
// and the monitor thread then wakes up every 20 µs to look for blocked ones.
// Together this costs a third of a small request, and a non-blocking socket
// needs neither: see docs/decisions/event-loop.md. Waiting, deadlines and
// closing are still those of package net.
//
// Like any net.Conn it is safe for concurrent use.
type directConn struct {
	net.Conn
	raw syscall.RawConn
	in  transfer
	out transfer
}

// A transfer is one direction of a directConn.
type transfer struct {
	mu    sync.Mutex // held during a call; guards the fields below
	b     []byte
	into  Buffer        // gives b before each attempt to read, and takes it back after a vain one; nil if b is given
	n     int           // bytes of b that were read or written
	errno syscall.Errno // of the failed system call; 0 if none
	step  func(fd uintptr) (done bool)
}

// maxTransfer is how many bytes one system call reads or writes: the runtime
// cannot stop a thread during it.
const maxTransfer = 128 << 10

// newDirectConn returns a connection that makes its own system calls, or conn
// if that is not a TCP connection.
func newDirectConn(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	d := &directConn{Conn: conn, raw: raw}
	d.in.step, d.out.step = d.in.read, d.out.write
	return d
}

// read reads once, and reports false if there is nothing to read yet.
func (t *transfer) read(fd uintptr) bool {
	if t.into != nil {
		t.b = t.into.Take()
	}
	n, errno := rawCall(syscall.SYS_READ, fd, t.b)
	if errno == syscall.EAGAIN {
		if t.into != nil {
			t.into.Give()
		}
		return false
	}
	t.n, t.errno = n, errno
	return true
}

// write writes the rest, and reports false if the socket accepts no more.
func (t *transfer) write(fd uintptr) bool {
	for t.n < len(t.b) {
		n, errno := rawCall(syscall.SYS_WRITE, fd, t.b[t.n:])
		if errno == syscall.EAGAIN {
			return false
		}
		if t.n, t.errno = t.n+n, errno; errno != 0 {
			break
		}
	}
	return true
}

// rawCall reads or writes up to maxTransfer bytes of b, and returns how many; 0
// with an error.
func rawCall(trap, fd uintptr, b []byte) (n int, errno syscall.Errno) {
	b = b[:min(len(b), maxTransfer)]
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// do makes the system calls of one Read or Write; wait waits between them.
func (t *transfer) do(b []byte, into Buffer, name string, wait func(func(uintptr) bool) error) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b, t.into, t.n, t.errno = b, into, 0, 0
	err := wait(t.step)
	t.b, t.into = nil, nil
	if t.errno != 0 {
		err = os.NewSyscallError(name, t.errno)
	}
	return t.n, err
}

func (d *directConn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return d.Conn.Read(b)
	}
	return d.read(b, nil)
}

func (d *directConn) ReadLate(into Buffer) (int, error) { return d.read(nil, into) }

func (d *directConn) read(b []byte, into Buffer) (int, error) {
	n, err := d.in.do(b, into, "read", d.raw.Read)
	switch {
	case err != nil:
		return n, d.errorOf("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (d *directConn) Write(b []byte) (int, error) {
	n, err := d.out.do(b, nil, "write", d.raw.Write)
	if err != nil {
		err = d.errorOf("write", err)
	}
	return n, err
}

// errorOf returns an error in the form of package net.
func (d *directConn) errorOf(op string, err error) error {
	if o, ok := err.(*net.OpError); ok {
		err = o.Err // whose op is raw-read or raw-write
	}
	return &net.OpError{Op: op, Net: "tcp", Source: d.LocalAddr(), Addr: d.RemoteAddr(), Err: err}
}

// CloseWrite closes the sending half.
func (d *directConn) CloseWrite() error { return closeWrite(d.Conn) }
