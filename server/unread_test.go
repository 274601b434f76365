package server

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestAnswersNotRead: connections whose clients ask for the largest answers
// again and again and read nothing cost little, and end at the write timeout.
// Package rpcapi has the same for gRPC.
func TestAnswersNotRead(t *testing.T) {
	const most, conns = 20 << 20, 10
	for protocol, row := range map[string]struct{ hello, ask string }{
		"http": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", strings.Repeat("GET /v1/sequencers/orders/next?count=100000 HTTP/1.1\r\nHost: localhost\r\n\r\n", 50)},
		"resp": {"PING\r\n", strings.Repeat("NEXT orders 100000\r\n", 50)},
	} {
		t.Run(protocol, func(t *testing.T) {
			s, err := New(Config{Static: new(Static), Limit: 2 * time.Second, Limits: Limits{Write: time.Second}})
			if err != nil {
				t.Fatal(err)
			}
			l := &small{nettest.Listen(t)}
			go s.Serve(Listener{Listener: l})
			before := inUse()
			for range conns {
				conn := nettest.Dial(t, l.Addr().String())
				// From the first answer on it is counted as open.
				if _, err := io.WriteString(conn, row.hello); err != nil {
					t.Fatal(err)
				}
				if _, err := conn.Read(make([]byte, 4<<10)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conn, row.ask); err != nil {
					t.Fatal(err)
				}
			}
			used := uint64(0)
			for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
				open := int64(0)
				for _, p := range protocols {
					open += s.open(p)
				}
				if open == 0 {
					break
				}
				now := inUse()
				used = max(used, now-min(before, now))
				// HTTP adds the limit of the request to that of writing.
				if time.Since(begin) > nettest.Patience {
					t.Fatalf("%d connections are open that are not read", open)
				}
			}
			if used > most {
				t.Errorf("%d connections that are not read cost %d MiB, want %d at most", conns, used>>20, most>>20)
			}
			t.Logf("report: %s: %d connections that are not read cost %d MiB", protocol, conns, used>>20)
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// inUse is how many bytes the process uses.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// A small listener gives connections with a small buffer in the system.
type small struct{ net.Listener }

func (l *small) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		_ = conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
	}
	return conn, err
}
