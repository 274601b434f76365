//go:build linux || darwin

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestUnusualMethods: a request of HTTP whose method no server has is answered
// as one, on the port that serves RESP too.
func TestUnusualMethods(t *testing.T) {
	r := startServe(t, nil, "--node", "1")
	for _, method := range []string{"FOO", "PROPFIND", "get"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(nettest.Patience))
		fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", method)
		answer, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"HTTP/1.1 405 ", "Allow: GET, HEAD\r\n", "urn:firn:problem:method-not-allowed"} {
			if !strings.Contains(string(answer), want) {
				t.Errorf("%s is answered %q, want %q in it", method, answer, want)
			}
		}
	}
}

// lines are those of the log that have an attribute of this value.
func (r *running) lines(key, value string) (all []map[string]any) {
	for line := range strings.Lines(r.log.String()) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil && fmt.Sprint(m[key]) == value {
			all = append(all, m)
		}
	}
	return all
}

// twoServers are two servers of one store with one node ID. The first has it,
// so that the second forwards calls for orders.
func twoServers(t *testing.T, args ...string) (has, asks *running) {
	t.Helper()
	args = append([]string{"--store", testStore(t), "--nodes", "0..0"}, args...)
	has = startServe(t, nil, args...)
	if status, _, body := has.post(t, "orders"); status != 200 {
		t.Fatal(status, body)
	}
	asks = startServe(t, nil, append(args, "--forward-to", has.url)...)
	if status, _, body := asks.post(t, "orders"); status != 200 {
		t.Fatal(status, body)
	}
	return has, asks
}

// TestRequestIDForwarded: the ID of a call over each protocol is in the logs of
// the server that was called, and of the one that it forwarded to.
func TestRequestIDForwarded(t *testing.T) {
	has, asks := twoServers(t, "--log-level", "debug")
	status, header, body := asks.post(t, "orders", "X-Request-Id", "order-17")
	if status != 200 || header.Get("X-Request-Id") != "order-17" {
		t.Fatalf("status %d, %v: %s", status, header, body)
	}
	want := func(r *running, what, id, key, value string) {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			for _, l := range r.lines("request_id", id) {
				if l["msg"] == what && fmt.Sprint(l[key]) == value {
					return
				}
			}
			if time.Since(begin) > nettest.Patience {
				t.Fatalf("no line %q with %s=%s of request %s:\n%s", what, key, value, id, r.log)
			}
		}
	}
	want(asks, "request", "order-17", "protocol", "http")
	want(asks, "forwarded", "order-17", "sequencer", "orders")
	want(has, "request", "order-17", "protocol", "http")

	conn, err := net.Dial("tcp", strings.TrimPrefix(asks.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(nettest.Patience))
	fmt.Fprint(conn, "NEXT orders\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line[0] != '$' {
		t.Fatal(line, err)
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if lines := asks.lines("protocol", "resp"); len(lines) == 1 {
			want(has, "request", fmt.Sprint(lines[0]["request_id"]), "protocol", "http")
			break
		} else if time.Since(begin) > nettest.Patience {
			t.Fatalf("%d lines are of RESP:\n%s", len(lines), asks.log)
		}
	}
}

// TestLogsAreVisible: no format of the log passes on what a terminal may act on,
// and JSON still has the same text.
func TestLogsAreVisible(t *testing.T) {
	const text = "a\x1b[31m b\u009b31m c\x7f d\u202e e\U000e0001 größe 日本"
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		a := &app{stderr: &out}
		l := &logFlags{logFormat: format}
		l.logger(a).Info(text, "name", text)
		a.log.Close()
		if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }) || !strings.Contains(out.String(), "größe 日本") {
			t.Errorf("%s: %q", format, &out)
		}
		var got struct{ Msg, Name string }
		if err := json.Unmarshal(out.Bytes(), &got); format == "json" && (err != nil || got.Msg != text || got.Name != text) {
			t.Errorf("%v, %q, want %q", err, got, text)
		}
	}
}

// TestLogLevelReload: at SIGHUP the level of the file counts, where nothing
// else says it.
func TestLogLevelReload(t *testing.T) {
	for _, given := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "firn.yaml")
		write := func(level string) {
			t.Helper()
			if err := os.WriteFile(file, []byte("log: {level: "+level+"}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("info")
		s, flags := serveFlags()
		if given {
			s.args = []string{"--log-level", "info"}
		}
		if err := flags.Parse(s.args); err != nil {
			t.Fatal(err)
		}
		if _, err := s.load(flags, file, func(string) string { return "" }); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		a := &app{stderr: &out}
		log := s.logger(a)
		defer a.log.Close()
		for _, step := range []struct {
			level   string
			debug   bool
			restart string
			wrong   bool
		}{{"debug", true, "", false}, {"loud", true, "", true}, {"error}\nlimits: {body: 1B", true, "", true}, {"error", false, "", false}, {"error", false, "", false}} {
			write(step.level)
			before := out.Len()
			_, restart, err := s.reload()
			if (err != nil) != (step.wrong && !(given && step.level == "loud")) { // a flag overrides it
				t.Errorf("%s: %v", step.level, err)
			}
			log.Debug("here")
			if got, want := out.Len() > before, step.debug && !given; got != want {
				t.Errorf("given %t, level %s: debug is logged: %t, want %t", given, step.level, got, want)
			}
			if got := strings.Join(restart, " "); got != "" && !given {
				t.Errorf("level %s: %s at the next start", step.level, got)
			}
		}
	}
}

// TestServeReload: SIGHUP reaches a process that runs.
func TestServeReload(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "firn.yaml")
	if err := os.WriteFile(file, []byte("log: {format: json}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startProcess(t, "127.0.0.1:0", "--node 3 --config", file)
	if err := os.WriteFile(file, []byte("log: {format: json, level: debug}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.await(t, "configuration reloaded")
	_, header, _ := r.post(t, "orders")
	id := header.Get("X-Request-Id")
	r.await(t, id)
	if lines := r.lines("request_id", id); len(lines) == 0 || lines[0]["level"] != "DEBUG" {
		t.Errorf("%v, want a line of the request %s", lines, id)
	}
}
