//go:build linux || darwin

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/internal/must"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// idleMost is how many idle connections TestIdleConnections opens where the
// limits on open files allow it.
const idleMost = 10_000

// idleFiles is the number of open files of a process besides its connections.
const idleFiles = 200

// An idleConn is a connection that has said who it is, and then nothing.
type idleConn struct {
	net.Conn
	kind string
	in   *bufio.Reader
}

// idleKinds are what connections are before they are idle: three protocols, and
// nothing.
var idleKinds = []string{"http", "resp", "grpc", "bare"}

const h2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// h2Frame is a frame of HTTP/2.
func h2Frame(kind, flags byte, payload string) []byte {
	n := len(payload)
	b := append([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}, 0, 0, 0, 0)
	return append(b, payload...)
}

// framed is a frame of HTTP/2 of a stream.
func framed(kind, flags byte, stream uint32, payload string) string {
	b := h2Frame(kind, flags, payload)
	binary.BigEndian.PutUint32(b[5:], stream)
	return string(b)
}

// callBlock is the header block of a call, without the table of the connection.
func callBlock(path string) string {
	var b strings.Builder
	for _, text := range []string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "localhost", "content-type", "application/grpc", "te", "trailers"} {
		if b.Len() == 0 || text[0] == ':' || text == "content-type" || text == "te" {
			b.WriteByte(0) // a literal that is not kept
		}
		b.WriteByte(byte(len(text)))
		b.WriteString(text)
	}
	return b.String()
}

// callMessage is the message of a call.
func callMessage(m string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(m)))) + m
}

// dialIdle makes a connection, which has had an answer in its protocol.
func dialIdle(addr, kind string) (*idleConn, error) {
	conn, err := (&net.Dialer{Timeout: nettest.Patience}).Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &idleConn{Conn: conn, kind: kind}
	if kind != "bare" {
		c.in = bufio.NewReaderSize(conn, 512)
	}
	if kind == "grpc" {
		call := h2Preface + framed(4, 0, 0, "") + framed(1, 4, 1, callBlock("/firn.v1.IDs/Next")) + framed(0, 1, 1, callMessage(""))
		if _, err := io.WriteString(conn, call); err != nil {
			return nil, err
		}
		for ended := false; !ended; {
			kind, flags, _, err := c.frame()
			if err != nil {
				return nil, err
			}
			ended = kind == 1 && flags&1 != 0
		}
	}
	return c, c.check()
}

// check has a connection answer once more. One that never said anything shows
// only that it is open, or was closed in order.
func (c *idleConn) check() error {
	_ = c.SetDeadline(time.Now().Add(nettest.Patience))
	defer c.SetDeadline(time.Time{})
	switch c.kind {
	case "http":
		if _, err := io.WriteString(c, "POST /v1/sequencers/idle/next HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil {
			return err
		}
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
			return fmt.Errorf("status %d: %s, %v", resp.StatusCode, body, err)
		}
	case "resp":
		if _, err := io.WriteString(c, "NEXT idle\r\n"); err != nil {
			return err
		}
		for range 2 { // its length, and the ID
			if line, err := c.in.ReadString('\n'); err != nil || line[0] == '-' {
				return fmt.Errorf("%q, %w", line, err)
			}
		}
	case "grpc":
		const ping = "firnfirn"
		if _, err := c.Write(h2Frame(6, 0, ping)); err != nil {
			return err
		}
		for {
			kind, flags, payload, err := c.frame()
			if err != nil {
				return err
			}
			if kind == 6 && flags == 1 && payload == ping {
				return nil
			}
		}
	case "bare":
		_ = c.SetDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%w, want no byte", err)
		}
	}
	return nil
}

// frame reads a frame of HTTP/2, and answers those that want it.
func (c *idleConn) frame() (kind, flags byte, payload string, err error) {
	var head [9]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, 0, "", err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:4])>>8)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return 0, 0, "", err
	}
	kind, flags, payload = head[3], head[4], string(b)
	switch {
	case kind == 4 && flags == 0:
		_, err = c.Write(h2Frame(4, 1, ""))
	case kind == 6 && flags == 0:
		_, err = c.Write(h2Frame(6, 1, payload))
	}
	return kind, flags, payload, err
}

// end waits until the server has closed the connection, and says how.
func (c *idleConn) end() string {
	_ = c.SetDeadline(time.Now().Add(nettest.Patience))
	defer c.Close()
	goAway := false
	for {
		var err error
		if c.kind == "grpc" {
			var kind byte
			kind, _, _, err = c.frame()
			goAway = goAway || kind == 7
		} else {
			_, err = c.Read(make([]byte, 1))
			if err == nil {
				return "was sent something"
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "open"
		case c.kind == "grpc" && !goAway:
			return "closed without GOAWAY"
		case errors.Is(err, io.EOF):
			return "closed"
		default:
			return err.Error()
		}
	}
}

// each calls f for n connections, for so many at once, and counts what it
// returns.
func each(n, atOnce int, f func(i int) string) map[string]int {
	var mu sync.Mutex
	counts := make(map[string]int)
	var all sync.WaitGroup
	at := make(chan int)
	for range atOnce {
		all.Go(func() {
			for i := range at {
				text := f(i)
				mu.Lock()
				counts[text]++
				mu.Unlock()
			}
		})
	}
	for i := range n {
		at <- i
	}
	close(at)
	all.Wait()
	return counts
}

// memoryOf is a line about the memory of a process, in KiB: VmRSS is how much is
// in RAM, and VmHWM the most that was; 0 where the system does not say it.
func memoryOf(t *testing.T, pid int, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), name+":")
	kib := 0
	_, _ = fmt.Sscan(rest, &kib)
	return kib
}

// TestIdleConnections: firn serve holds as many idle connections as
// --max-connections allows, of all protocols and of none, in its own process.
// One more gets an error, the others continue, and all end in order when the
// server stops.
func TestIdleConnections(t *testing.T) {
	var files syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	n := int(min(idleMost, uint64(files.Max)-idleFiles))
	if testing.Short() {
		n = min(n, 1000)
	}
	if uint64(files.Max) < 2*idleFiles {
		t.Skipf("a process may have %d open files here, which is too few", files.Max)
	}
	n -= n % len(idleKinds)

	// Three of the test's own are inside before the others, and ask at the end
	// again.
	server := startProcess(t, "127.0.0.1:0", fmt.Sprintf("--node 7 --max-connections %d", n+3))
	url := server.url
	addr := strings.TrimPrefix(url, "http://")

	web := &http.Client{Transport: new(http.Transport), Timeout: nettest.Patience}
	resp := must.Get(dialIdle(addr, "resp"))(t)
	rpc := must.Get(grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	ask := func(when string) {
		t.Helper()
		r, err := web.Post(url+"/v1/sequencers/idle/next?count=3", "", nil)
		if err != nil {
			t.Fatalf("%s: HTTP: %v", when, err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if r.StatusCode != 200 {
			t.Errorf("%s: HTTP: %s", when, r.Status)
		}
		if err := resp.check(); err != nil {
			t.Errorf("%s: RESP: %v", when, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
		defer cancel()
		if a, err := firnv1.NewIDsClient(rpc).Next(ctx, &firnv1.NextRequest{Count: 3}); err != nil || len(a.Ids) != 3 {
			t.Errorf("%s: gRPC: %v, %v", when, a, err)
		}
	}
	ask("alone")

	conns := make([]*idleConn, n)
	want := func(what string, got map[string]int, want string, n int) {
		t.Helper()
		if got[want] != n {
			t.Fatalf("%s: the connections are %v, want %d %s", what, got, n, want)
		}
	}
	say := func(err error) string {
		if err != nil {
			return err.Error()
		}
		return "ok"
	}

	ofKind := n / len(idleKinds)
	first := memoryOf(t, server.cmd.Process.Pid, "VmRSS")
	begin := time.Now()
	for i := range idleKinds {
		want("open "+idleKinds[i], each(ofKind, 32, func(c int) string {
			var err error
			conns[i*ofKind+c], err = dialIdle(addr, idleKinds[i])
			return say(err)
		}), "ok", ofKind)
	}
	took := time.Since(begin)
	last := memoryOf(t, server.cmd.Process.Pid, "VmRSS")
	ask("among the idle")
	want("check", each(n, 32, func(i int) string { return say(conns[i].check()) }), "ok", n)

	// Those that said nothing may have been closed by now, and make room: fill it.
	var more []net.Conn
	defer func() {
		for _, c := range more {
			c.Close()
		}
	}()
	refused := func() bool {
		c, err := dialIdle(addr, "resp")
		if err == nil {
			more = append(more, c)
			return false
		}
		if !strings.Contains(err.Error(), "max number of clients") {
			t.Fatalf("RESP beyond the limit: %v", err)
		}
		return true
	}
	for !refused() {
		if len(more) > n {
			t.Fatalf("%d connections are inside, and there may be %d", n+3+len(more), n+3)
		}
	}
	r, err := (&http.Client{Transport: new(http.Transport)}).Post(url+"/v1/sequencers/idle/next", "", nil)
	if err != nil {
		t.Fatalf("HTTP beyond the limit: %v", err)
	}
	r.Body.Close()
	if r.StatusCode != 503 && len(more) == 0 {
		t.Errorf("HTTP beyond the limit: %s, want 503", r.Status)
	}
	outside := must.Get(grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer outside.Close()
	_, err = firnv1.NewIDsClient(outside).Next(t.Context(), new(firnv1.NextRequest))
	if status.Code(err) != codes.Unavailable && len(more) == 0 {
		t.Errorf("gRPC beyond the limit: %v, want UNAVAILABLE", err)
	}
	ask("at the limit")

	closed := make(chan map[string]int)
	go func() { closed <- each(n, n, func(i int) string { return conns[i].end() }) }()
	begin = time.Now()
	must.Do(t, server.cmd.Process.Signal(syscall.SIGTERM))
	want("end", <-closed, "closed", n)
	web.CloseIdleConnections()
	resp.Close()
	_ = rpc.Close()
	<-server.ended
	if state := server.cmd.ProcessState; !state.Success() {
		t.Errorf("firn serve: %v\n%s", state, server.log)
	}
	ended := time.Since(begin)
	if !strings.Contains(server.log.String(), `"msg":"stopped"`) || !strings.Contains(server.log.String(), "refusing connections") {
		t.Errorf("the log ends with\n%s", server.log)
	}
	t.Logf("report: %d idle connections held, made in %.1f s; the server has %d MiB with them and %d MiB without; one more is refused over all protocols; on SIGTERM all are closed in order, in %.1f s",
		n, took.Seconds(), last>>10, first>>10, ended.Seconds())
	most := 32.0
	if raced() {
		most *= 8
	}
	if kib := float64(last-first) / float64(n); kib > most && !testing.Short() {
		t.Errorf("an idle connection costs %.1f KiB, want %v at most", kib, most)
	}
}

// raced reports whether the race detector is on. Everything takes more memory
// with it.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
