//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant/memstore"
)

func TestRedisFigure(t *testing.T) {
	const head = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n"
	for out, want := range map[string]float64{
		head + "\"INCR bench\",\"62893.08\",\"0.9\",\"0.1\",\"0.8\",\"1.0\",\"1.1\",\"2.0\"\n":                              62893.08,
		"WARNING: Could not fetch server CONFIG\n" + head + "\"INCR bench\",\"10.5\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"\n": 10.5,
	} {
		if got, err := redisFigure(out); err != nil || got != want {
			t.Errorf("redisFigure(%q) = %v, %v, want %v", out, got, err, want)
		}
	}
	for _, out := range []string{"", head, "Error from server: ERR no such sequencer\n" + head + "\"a\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"\n", strings.Replace(head, "rps", "x", 1) + "\"a\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"\n"} {
		if got, err := redisFigure(out); err == nil {
			t.Errorf("redisFigure(%q) = %v, want an error", out, got)
		}
	}
}

// answering returns a server that reads as many bytes as a request has, and
// answers each.
func answering(t *testing.T, request string, answer func(n int) string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, len(request))
				for n := 0; ; n++ {
					for at := 0; at < len(buf); {
						k, err := conn.Read(buf[at:])
						if err != nil {
							return
						}
						at += k
					}
					if string(buf) != request {
						fmt.Fprintf(conn, "-ERR not %q\r\n", buf)
						return
					}
					if _, err := conn.Write([]byte(answer(n))); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestRESPCaller(t *testing.T) {
	packed := func(first uint64) string {
		b := binary.BigEndian.AppendUint64(nil, first)
		return "$16\r\n" + string(binary.BigEndian.AppendUint64(b, first+1)) + "\r\n"
	}
	for name, c := range map[string]struct {
		words  []string
		pack   int
		answer func(int) string
		ids    int
		err    string
	}{
		"integers":         {[]string{"INCR", "a"}, 0, func(n int) string { return fmt.Sprintf(":%d\r\n", n) }, 3, ""},
		"strings":          {[]string{"NEXT", "a"}, 0, func(n int) string { return "$2\r\n12\r\n" }, 3, ""},
		"packed":           {[]string{"NEXTB", "a", "2"}, 2, func(n int) string { return packed(uint64(2*n + 1)) }, 6, ""},
		"an error":         {[]string{"INCR", "a"}, 0, func(n int) string { return "-ERR no\r\n" }, 0, `the answer is "-ERR no\r\n"`},
		"nothing":          {[]string{"NEXT", "a"}, 0, func(n int) string { return "$-1\r\n" }, 0, `the answer is "$-1\r\n"`},
		"too few":          {[]string{"NEXTB", "a", "2"}, 2, func(n int) string { return "$8\r\n12345678\r\n" }, 0, "8 bytes, want 16"},
		"the same twice":   {[]string{"NEXTB", "a", "2"}, 2, func(n int) string { return packed(7) }, 2, "IDs 0000000000000007 to 0000000000000008 after 0000000000000008"},
		"packed, an error": {[]string{"NEXTB", "a", "2"}, 2, func(n int) string { return ":12\r\n" }, 0, "the answer is"},
	} {
		command := respCommand(c.words...)
		conn, err := respConn(t.Context(), answering(t, command, c.answer), command, 3, c.pack)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := conn.call()
		if got := errText(err); ids != c.ids || !strings.HasPrefix(got, c.err) || c.err == "" && err != nil {
			t.Errorf("%s: %d IDs, %v; want %d, %s", name, ids, err, c.ids, c.err)
		}
		conn.Close()
	}
	if got, want := respCommand("NEXTB", "a", "10"), "*3\r\n$5\r\nNEXTB\r\n$1\r\na\r\n$2\r\n10\r\n"; got != want {
		t.Errorf("respCommand = %q, want %q", got, want)
	}
}

func TestHTTPCaller(t *testing.T) {
	var id atomic.Uint64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		n, _ := strconv.Atoi(r.URL.Query().Get("count"))
		var b []byte
		for range n {
			b = binary.BigEndian.AppendUint64(b, id.Add(1))
		}
		if r.URL.Path == "/same" {
			b = make([]byte, 8*n)
		}
		if r.URL.Path == "/chunked" {
			w.Write(b[:8])
			w.(http.Flusher).Flush()
			b = b[8:]
		}
		w.Write(b)
	}))
	defer server.Close()
	for _, c := range []struct {
		path, err string
		pack, ids int
	}{
		{"/?count=5", "", 5, 10},
		{"/chunked?count=5", "", 5, 10},
		{"/?count=1", "", 0, 2},
		{"/?count=4", "32 bytes, want 40", 5, 0},
		{"/chunked?count=4", "32 bytes, want 40", 5, 0},
		{"/chunked?count=6", "more than 40 bytes", 5, 0},
		{"/same?count=5", "IDs 0000000000000000 to 0000000000000000 after 0000000000000000", 5, 5},
		{"/busy", `the answer is "HTTP/1.1 429`, 0, 0},
		{"/chunked?count=1", "the answer has no length", 0, 0},
	} {
		conn, err := httpConn(t.Context(), strings.TrimPrefix(server.URL, "http://"), c.path, "text/plain", c.pack)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := conn.call()
		if err == nil {
			var more int
			more, err = conn.call()
			ids += more
		}
		if got := errText(err); ids != c.ids || !strings.HasPrefix(got, c.err) || c.err == "" && err != nil {
			t.Errorf("%s of %d: %d IDs, %v; want %d, %s", c.path, c.pack, ids, err, c.ids, c.err)
		}
		conn.Close()
	}
}

// A countingCaller fails after some calls.
type countingCaller struct {
	calls, most int
	closed      bool
}

func (c *countingCaller) call() (int, error) {
	if c.calls++; c.calls > c.most {
		return 0, errors.New("enough")
	}
	return 2, nil
}

func (c *countingCaller) Close() error { c.closed = true; return nil }

func TestDrive(t *testing.T) {
	a, b := &countingCaller{most: 3}, &countingCaller{most: 5}
	l, err := drive([]caller{a, b}, time.Minute)
	if errText(err) != "enough\nenough" || a.calls != 4 || b.calls != 6 {
		t.Errorf("drive: %+v, %v", l, err)
	}
	// Failed calls do not count: there is no figure for something that does not
	// work.
	if l.calls != 0 || l.ids != 0 {
		t.Errorf("drive counts %+v of callers that failed", l)
	}
	all, closeAll, err := callers(2, func() (caller, error) { return &countingCaller{most: 1 << 40}, nil })
	if err != nil {
		t.Fatal(err)
	}
	l, err = drive(all, time.Millisecond)
	if err != nil || l.calls < 2 || l.ids != 2*l.calls || l.took < time.Millisecond {
		t.Errorf("drive: %+v, %v", l, err)
	}
	closeAll()
	for _, c := range all {
		if !c.(*countingCaller).closed {
			t.Error("a caller was not closed")
		}
	}
}

func TestFixture(t *testing.T) {
	f := &fixture{name: "x"}
	var order []int
	f.Cleanup(func() { order = append(order, 1) })
	f.Cleanup(func() { order = append(order, 2); f.Cleanup(func() { order = append(order, 3) }) })
	f.close()
	f.close()
	if fmt.Sprint(order) != "[2 3 1]" {
		t.Errorf("cleanups ran in the order %v, want [2 3 1]", order)
	}
	err := bounded(t.Context(), time.Minute, func(context.Context) { f.Skipf("no %s", "server") })
	if errText(err) != "no server" {
		t.Errorf("a skip is %v", err)
	}
}

func TestCountingStore(t *testing.T) {
	s := &countingStore{Store: new(memstore.Store)}
	ctx := t.Context()
	if ok, err := s.CAS(ctx, "a", nil, []byte("1")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := s.CAS(ctx, "a", nil, []byte("2")); ok || err != nil {
		t.Fatal(ok, err)
	}
	if v, err := s.Get(ctx, "a"); string(v) != "1" || err != nil {
		t.Fatal(v, err)
	}
	if err := s.List(ctx, "", func(string, []byte) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if w, r, l := s.writes.Load(), s.reads.Load(), s.lists.Load(); w != 2 || r != 1 || l != 1 {
		t.Errorf("%d writes, %d reads, %d lists, want 2, 1, 1: a refused write is a write", w, r, l)
	}
}

// A program that is not firn serve, or ends at once, causes an error and not a
// wait.
func TestServeThatEnds(t *testing.T) {
	if _, err := serve(t.Context(), "/bin/false"); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("serve of a program that ends: %v", err)
	}
	if _, err := serve(t.Context(), "/there/is/none"); err == nil {
		t.Error("serve of no program: no error")
	}
}

// TestHazelcast: both sides count the same, and a machine without Java gets a
// reason.
func TestHazelcast(t *testing.T) {
	calls := 0
	got := take(func(n int) { calls += n }, 10, 5*time.Millisecond)
	if got.ids != calls || got.ids%10 != 0 || got.ids == 0 || got.wall < 5*time.Millisecond {
		t.Errorf("take: %+v after %d calls", got, calls)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := javaPeer(t.Context(), t.TempDir(), "Peer.java", nil); err == nil || err.Error() != "java is not installed" {
		t.Errorf("without Java: %v", err)
	}
	reader, writer := io.Pipe()
	h := &hazelcast{in: writer, out: bufio.NewReader(strings.NewReader("2000 150123456 140123456 1\n"))}
	asked := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(reader).ReadString('\n')
		asked <- line
	}()
	got, err := h.take(100, 150*time.Millisecond)
	if want := (taken{2000, 150123456, 140123456}); err != nil || got != want || <-asked != "100 150\n" {
		t.Errorf("take: %+v, %v, want %+v", got, err, want)
	}
}

func TestProcess(t *testing.T) {
	var log bytes.Buffer
	p, err := start(&log, "/bin/sh", "-c", "echo hello >&2; while :; do sleep 1; done")
	if err != nil {
		t.Fatal(err)
	}
	p.end()
	select {
	case <-p.ended:
	default:
		t.Error("the process runs on")
	}
	p.end() // again does no harm
}
