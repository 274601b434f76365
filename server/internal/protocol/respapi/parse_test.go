package respapi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/firnid/firn/server/internal/service"
)

// The default limits.
var known, stranger = knownLimits(service.DefaultBody), strangerLimits(service.DefaultBody)

func TestParse(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for _, tt := range []struct {
		in   string
		want string // the arguments, quoted; … if more is to come; or the error
	}{
		{"*1\r\n$4\r\nPING\r\n", `["PING"]`},
		{"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", `["ECHO" ""]`},
		{"*2\r\n$4\r\nECHO\r\n$4\r\n\r\n\r\n\r\n", `["ECHO" "\r\n\r\n"]`},
		{"*0\r\n", `[]`},
		{"*1\r\n$4\r\nPING\r\n*1\r\n", `["PING"]`},
		{"*", "…"}, {"*1", "…"}, {"*1\r", "…"}, {"*1\r\n", "…"}, {"*1\r\n$", "…"}, {"*1\r\n$4\r\nPIN", "…"},
		{"*1\r\n$4\r\nPING", "…"}, {"*1\r\n$4\r\nPING\r", "…"},
		{"*-1\r\n", "invalid multibulk length: * must be followed by the number of arguments, up to 64, and CR LF"},
		{"*\r\n", "invalid multibulk length"},
		{"*1\n", "invalid multibulk length"},
		{"*x\r\n", "invalid multibulk length"},
		{"*+1\r\n", "invalid multibulk length"},
		{"*01\r\n", "invalid multibulk length"},
		{"*-\r\n", "invalid multibulk length"},
		{"*1 \r\n", "invalid multibulk length"},
		{"*65\r\n", "invalid multibulk length"},
		{"*2147483648\r\n", "invalid multibulk length"},
		{"*99999999999999999999\r\n", "invalid multibulk length"},
		{"*" + strings.Repeat("1", 100), "invalid multibulk length"},
		{"*1\r\n:1\r\n", "expected '$', got ':': an argument must be a bulk string"},
		{"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*': an argument must be a bulk string"},
		{"*1\r\n\x00", "expected '$', got '\\x00'"},
		{"*1\r\n$-1\r\n", "invalid bulk length: $ must be followed by the bytes of an argument, up to 65536, and CR LF"},
		{"*1\r\n$65537\r\n", "invalid bulk length"},
		{"*1\r\n$536870912\r\n", "invalid bulk length"},
		{"*1\r\n$4x\r\nPING\r\n", "invalid bulk length"},
		{"*1\r\n$3\r\nPING\r\n", "invalid bulk string: CR LF must follow after exactly its length in bytes"},
		{"*1\r\n$5\r\nPING\r\n*", "invalid bulk string"},
		{"*3\r\n$65536\r\n" + long + "\r\n$65536\r\n", "command too big: all its arguments together may have up to 131072 bytes"},
		{"*2\r\n$65536\r\n" + long + "\r\n$1\r\n", "…"},
		{"", "…"},
		{"PING\r\n", `["PING"]`},
		{"PING\n", `["PING"]`},
		{"  PING\t a  \r\n", `["PING" "a"]`},
		{"\r\n", `[]`}, {"\n", `[]`}, {"   \r\n", `[]`},
		{"PING", "…"},
		{strings.Repeat("a ", 65) + "\n", "too many words in an inline request: the limit is 64"},
		{long[:64<<10-1], "…"},
		{long, "too big inline request: a line may have up to 65536 bytes"},
		{long + "\n", "too big inline request"},
		{"\x16\x03\x01", "this is a TLS handshake, but this listener has no TLS: connect without TLS"},
		{"PI\x00NG", "byte '\\x00' in an inline request"},
		{"+OK\r\n", `["+OK"]`},
	} {
		n, args, err := parse([]byte(tt.in), nil, known)
		got := fmt.Sprintf("%q", args)
		switch {
		case err != nil:
			got = strings.TrimPrefix(err.Error(), "Protocol error: ")
			if strings.HasPrefix(got, tt.want) {
				got = tt.want
			}
		case n == 0:
			got = "…"
		}
		if got != tt.want {
			t.Errorf("parse(%.100q) = %s, want %s", tt.in, got, tt.want)
		}
	}
	for _, tt := range []struct{ in, want string }{
		{"*11\r\n", "Protocol error: invalid multibulk length: * must be followed by the number of arguments, up to 10 before AUTH, and CR LF"},
		{"*1\r\n$16385\r\n", "Protocol error: invalid bulk length: $ must be followed by the bytes of an argument, up to 16384 before AUTH, and CR LF"},
		{long[:32<<10], "Protocol error: too big inline request: a line may have up to 32768 bytes"},
	} {
		if _, _, err := parse([]byte(tt.in), nil, stranger); err == nil || err.Error() != tt.want {
			t.Errorf("parse(%.100q) before AUTH = %v, want %s", tt.in, err, tt.want)
		}
	}
}

// FuzzParser: whatever arrives, in whatever pieces, parse gives the same
// result: more input turns no command into an error or another command.
func FuzzParser(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\nPING a\r\n"), 5)
	f.Add([]byte("*2\r\n$4\r\nNEXT\r\n$6\r\norders\r\n"), 13)
	f.Add([]byte("ECHO a b\r\n*-1\r\n"), 9)
	f.Add([]byte("*3\r\n$-1\r\n*64\r\n$65537\r\n"), 2)
	f.Add([]byte("*1\r\n$0\r\n\r\n\x16"), 1)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		for _, l := range []limits{known, stranger} {
			before := bytes.Clone(in)
			n, args, err := parse(in, nil, l)
			if !bytes.Equal(before, in) {
				t.Fatalf("parse(%q) has changed it", before)
			}
			size := 0
			for _, a := range args {
				size += len(a)
			}
			if n < 0 || n > len(in) || err == nil && n > 0 && size > n || len(args) > l.args || size > l.command {
				t.Fatalf("parse(%q) = %d, %q, %v", in, n, args, err)
			}
			if err == nil && n > 0 {
				again, same, err := parse(in[:n], nil, l)
				if again != n || err != nil || fmt.Sprintf("%q", same) != fmt.Sprintf("%q", args) {
					t.Fatalf("parse(%q) = %d, %q, %v; want %d, %q", in[:n], again, same, err, n, args)
				}
			}
			if err == nil && n == 0 && len(in) > l.command {
				t.Fatalf("parse of %d bytes wants more", len(in))
			}
			if cut < 0 || cut > len(in) {
				continue
			}
			part, few, partErr := parse(in[:cut], nil, l)
			switch {
			case partErr != nil && err == nil:
				t.Fatalf("parse(%q) = %v, and with more it is %q", in[:cut], partErr, args)
			case partErr == nil && part > 0 && (part != n || fmt.Sprintf("%q", few) != fmt.Sprintf("%q", args)):
				t.Fatalf("parse(%q) = %q, and with more it is %q, %v", in[:cut], few, args, err)
			}
			if err == nil && n > 0 && l == known && in[0] == '*' {
				b := appendArray(nil, len(args))
				for _, a := range args {
					b = appendBulk(b, a)
				}
				if !bytes.Equal(b, in[:n]) {
					t.Fatalf("parse(%q) = %q, which is written %q", in[:n], args, b)
				}
			}
		}
	})
}

// FuzzServer: whatever arrives, the server gives whole answers, one for each
// command and one more for invalid input, and then ends.
func FuzzServer(f *testing.F) {
	f.Add([]byte(session), uint16(0))
	f.Add([]byte(session), uint16(7))
	f.Add([]byte("NEXT a 1000\r\nNEXTB a 100000\r\nHELLO 3\r\nINFO\r\nCOMMAND\r\n"), uint16(3))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), uint16(1))
	f.Add([]byte("AUTH a\r\nHELLO 3 AUTH default right\r\nINSPECT 5\r\nNEXT orders 3 FORMAT base7\r\n"), uint16(9))
	s := NewServer(Config{Front: service.Front{Backend: counting(), Limits: service.Limits{Count: 1000}}})
	closedTo := NewServer(Config{Front: service.Front{Backend: counting(), Limits: service.Limits{Count: 1000}, Auth: guard{}}})
	f.Fuzz(func(t *testing.T, in []byte, piece uint16) {
		for _, s := range []*Server{s, closedTo} {
			c := &scriptedConn{in: &pieceReader{in, int(piece) + 1}}
			s.serveConn(c)
			if !c.closed {
				t.Fatal("the connection is open yet")
			}
			got := values(t, string(bytes.Join(c.writes, nil)))
			for _, w := range c.writes {
				if len(w) > flushAt+256<<10 {
					t.Errorf("a write of %d bytes", len(w))
				}
			}
			whole := &scriptedConn{in: bytes.NewReader(in)}
			s.serveConn(whole)
			if want := values(t, string(bytes.Join(whole.writes, nil))); len(got) != len(want) {
				t.Fatalf("%d answers in pieces of %d bytes, want %d\n%v\n%v", len(got), int(piece)+1, len(want), got, want)
			}
			if n := len(s.conns); n != 0 {
				t.Fatalf("%d connections are left", n)
			}
		}
	})
}

// A pieceReader returns a few bytes at a time.
type pieceReader struct {
	rest []byte
	size int
}

func (p *pieceReader) Read(b []byte) (int, error) {
	n, err := bytes.NewReader(p.rest).Read(b[:min(p.size, len(b))])
	p.rest = p.rest[n:]
	return n, err
}
