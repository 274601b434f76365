package rpcapi

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A narrowListener's connections buffer little of what is not read.
type narrowListener struct {
	net.Listener
	server *Server
}

func (l *narrowListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		_ = conn.(*net.TCPConn).SetWriteBuffer(64 << 10) // or the system takes MiBs
	}
	return conn, err
}

// serveNarrow serves until the test ends.
func serveNarrow(t *testing.T, c Config) *narrowListener {
	t.Helper()
	s := NewServer(c)
	l := &narrowListener{nettest.Listen(t), s}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx) // an attacker's calls may be cut off
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

// A rawClient is a client that speaks HTTP/2 as no library would.
type rawClient struct {
	t    *testing.T
	conn net.Conn
	next uint32
}

// dialRaw connects. The windows of the client are as large as they can be, so
// that only the server's own limits hold it back.
func dialRaw(t *testing.T, l *narrowListener) *rawClient {
	t.Helper()
	conn := nettest.Dial(t, l.Addr().String())
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	r := &rawClient{t, conn, 1}
	hello := nettest.H2Preface +
		nettest.H2Frame(4, 0, 0, "\x00\x04\x7f\xff\xff\xff") + // SETTINGS_INITIAL_WINDOW_SIZE
		nettest.H2Frame(8, 0, 0, "\x40\x00\x00\x00") // WINDOW_UPDATE of the connection
	must.Get(io.WriteString(conn, hello))(t)
	return r
}

// call sends the head of a call, and its message if there is one.
func (r *rawClient) call(method string, m proto.Message, headers ...string) (stream uint32, err error) {
	stream = r.next
	r.next += 2
	out := nettest.H2Frame(frameHeaders, 4, stream, nettest.CallHeaders(method, headers...)) // END_HEADERS
	if m != nil {
		b := must.Get(proto.Marshal(m))(r.t)
		out += nettest.H2Frame(frameData, 0, stream, nettest.CallMessage(string(b)))
	}
	_, err = io.WriteString(r.conn, out)
	return stream, err
}

// closedWithin reports whether the server closes the connection in so long.
// Frames that come meanwhile are read and not answered.
func (r *rawClient) closedWithin(d time.Duration) bool {
	_ = r.conn.SetReadDeadline(time.Now().Add(d))
	_, err := io.Copy(io.Discard, r.conn)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// heap is how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// TestAnswersNotRead: forty connections with as many calls as there can be,
// whose clients read nothing, cost little together, whatever size their
// answers have; another client gets long answers meanwhile; and what they hold
// ends.
func TestAnswersNotRead(t *testing.T) {
	const conns, most = 40, 128 << 20
	const write = 2 * time.Second
	for what, row := range map[string]struct {
		method string
		m      proto.Message
	}{
		"short answers": {"/firn.v1.IDs/Next", &firnv1.NextRequest{Count: manyOctets / 8}},
		"long answers":  {"/firn.v1.IDs/Next", &firnv1.NextRequest{Count: service.MaxCount}},
	} {
		t.Run(what, func(t *testing.T) {
			s := newOpen()
			l := serveNarrow(t, Config{Front: service.Front{Backend: s, Limits: service.Limits{Write: write}}})
			before := heap()
			for range conns {
				r := dialRaw(t, l)
				for range maxStreams {
					if _, err := r.call(row.method, row.m); err != nil {
						break // the write timeout of the first ones has passed
					}
				}
			}
			used := uint64(0)
			now := func() {
				now := heap()
				used = max(used, now-min(before, now))
			}
			now()
			conn := nettest.DialGRPC(t, l.Addr().String())
			ids := firnv1.NewIDsClient(conn)
			err := status.Error(codes.Unavailable, "")
			for status.Code(err) == codes.Unavailable { // it may be too slow once
				_, err = ids.Next(t.Context(), &firnv1.NextRequest{Count: service.MaxCount}, grpc.MaxCallRecvMsgSize(1<<30))
			}
			if err != nil {
				t.Errorf("another client: %v", err)
			}
			_ = conn.Close()
			for s.given.Load() == 0 || !l.server.total.room.TryAcquire(maxHeldAll) { // ends with the test's time
				time.Sleep(write / 10)
				now()
			}
			if used > most {
				t.Errorf("%d connections that are not read cost %d MiB, want %d at most", conns, used>>20, most>>20)
			}
			t.Logf("report: %s: %d connections of %d calls that are not read cost %d MiB", what, conns, maxStreams, used>>20)
		})
	}
}

// TestStrangers: a client that is not known has few calls at once, and its
// connection ends soon, whatever it leaves unsaid; one that is known is not
// held back by that.
func TestStrangers(t *testing.T) {
	const read = 3 * time.Second
	l := serveNarrow(t, Config{Front: service.Front{Backend: static(t, "default"), Auth: tokenGuard{}, Limits: service.Limits{Read: read}}})
	silent := func(method string) func(r *rawClient) error {
		return func(r *rawClient) (err error) {
			for i := 0; i < maxStreams && err == nil; i++ {
				_, err = r.call(method, nil)
			}
			return err
		}
	}
	for what, do := range map[string]func(r *rawClient) error{
		"it says nothing":                 func(*rawClient) error { return nil },
		"calls without a message":         silent("/firn.v1.IDs/Next"),
		"health checks without a message": silent("/grpc.health.v1.Health/Check"),
		"a watch": func(r *rawClient) error {
			_, err := r.call("/grpc.health.v1.Health/Watch", &firnv1.GetRequest{})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := dialRaw(t, l)
			_ = do(r) // fails if its connection has ended already
			if !r.closedWithin(must.Patience) {
				t.Error("the connection is open")
			}
		})
	}
	t.Run("a known client", func(t *testing.T) {
		t.Parallel()
		r := dialRaw(t, l)
		for range maxStreams {
			must.Get(r.call("/firn.v1.IDs/Next", &firnv1.NextRequest{}, "authorization", "Bearer generate default"))(t)
		}
		if r.closedWithin(3 * read) {
			t.Error("the connection of a known client was closed")
		}
	})
}

// TestMessageNeverComes: a call whose message does not come ends, also of a
// client that is known, and its connection continues.
func TestMessageNeverComes(t *testing.T) {
	var calls atomic.Int64
	const read = time.Second
	conn := serve(t, Config{Front: service.Front{Backend: blocking(func(context.Context) { calls.Add(1) }), Limits: service.Limits{Read: read}}})
	for _, method := range []string{"/firn.v1.IDs/Next", "/firn.v1.Sequencers/List"} {
		call, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err == nil {
			err = call.RecvMsg(new(firnv1.NextResponse))
		}
		if status.Code(err) != codes.Canceled || calls.Load() != 0 {
			t.Errorf("%s: %v, want Canceled; %d calls reached the sequencers", method, err, calls.Load())
		}
	}
}

// A controlsConn counts the SETTINGS and PINGs that a client writes.
type controlsConn struct {
	net.Conn
	out frameScanner
	got *atomic.Int64
}

func (c *controlsConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.out.scan(b[:n], func(kind, flags byte, _ uint32) {
		if (kind == frameSettings || kind == framePing) && flags&flagAck == 0 {
			c.got.Add(1)
		}
	})
	return n, err
}

// TestBusyClient: gRPC's own client sends many PINGs while it reads answers, to
// estimate the bandwidth, and keeps its connection.
func TestBusyClient(t *testing.T) {
	s := newOpen()
	l := serveNarrow(t, Config{Front: service.Front{Backend: s}})
	var controls, dials atomic.Int64
	conn := nettest.DialGRPC(t, "firn", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		dials.Add(1)
		c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		return &controlsConn{c, frameScanner{skip: len(nettest.H2Preface)}, &controls}, err
	}))
	ids := firnv1.NewIDsClient(conn)
	for responses := 0; controls.Load() <= 2*maxControls; responses++ {
		if responses == 100_000 {
			t.Fatalf("the client sent only %d", controls.Load())
		}
		if _, err := ids.Next(t.Context(), &firnv1.NextRequest{}); err != nil {
			t.Fatalf("after %d SETTINGS and PINGs: %v", controls.Load(), err)
		}
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}
