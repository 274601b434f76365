package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// sessions are what HTTP and RESP clients send in a connection. Each complete
// session leaves the server unchanged.
var sessions = map[string]string{
	"http": "GET /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n" +
		"POST /v1/sequencers/orders/next?count=300&format=base62 HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\nContent-Length: 0\r\n\r\n" +
		"POST /v1/sequencers/orders/next?count=9&runs=true HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("x", 200) + "\r\n\r\n" +
		"POST /v1/sequencers/nobody/attach HTTP/1.1\r\nHost: localhost\r\n\r\n" +
		"GET /v1/sequencers HTTP/1.1\r\nHost: localhost\r\n\r\n" +
		"GET /v1/members HTTP/1.1\r\nHost: localhost\r\n\r\n" +
		"DELETE /v1/sequencers/nobody HTTP/1.1\r\nHost: localhost\r\n\r\n" +
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" +
		"GET /v1/inspect/117232478720118790 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
	// After the answer to a request with a body the server closes the connection.
	"put": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" +
		"PUT /v1/sequencers/made HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 24\r\n\r\n" + `{"layout":  "hazelcast"}`,
	"chunked": "PUT /v1/sequencers/made HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"10\r\n" + `{"layout":  "haz` + "\r\n8\r\n" + `elcast"}` + "\r\n0\r\n\r\n",
	"resp": "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$1\r\nx\r\n" +
		"*2\r\n$4\r\nNEXT\r\n$6\r\norders\r\n*3\r\n$4\r\nNEXT\r\n$6\r\norders\r\n$3\r\n100\r\nNEXT orders\r\nNEXT orders\r\n" +
		"*3\r\n$5\r\nNEXTB\r\n$6\r\norders\r\n$1\r\n9\r\nINCR orders\r\nINFO\r\nCOMMAND COUNT\r\n*2\r\n$7\r\nINSPECT\r\n$1\r\n5\r\n" +
		"*1\r\n$4\r\nPING\r\nGET x\r\nQUIT\r\n",
}

// A stack is the whole of firn serve inside the test process, on a store in
// memory.
type stack struct {
	t    *testing.T
	logs *nettest.Output
	end  func() error // stops it and waits
}

// newStack serves on a listener, with TLS if there are certificates.
func newStack(t *testing.T, l net.Listener, certificates *server.TLS) *stack {
	t.Helper()
	logs := new(nettest.Output)
	srv, err := server.New(server.Config{
		Store: new(memstore.Store), MaxNames: 8, TLS: certificates, Log: slog.New(slog.NewTextHandler(logs, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(server.Listener{Listener: l}) }()
	return &stack{t, logs, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), nettest.Patience)
		defer cancel()
		return errors.Join(srv.Shutdown(ctx), <-ended)
	}}
}

// calls makes calls of every kind over gRPC, in the same order each time.
func calls(ctx context.Context, conn *grpc.ClientConn) error {
	ids, q := firnv1.NewIDsClient(conn), firnv1.NewSequencersClient(conn)
	if _, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders"}); err != nil {
		return err
	}
	if _, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders", Count: 5000, Form: firnv1.Form_FORM_RUNS}); err != nil {
		return err
	}
	if _, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: strings.Repeat("x", 300)}); status.Code(err) != codes.InvalidArgument {
		return fmt.Errorf("invalid name: %w", err)
	}
	stream, err := ids.Stream(ctx)
	if err != nil {
		return err
	}
	for range 3 {
		if err := stream.Send(&firnv1.StreamRequest{Credit: 50}); err != nil {
			return err
		}
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := q.Create(ctx, &firnv1.CreateRequest{Name: "made", Layout: "hazelcast"}); err != nil {
		return err
	}
	if _, err := q.List(ctx, new(firnv1.ListRequest)); err != nil {
		return err
	}
	_, err = healthpb.NewHealthClient(conn).Check(ctx, new(healthpb.HealthCheckRequest))
	return err
}

// recordings returns all sessions, those of gRPC recorded.
func recordings(t *testing.T) map[string]string {
	t.Helper()
	all := maps.Clone(sessions)
	all["grpc"] = recordCalls(t, calls)
	return all
}

// recordCalls records a client of a server that serves only this client.
func recordCalls(t *testing.T, do func(context.Context, *grpc.ClientConn) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newStack(t, l, nil)
	text := nettest.Recorded(t, l.Addr().String(), do)
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	return text
}

// good checks that a whole session gets whole answers, so that a cut session is
// a cut of a good one. It does not close its half of the connection: net/http
// and gRPC take that for the end of the connection.
func good(t *testing.T, protocol, session string, conn net.Conn) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(nettest.Patience))
	defer conn.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, session)
	}()
	defer func() { <-sent }()
	in := bufio.NewReader(conn)
	switch protocol {
	case "http", "put", "chunked":
		for i, want := range map[string][]int{
			"http": {200, 200, 200, 404, 200, 200, 404, 200, 200}, "put": {200, 200}, "chunked": {200},
		}[protocol] {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Errorf("%s: answer %d: %v", protocol, i, err)
				return
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != want && (want != 200 || resp.StatusCode != 201) {
				t.Errorf("%s: answer %d: %s, %v, want %d: %.200s", protocol, i, resp.Status, err, want, body)
			}
		}
	case "resp":
		text, err := io.ReadAll(in)
		if err != nil || !strings.HasSuffix(string(text), "+OK\r\n") || strings.Count(string(text), "\n-") != 1 || len(text) < 2000 {
			t.Errorf("resp: %v: %.2000q", err, text)
		}
	case "grpc":
		ended := 0 // streams
		for ended < 7 {
			var head [9]byte
			if _, err := io.ReadFull(in, head[:]); err != nil {
				t.Errorf("grpc: %d streams have ended, and then %v", ended, err)
				return
			}
			size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
			if _, err := io.CopyN(io.Discard, in, size); err != nil {
				t.Error(err)
				return
			}
			if head[3] == 1 && head[4]&1 != 0 {
				ended++
			}
		}
	}
}

// inBubble serves in a synctest bubble, where only the test moves anything, so
// that every goroutine can be counted. dial makes a connection with buffers of
// the given size.
func inBubble(t *testing.T, all map[string]string, f func(t *testing.T, dial func(most int) *memConn, clean func(what string))) {
	synctest.Test(t, func(t *testing.T) {
		toDay()
		inStack(t, nil, all, func(conn *memConn, _ string) net.Conn { return conn }, f)
	})
}

// step returns how many bytes later the next connection is cut.
func step() int {
	if testing.Short() {
		return 11
	}
	return 1
}

// toDay moves the clock of a bubble to the time of the tests.
func toDay() { time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))) }

// inStack serves in the bubble of the test. over wraps a connection in memory.
func inStack(t *testing.T, certificates *server.TLS, all map[string]string, over func(*memConn, string) net.Conn, f func(t *testing.T, dial func(most int) *memConn, clean func(what string))) {
	l := nettest.NewPipes()
	s := newStack(t, l, certificates)
	dial := func(most int) *memConn {
		client, conn := newMemConn(most)
		l.Add(conn)
		return client
	}
	for protocol, session := range all { // start what starts once
		good(t, protocol, session, over(dial(1<<20), protocol))
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	before, stacksBefore := runtime.NumGoroutine(), stacks()
	f(t, dial, func(what string) {
		t.Helper()
		synctest.Wait()
		if runtime.NumGoroutine() <= before {
			return
		}
		// The count still includes goroutines that have just ended; the stacks do
		// not.
		if text := stacks(); bytes.Count(text, []byte("\n\n")) > bytes.Count(stacksBefore, []byte("\n\n")) {
			t.Fatalf("%s: there are more goroutines than before:\n%s", what, text)
		}
	})
	for protocol, session := range all {
		good(t, protocol, session, over(dial(1<<20), protocol))
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if text := s.logs.String(); strings.Contains(text, "panic") {
		t.Error(text)
	}
}

// stacks returns the stacks of all goroutines.
func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}

// lingering is longer than the server waits for the other end before it closes
// a connection.
const lingering = time.Second

// TestCutAtEveryByte: a connection that ends in any way, after any byte that
// the client sends, leaves nothing behind, and the server keeps serving.
func TestCutAtEveryByte(t *testing.T) {
	all := recordings(t)
	cuts, bytes := 0, 0
	for protocol, session := range all {
		t.Run(protocol, func(t *testing.T) {
			inBubble(t, all, func(t *testing.T, dial func(int) *memConn, clean func(string)) {
				good(t, protocol, session, dial(1<<20))
				time.Sleep(lingering)
				clean("the whole session")
				bytes += len(session)
				for i := 0; i <= len(session); i += step() {
					for how, end := range map[string]func(c *memConn){
						"half-closed": func(c *memConn) {
							_ = c.CloseWrite()
							_, _ = io.Copy(io.Discard, c)
							_ = c.Close()
						},
						"closed":             func(c *memConn) { _ = c.Close() },
						"reset":              func(c *memConn) { _ = c.Reset() },
						"reset when read":    func(c *memConn) { synctest.Wait(); _ = c.Reset() },
						"closed when read":   func(c *memConn) { synctest.Wait(); _ = c.Close() },
						"never read further": func(c *memConn) { synctest.Wait(); _ = c.CloseWrite(); synctest.Wait(); _ = c.Reset() },
					} {
						c := dial(1 << 20)
						_, _ = io.WriteString(c, session[:i])
						end(c)
						time.Sleep(lingering)
						clean(fmt.Sprintf("%d of %d bytes, %s", i, len(session), how))
						cuts++
					}
				}
			})
		})
	}
	t.Logf("report: connections cut: %d, after each of the %d bytes of %d sessions of HTTP, gRPC and RESP, in 6 ways each: no goroutine is left", cuts, bytes, len(all))
}

// TestCutOverTCP is the same over real connections, many at a time.
func TestCutOverTCP(t *testing.T) {
	all := recordings(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newStack(t, l, nil)
	dial := func() *net.TCPConn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return nil
		}
		return conn.(*net.TCPConn)
	}
	wholes := func() {
		t.Helper()
		for protocol, session := range all {
			if c := dial(); c != nil {
				good(t, protocol, session, c)
			}
		}
	}
	// settled waits until the number of goroutines stops falling.
	settled := func(most int) (n int) {
		for deadline := time.Now().Add(nettest.Patience); ; time.Sleep(5 * time.Millisecond) {
			if n = runtime.NumGoroutine(); n <= most || time.Now().After(deadline) {
				return n
			}
		}
	}
	wholes()
	time.Sleep(lingering) // net/http waits half a second for the other end, whatever the load
	before := runtime.NumGoroutine()
	runtime.GC()
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	heapBefore := heap.HeapAlloc

	var cuts atomic.Int64
	var workers sync.WaitGroup
	type cut struct {
		text string
		how  int
	}
	work := make(chan cut)
	for range 16 {
		workers.Go(func() {
			for w := range work {
				c := dial()
				if c == nil {
					continue
				}
				_ = c.SetDeadline(time.Now().Add(nettest.Patience))
				_, err := io.WriteString(c, w.text)
				if err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
					t.Error(err)
				}
				switch w.how {
				case 0:
					_ = c.CloseWrite()
					if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("half-closed after %q, and then nothing came", w.text)
					}
				case 1:
					_ = c.SetLinger(0)
				}
				_ = c.Close()
				cuts.Add(1)
			}
		})
	}
	for _, session := range all {
		for i := 0; i <= len(session); i += step() {
			for how := range 3 {
				work <- cut{session[:i], how}
			}
		}
	}
	close(work)
	workers.Wait()
	wholes()
	if n := settled(before); n > before {
		t.Errorf("%d goroutines, and there were %d before:\n%s", n, before, stacks())
	}
	runtime.GC()
	runtime.ReadMemStats(&heap)
	if grown := int64(heap.HeapAlloc) - int64(heapBefore); grown > 8<<20 {
		t.Errorf("the heap has grown by %d KiB after %d connections", grown>>10, cuts.Load())
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if text := s.logs.String(); strings.Contains(text, "panic") {
		t.Error(text)
	}
	t.Logf("report: connections cut over TCP: %d, half-closed, closed and reset; %d goroutines before and after, and %d KiB of heap before and %d after",
		cuts.Load(), before, heapBefore>>10, heap.HeapAlloc>>10)
}
