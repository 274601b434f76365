package respapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

func newStatic(t testing.TB, layout string) *service.StaticBackend {
	return servicetest.NewStaticBackend(t, layout)
}

// counting is a Backend whose IDs are 1, 2, 3 and so on, across all names.
func counting() service.Backend {
	var last atomic.Uint64
	return servicetest.Open(func(_ context.Context, n int) (firn.Batch, error) {
		end := last.Add(uint64(n))
		return firn.BatchFromRuns(firn.Run{First: firn.ID(end - uint64(n) + 1), Step: 1, Count: n})
	})
}

// A scriptedConn has a client that has already sent everything. It
// records every write.
type scriptedConn struct {
	in     io.Reader
	mu     sync.Mutex
	writes [][]byte
	closed bool
}

func (s *scriptedConn) Read(p []byte) (int, error) { return s.in.Read(p) }
func (s *scriptedConn) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, bytes.Clone(p))
	return len(p), nil
}
func (s *scriptedConn) Close() error                     { s.closed = true; return nil }
func (s *scriptedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *scriptedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *scriptedConn) SetDeadline(time.Time) error      { return nil }
func (s *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (s *scriptedConn) SetWriteDeadline(time.Time) error { return nil }

// talk sends a server all of a client's bytes, in one piece if they fit, and
// returns the answers.
func talk(s *Server, in string) string {
	c := &scriptedConn{in: strings.NewReader(in)}
	s.serveConn(c)
	return string(bytes.Join(c.writes, nil))
}

// cmd encodes a command as clients do.
func cmd(words ...string) string {
	b := appendArray(nil, len(words))
	for _, w := range words {
		b = appendBulk(b, w)
	}
	return string(b)
}

// line encodes a command of words between single spaces.
func line(text string) string { return cmd(strings.Split(text, " ")...) }

// A value is a strictly parsed answer. Errors, simple strings, numbers and so
// on are strings with their type in front; bulk strings have '$'.
type value struct {
	kind  byte
	text  string
	items []value // of arrays and maps (twice as many)
}

// String formats a value for people: (a b), map(k v), -ERR …, nil.
func (v value) String() string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}

func (v value) write(b *strings.Builder) {
	switch v.kind {
	case '*', '%':
		fmt.Fprintf(b, "%s(", map[byte]string{'*': "", '%': "map"}[v.kind])
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(' ')
			}
			item.write(b)
		}
		b.WriteByte(')')
	case '_':
		b.WriteString("nil")
	case '$':
		b.WriteString(v.text)
	default:
		b.WriteByte(v.kind)
		b.WriteString(v.text)
	}
}

// readValue reads an answer and fails for anything that RESP does not allow.
func readValue(r *bufio.Reader) (v value, err error) {
	head, err := r.ReadString('\n')
	if err != nil {
		if head != "" {
			return v, fmt.Errorf("the answer is cut at %q: %w", head, io.ErrUnexpectedEOF)
		}
		return v, err
	}
	text, ok := strings.CutSuffix(head, "\r\n")
	if !ok || text == "" || strings.Contains(text, "\r") {
		return v, fmt.Errorf("invalid line %q", head)
	}
	v.kind, v.text = text[0], text[1:]
	switch v.kind {
	case '+', '-':
		return v, nil
	case ':':
		if n, err := strconv.ParseInt(v.text, 10, 64); err != nil || strconv.FormatInt(n, 10) != v.text {
			return v, fmt.Errorf("%q is no integer", text)
		}
		return v, nil
	case ',':
		_, err := strconv.ParseFloat(v.text, 64)
		return v, err
	case '_':
		if v.text != "" {
			return v, fmt.Errorf("%q is no null", text)
		}
		return v, nil
	}
	n, err := strconv.Atoi(v.text)
	if err != nil || n < -1 || strconv.Itoa(n) != v.text {
		return v, fmt.Errorf("%q has no length", text)
	}
	if n == -1 && (v.kind == '$' || v.kind == '*') {
		return value{kind: '_'}, nil
	}
	switch v.kind {
	case '$', '=':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return v, io.ErrUnexpectedEOF
		}
		if string(b[n:]) != "\r\n" {
			return v, fmt.Errorf("after %d bytes comes %q", n, b[n:])
		}
		v.text = string(b[:n])
	case '*', '%':
		if v.kind == '%' {
			n *= 2
		}
		v.text = ""
		for range n {
			item, err := readValue(r)
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return v, err
			}
			v.items = append(v.items, item)
		}
	default:
		return v, fmt.Errorf("%q has no type that is known", text)
	}
	return v, nil
}

// values parses all answers in a text.
func values(t testing.TB, text string) []value {
	t.Helper()
	var all []value
	r := bufio.NewReader(strings.NewReader(text))
	for {
		v, err := readValue(r)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return all
		}
		if err != nil {
			t.Fatalf("after %d answers: %v\nin %.500q", len(all), err, text)
		}
		all = append(all, v)
	}
}

// A client is a connection to a server.
type client struct {
	net.Conn
	r *bufio.Reader
}

func newClient(nc net.Conn) *client { return &client{nc, bufio.NewReader(nc)} }

// do sends a command and reads its answer; an error is its text.
func (c *client) do(text string) string {
	if _, err := io.WriteString(c, line(text)); err != nil {
		return "write: " + err.Error()
	}
	return c.read()
}

// read reads an answer; an error is its text.
func (c *client) read() string {
	v, err := readValue(c.r)
	if err != nil {
		return "read: " + err.Error()
	}
	return v.String()
}

// serveTCP serves on loopback until the test ends and returns the address.
func serveTCP(t testing.TB, s *Server) string {
	t.Helper()
	l := nettest.Listen(t)
	t.Cleanup(serve(t, s, l))
	return l.Addr().String()
}

// serve serves a listener until the returned function is called.
func serve(t testing.TB, s *Server, l net.Listener) (end func()) {
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return func() {
		l.Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve = %v, want net.ErrClosed", err)
		}
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Shutdown(cut); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown = %v", err)
		}
		if n := len(s.conns); n != 0 {
			t.Errorf("%d connections are open after Shutdown", n)
		}
	}
}

// dialTCP connects; the test fails after a minute instead of hanging.
func dialTCP(t testing.TB, addr string) *client {
	t.Helper()
	nc := nettest.Dial(t, addr)
	_ = nc.SetDeadline(time.Now().Add(must.Patience))
	t.Cleanup(func() { nc.Close() })
	return newClient(nc)
}
