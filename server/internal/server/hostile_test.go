package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/tlsconf"
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
	// After the answer to a request with a body the server closes the
	// connection.
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
func newStack(t *testing.T, l net.Listener, certificates tlsconf.Files) *stack {
	t.Helper()
	logs := new(nettest.Output)
	srv := must.Get(New(Config{
		Store: new(memstore.Store), MaxSequencers: 8, TLS: certificates, Logger: slog.New(slog.NewTextHandler(logs, nil)),
	}))(t)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(Listener{Listener: l}) }()
	return &stack{t, logs, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), must.Patience)
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
	if _, err := q.Create(ctx, &firnv1.CreateRequest{Name: "made", Layout: "hazelcast"}); err != nil {
		return err
	}
	if _, err := q.List(ctx, new(firnv1.ListRequest)); err != nil {
		return err
	}
	_, err := healthpb.NewHealthClient(conn).Check(ctx, new(healthpb.HealthCheckRequest))
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
	l := nettest.Listen(t)
	s := newStack(t, l, tlsconf.Files{})
	text := nettest.Recorded(t, l.Addr().String(), do)
	must.Do(t, s.end())
	return text
}

// good checks that a whole session gets whole answers, so that a cut session is
// a cut of a good one. It does not close its half of the connection: net/http
// and gRPC take that for the end of the connection.
func good(t *testing.T, protocol, session string, conn net.Conn) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(must.Patience))
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
		for ended < 6 {
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
		inStack(t, tlsconf.Files{}, all, func(conn *memConn, _ string) net.Conn { return conn }, f)
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
func inStack(t *testing.T, certificates tlsconf.Files, all map[string]string, over func(*memConn, string) net.Conn, f func(t *testing.T, dial func(most int) *memConn, clean func(what string))) {
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
		// The count still includes goroutines that have just ended; the stacks
		// do not.
		if text := stacks(); bytes.Count(text, []byte("\n\n")) > bytes.Count(stacksBefore, []byte("\n\n")) {
			t.Fatalf("%s: there are more goroutines than before:\n%s", what, text)
		}
	})
	for protocol, session := range all {
		good(t, protocol, session, over(dial(1<<20), protocol))
	}
	must.Do(t, s.end())
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

// How long firn serve waits for slow clients, as in docs/http.md,
// docs/security.md and the limits of package rpcapi.
const (
	slowRequest = 10 * time.Second                // a request of HTTP or a command of RESP, once it has begun
	slowIdle    = 2 * time.Minute                 // between requests of HTTP
	slowPing    = (30 + 20) * time.Second         // gRPC: until the ping, and for its answer
	slowReader  = (10 + 30) * time.Second         // until an answer is given up
	perByte     = 3 * time.Second                 // of a client that is too slow
	perGoodByte = slowRequest / 2 / 1000          // of a client that is slow, but in time
	slowMargin  = lingering + 10*time.Millisecond // for what follows the deadline
)

// A drip writes bytes one by one.
type drip struct {
	*memConn
	every time.Duration
}

func (d drip) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := d.memConn.Write(b[i : i+1]); err != nil {
			return i, err
		}
		time.Sleep(d.every)
	}
	return len(b), nil
}

// A way is what a client does after it has sent a part of a session.
type way struct {
	name string
	do   func(c *memConn, rest string)

	// limit is when the server must have closed the connection at the latest,
	// if the client does not.
	limit func(protocol string, sent int, rest string) time.Duration
}

// cuts end the connection.
var cuts = []way{
	{name: "closed", do: func(c *memConn, _ string) { _ = c.Close() }},
	{name: "reset", do: func(c *memConn, _ string) { _ = c.Reset() }},
	{name: "reset when read", do: func(c *memConn, _ string) { synctest.Wait(); _ = c.Reset() }},
	{name: "half-closed", do: func(c *memConn, _ string) { _ = c.CloseWrite() }},
}

// ways are all of them.
var ways = append(slices.Clone(cuts),
	way{name: "half-closed, then read", do: func(c *memConn, _ string) { _ = c.CloseWrite(); _, _ = io.Copy(io.Discard, c) }},
	way{name: "closed when read", do: func(c *memConn, _ string) { synctest.Wait(); _ = c.Close() }},
	way{name: "never read further", do: func(c *memConn, _ string) { synctest.Wait(); _ = c.CloseWrite(); synctest.Wait(); _ = c.Reset() }},
	way{name: "too slow", do: func(c *memConn, rest string) { _, _ = io.WriteString(drip{c, perByte}, rest) },
		limit: func(protocol string, _ int, rest string) time.Duration {
			if protocol == "grpc" { // whole frames that come in time are as good as answers to pings
				return perByte*time.Duration(len(rest)) + slowPing
			}
			// What was begun may just be in time, and the four bytes that tell
			// what comes next count as idle.
			return 2*slowRequest + 5*perByte
		}},
	way{name: "silent", do: func(*memConn, string) {},
		limit: func(protocol string, sent int, _ string) time.Duration {
			switch {
			case protocol == "grpc" && sent >= 4: // it is known to be gRPC
				return slowPing
			case protocol == "resp" || sent == 0: // it may be silent as long as it likes
				return 0
			}
			return slowIdle
		}},
)

// TestHostileClients: a client that is slow but in time gets all answers. One
// that ends, is too slow or falls silent after any byte, in whatever way, is
// closed in time and leaves nothing behind, and the server keeps serving.
func TestHostileClients(t *testing.T) {
	all := recordings(t)
	tested := 0
	for protocol, session := range all {
		t.Run(protocol, func(t *testing.T) {
			inBubble(t, all, func(t *testing.T, dial func(int) *memConn, clean func(string)) {
				good(t, protocol, session, drip{dial(1 << 20), perGoodByte})
				time.Sleep(lingering)
				clean("in time")
				for i := 0; i <= len(session); i += step() {
					for _, w := range ways {
						what := fmt.Sprintf("%d of %d bytes, %s", i, len(session), w.name)
						c := dial(1 << 20)
						_, _ = io.WriteString(c, session[:i])
						if w.limit != nil && i < len(session) {
							synctest.Wait()
							begin := time.Now()
							ended := make(chan time.Duration, 1)
							go func() {
								_, _ = io.Copy(io.Discard, c)
								ended <- time.Since(begin)
							}()
							w.do(c, session[i:])
							limit := w.limit(protocol, i, session[i:])
							if limit == 0 {
								limit = slowRequest
								if i == 0 {
									limit = 2 * slowIdle
								}
								time.Sleep(limit)
								if i == 0 && len(ended) > 0 {
									t.Errorf("%s: it was closed, want it open", what)
								}
								_ = c.CloseWrite()
							}
							if took := <-ended; took > limit+slowMargin {
								t.Errorf("%s: it was closed after %v, want %v at most", what, took, limit)
							}
						} else {
							w.do(c, session[i:])
						}
						_ = c.Close()
						time.Sleep(lingering)
						clean(what)
						tested++
					}
				}
			})
		})
	}
	t.Logf("report: hostile clients: %d connections of HTTP, gRPC and RESP that end, are too slow or silent, in %d ways: no goroutine is left", tested, len(ways))
}

// TestAnswersCut: a client that reads a part of a long answer and goes away, or
// does not read on, leaves nothing behind.
func TestAnswersCut(t *testing.T) {
	const (
		most     = 20_000   // IDs; their answers are longer than what is
		buffered = 80 << 10 // by a server and the connection
	)
	requests := map[string]string{
		"http text":  fmt.Sprintf("GET /v1/sequencers/orders/next?count=%d HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n", most),
		"http bytes": fmt.Sprintf("POST /v1/sequencers/orders/next?count=%d&format=raw HTTP/1.1\r\nHost: localhost\r\n\r\n", most),
		"metrics":    "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"resp array": fmt.Sprintf("NEXT orders %d\r\nNEXT orders %d\r\n", most, most),
		"resp bulk":  fmt.Sprintf("NEXTB orders %d\r\nNEXTB orders %d\r\n", most, most),
		"grpc next": recordCalls(t, func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := firnv1.NewIDsClient(conn).Next(ctx, &firnv1.NextRequest{Sequencer: "orders", Count: most})
			return err
		}),
	}
	tested := 0
	inBubble(t, recordings(t), func(t *testing.T, dial func(int) *memConn, clean func(string)) {
		for what, request := range requests {
			c := dial(1 << 20)
			_, _ = io.WriteString(c, request)
			_ = c.SetReadDeadline(time.Now().Add(lingering))
			whole, _ := io.Copy(io.Discard, c)
			_ = c.Close()
			for n := int64(0); n < whole; n += 1 + n/3 {
				for _, how := range []string{"closed", "reset", "not read further"} {
					c := dial(4 << 10)
					_, _ = io.WriteString(c, request)
					_ = c.SetReadDeadline(time.Now().Add(lingering)) // metrics may get shorter
					_, _ = io.CopyN(io.Discard, c, n)
					switch how {
					case "closed":
						_ = c.Close()
					case "reset":
						_ = c.Reset()
					default:
						time.Sleep(max(slowIdle, slowReader, slowPing))
						if what[:4] == "resp" && whole-n < buffered {
							_ = c.Close() // all may have been sent, and then it is idle
						}
					}
					time.Sleep(slowMargin)
					clean(fmt.Sprintf("%s, %d bytes of the answer, %s", what, n, how))
					_ = c.Close()
					tested++
				}
			}
		}
	})
	t.Logf("report: answers cut: %d connections whose client goes away while the server writes, or does not read on: no goroutine is left", tested)
}

// A cutConn ends in a chosen way after a number of bytes was written.
type cutConn struct {
	*memConn
	left  int
	end   func(*memConn)
	wrote int
}

var errCut = errors.New("the connection was cut")

func (c *cutConn) Write(b []byte) (int, error) {
	if c.left >= len(b) {
		c.left -= len(b)
		n, err := c.memConn.Write(b)
		c.wrote += n
		return n, err
	}
	n, _ := c.memConn.Write(b[:c.left])
	c.left = 0
	c.wrote += n
	c.end(c.memConn)
	return n, errCut
}

// TestCutInsideTLS: a connection that ends anywhere in its handshake, or in
// what is sent after it, leaves nothing behind, for each protocol that may be
// negotiated.
func TestCutInsideTLS(t *testing.T) {
	dir := t.TempDir()
	all := recordings(t)
	tested := 0
	synctest.Test(t, func(t *testing.T) {
		toDay()
		config := nettest.Certificates(t, dir)
		certificates := tlsconf.Files{Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"), ClientCA: filepath.Join(dir, "ca.crt")}
		over := func(conn net.Conn, protocol string) *tls.Conn {
			c := config.Clone()
			switch protocol {
			case "grpc":
				c.NextProtos = []string{"h2"}
			case "resp":
			default:
				c.NextProtos = []string{"h2", "http/1.1"}
			}
			return tls.Client(conn, c)
		}
		inStack(t, certificates, all, func(conn *memConn, protocol string) net.Conn { return over(conn, protocol) }, func(t *testing.T, dial func(int) *memConn, clean func(string)) {
			for protocol, session := range all {
				// Hellos and signatures differ in length by a few bytes.
				for left, more := 0, true; more; left += 37 * step() {
					for _, w := range cuts {
						raw := &cutConn{memConn: dial(1 << 20), left: left, end: func(c *memConn) { w.do(c, "") }}
						conn := over(raw, protocol)
						// In two records.
						_, err := io.WriteString(conn, session[:len(session)/2])
						if err == nil {
							_, err = io.WriteString(conn, session[len(session)/2:])
						}
						more = errors.Is(err, errCut)
						_ = raw.SetReadDeadline(time.Now().Add(2 * slowRequest))
						_, _ = io.Copy(io.Discard, conn)
						_ = raw.memConn.Close()
						time.Sleep(lingering)
						clean(fmt.Sprintf("%s, %d bytes, %s", protocol, left, w.name))
						tested++
					}
				}
			}
		})
	})
	t.Logf("report: connections cut inside TLS: %d, in the handshake and after it: no goroutine is left", tested)
}
