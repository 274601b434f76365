//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/server/nettest"
)

// A gate blocks writes while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when the gate opens
	text bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	<-shut
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(b)
}

// TestLogWriter: lines are written before the call returns; without a reader,
// only the first call waits, briefly, a bounded number of lines is kept, and
// the log reports how many are missing.
func TestLogWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		close(open)
		g := &gate{shut: open}
		w := newLogWriter(g, func(lines int) []byte { return fmt.Appendf(nil, "%d are missing\n", lines) })
		begin := time.Now()
		for i := range 3 {
			fmt.Fprintf(w, "line %d\n", i)
			if got := g.text.String(); !strings.HasSuffix(got, fmt.Sprintf("line %d\n", i)) {
				t.Errorf("after line %d the log has %q", i, got)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("it took %v", took)
		}
		g.mu.Lock()
		g.shut = make(chan struct{})
		g.text.Reset()
		g.mu.Unlock()
		const size, many = 1000, 5000
		for i := range many {
			fmt.Fprintf(w, "%0*d\n", size-1, i)
		}
		if took := time.Since(begin); took != logPatience {
			t.Errorf("%d unread lines took %v, want %v", many, took, logPatience)
		}
		close(g.shut)
		synctest.Wait()
		fmt.Fprintln(w, "the last")
		w.close()
		got := strings.Split(g.text.String(), "\n")
		kept := 1 + mostLog/size // and the line that waited
		if len(got) != kept+3 || got[kept] != fmt.Sprintf("%d are missing", many-kept) || got[kept+1] != "the last" {
			t.Errorf("%d lines, the last of them %q, want %d that were kept, and how many are missing", len(got), got[max(0, len(got)-3):], kept)
		}
		fmt.Fprintln(w, "too late")
		if strings.Contains(g.text.String(), "too late") {
			t.Error("a line was written after close")
		}
	})
}

// TestLogWriterEnds: close does not wait for a log without a reader.
func TestLogWriterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{shut: make(chan struct{})}
		w := newLogWriter(g, func(int) []byte { return nil })
		fmt.Fprintln(w, "line")
		begin := time.Now()
		w.close()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("close took %v, want a second", took)
		}
		close(g.shut)
		<-w.ended
	})
}

// fullPipe returns the write end of a pipe that is full and not read.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	_ = w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for size := 4096; size > 0; size /= 2 {
		for {
			if _, err := w.Write(make([]byte, size)); err != nil {
				break
			}
			_ = w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		}
		_ = w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	}
	return w
}

// TestBlockedLog: a server whose log is not read, or no longer read, answers,
// and stops on a signal.
func TestBlockedLog(t *testing.T) {
	notInProcess(t)
	t.Run("full", func(t *testing.T) { serveInto(t, fullPipe(t)) })
	t.Run("gone", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		defer w.Close()
		serveInto(t, w)
	})
}

// serveInto runs a server with this stderr.
func serveInto(t *testing.T, stderr *os.File) {
	listener := nettest.Listen(t)
	address := listener.Addr().String()
	listener.Close()
	cmd := firnCommand(context.Background(), "serve --listen "+address+" --node 3 --log-level debug --log-format json")
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			break
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatal("the server does not listen")
		}
	}
	for i := range 1000 {
		resp, err := client.Post("http://"+address+"/v1/sequencers/orders/next", "", nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	_ = cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the server does not end")
	}
}

// TestBlockedLogUnderANodeID: a program that runs under a node ID is stopped
// before its window ends, even if the log is not read.
func TestBlockedLogUnderANodeID(t *testing.T) {
	notInProcess(t)
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	running := filepath.Join(dir, "running")
	cmd := firnCommand(context.Background(), "node run --window 3s --store dir:"+store+"?create=true&volatile=true -- tee "+running)
	cmd.Stderr = fullPipe(t)
	if _, err := cmd.StdinPipe(); err != nil { // tee makes the file, and waits for an end that does not come
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(running); err == nil {
			break
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatal("the program has no node ID")
		}
	}
	if err := os.Rename(store, store+".away"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		if code := cmd.ProcessState.ExitCode(); code != 124 {
			t.Errorf("exit code %d, want 124: stopped because of its window", code)
		}
	case <-time.After(20 * time.Second):
		t.Error("the program runs, long after its window")
	}
}
