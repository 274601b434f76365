package listen

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// A scriptedConn is a connection whose client has sent all that it will ever
// send, in pieces.
type scriptedConn struct {
	net.Conn
	rest []byte
	size int
	read int
}

func (s *scriptedConn) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(s.size, len(s.rest))])
	s.rest = s.rest[n:]
	s.read += n
	return n, nil
}

// FuzzSniff: in whatever pieces bytes come, they speak one protocol, its server
// gets each of them once, and only a few of them are read to tell it.
func FuzzSniff(f *testing.F) {
	for _, d := range dialects {
		f.Add([]byte(d.text), uint8(0))
		f.Add([]byte(d.text), uint8(2))
	}
	f.Add([]byte("PRI"), uint8(0))
	f.Add([]byte("OPTIONS"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		whole := &scriptedConn{rest: text, size: len(text) + 1}
		_, want, wantErr := sniff(whole, func() {})
		pieces := &scriptedConn{rest: text, size: int(size) + 1}
		began := 0
		first, p, err := sniff(pieces, func() { began++ })
		if p != want || (err == nil) != (wantErr == nil) || (err != nil) != (len(text) == 0) {
			t.Fatalf("%q is %v, %v, and in pieces of %d %v, %v", text, want, wantErr, int(size)+1, p, err)
		}
		if pieces.read > maxMethod+2 || whole.read > maxMethod+2 {
			t.Fatalf("%q: %d bytes were read to tell it, %d in one piece", text, pieces.read, whole.read)
		}
		if began != 1 {
			t.Fatalf("%q: it began %d times", text, began)
		}
		conn := &prefixedConn{Conn: pieces, counted: new(countedConn), first: first}
		conn.counted.known.Store(true)
		got, err := io.ReadAll(conn)
		if err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%q arrives as %q, %v", text, got, err)
		}
		switch begins := func(word string) bool { return bytes.HasPrefix(text, []byte(word)) }; {
		case begins("PRI "):
			if p != GRPC {
				t.Fatalf("%q is %v", text, p)
			}
		case begins("GET "), begins("POST "), begins("QUERY "):
			if p != HTTP {
				t.Fatalf("%q is %v", text, p)
			}
		case begins("*"), begins("\n"), begins("\x16"):
			if p != RESP {
				t.Fatalf("%q is %v", text, p)
			}
		}
	})
}
