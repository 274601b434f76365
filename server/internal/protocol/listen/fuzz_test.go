package listen

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

// A scripted is a connection whose client has sent all that it will ever send,
// in pieces.
type scripted struct {
	net.Conn
	rest  []byte
	size  int
	wrote bytes.Buffer
	read  int
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(s.size, len(s.rest))])
	s.rest = s.rest[n:]
	s.read += n
	return n, nil
}

func (s *scripted) Write(p []byte) (int, error)     { return s.wrote.Write(p) }
func (s *scripted) CloseWrite() error               { return nil }
func (s *scripted) Close() error                    { return nil }
func (s *scripted) SetReadDeadline(time.Time) error { return nil }

// FuzzSniff: in whatever pieces bytes come, they speak one protocol, its server
// gets each of them once, and no more of them are read than tell it: more than
// eight only if a line may be HTTP.
func FuzzSniff(f *testing.F) {
	for _, d := range dialects {
		f.Add([]byte(d.text), uint8(0))
		f.Add([]byte(d.text), uint8(2))
	}
	f.Add([]byte("PRI"), uint8(0))
	f.Add([]byte("OPTIONS"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		whole := &scripted{rest: text, size: len(text) + 1}
		_, want, wantErr := sniff(whole)
		pieces := &scripted{rest: text, size: int(size) + 1}
		conn, p, err := sniff(pieces)
		if p != want || (err == nil) != (wantErr == nil) || (err != nil) != (len(text) == 0) {
			t.Fatalf("%q is %v, %v, and in pieces of %d %v, %v", text, want, wantErr, int(size)+1, p, err)
		}
		most := 8
		for n := 8; n < len(text); n *= 4 {
			if _, sure := protocolOf(text[:min(n, maxLine)]); sure {
				break
			}
			most = min(4*n, maxLine)
		}
		if pieces.read > most || whole.read > most {
			t.Fatalf("%q: %d bytes were read to tell it, %d in one piece", text, pieces.read, whole.read)
		}
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

// FuzzRefuseCalls: whatever a client of gRPC sends that is one too many, it
// gets whole frames that answer its own, one call is answered, then comes the
// end, and no more is read than may be.
func FuzzRefuseCalls(f *testing.F) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frames := func(all ...[]byte) []byte { return append([]byte(preface), bytes.Join(all, nil)...) }
	settings := appendFrame(nil, frameSettings, 0, 0, nil)
	ping := appendFrame(nil, framePing, 0, 0, []byte("12345678"))
	call := appendFrame(nil, frameHeaders, flagEndHeaders, 1, []byte{0x83, 0x86})
	f.Add(frames(settings, ping, call))
	f.Add(frames(call, call))
	f.Add(frames(appendFrame(nil, framePing, flagAck, 0, []byte("1"))))
	f.Add(frames(appendFrame(nil, 0, 0, 1, make([]byte, 100)), appendFrame(nil, frameHeaders, 0, 1<<31-1, nil)))
	f.Add([]byte(preface[:10]))
	f.Add(frames([]byte{0xff, 0xff, 0xff, frameSettings, 0, 0, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, in []byte) {
		conn := &scripted{rest: in, size: 1 << 20}
		refuseCalls(conn)
		if conn.read > 2*64<<10+512 {
			t.Fatalf("%d bytes were read", conn.read)
		}
		out := conn.wrote.Bytes()
		var answered, ended bool
		for first := true; len(out) > 0; first = false {
			if len(out) < 9 {
				t.Fatalf("a frame is cut at %x", out)
			}
			size := int(out[0])<<16 | int(out[1])<<8 | int(out[2])
			kind, flags, stream := out[3], out[4], binary.BigEndian.Uint32(out[5:9])
			if len(out) < 9+size || ended {
				t.Fatalf("after the end, or cut: %x", out)
			}
			payload := out[9 : 9+size]
			out = out[9+size:]
			switch {
			case kind == frameSettings && flags == 0 && first, kind == frameSettings && flags == flagAck:
				if size != 0 || stream != 0 || first == (flags == flagAck) {
					t.Fatalf("SETTINGS %x of stream %d with flags %d, first %v", payload, stream, flags, first)
				}
			case kind == framePing && flags == flagAck:
				if stream != 0 || !bytes.Contains(in, payload) {
					t.Fatalf("PING %q answers nothing", payload)
				}
			case kind == frameHeaders && !answered:
				answered = true
				if stream == 0 || !bytes.Contains(payload, []byte(full)) {
					t.Fatalf("stream %d is answered %q", stream, payload)
				}
			case kind == frameGoAway && answered:
				ended = true
			default:
				t.Fatalf("a frame of type %d with flags %d", kind, flags)
			}
		}
		if answered != ended {
			t.Fatal("an answer without the end")
		}
	})
}
