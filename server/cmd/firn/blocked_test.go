//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// fullPipe returns the write end of a pipe that is full and not read.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	raw := must.Get(w.SyscallConn())(t)
	var full error
	err = raw.Write(func(fd uintptr) bool { // it does not block yet
		for size := 4096; size > 0; size /= 2 {
			for full = nil; full == nil || errors.Is(full, syscall.EINTR); {
				_, full = syscall.Write(int(fd), make([]byte, size))
			}
		}
		return true
	})
	if err != nil || !errors.Is(full, syscall.EAGAIN) {
		t.Fatal(err, full)
	}
	return w
}

// TestBlockedLog: a server whose log is not read, or no longer read, answers,
// and stops on a signal.
func TestBlockedLog(t *testing.T) {
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
	// A socket, because its log does not say which port it has.
	address := filepath.Join(t.TempDir(), "socket")
	cmd := firnCommand(context.Background(), "serve --listen unix:"+address+" --node 3 --log-level debug --log-format json")
	cmd.Stderr = stderr
	must.Do(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", address)
	}
	client := &http.Client{Timeout: must.Patience, Transport: &http.Transport{DialContext: dial}}
	defer client.CloseIdleConnections()
	must.Await(t, func() bool {
		conn, err := net.Dial("unix", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, "the server listens")
	for i := range 1000 {
		resp, err := client.Post("http://localhost/v1/sequencers/orders/next", "", nil)
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
	case <-time.After(must.Patience):
		t.Error("the server does not end")
	}
}

// TestBlockedLogUnderANodeID: a program that runs under a node ID is stopped
// before its window ends, even if the log is not read.
func TestBlockedLogUnderANodeID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	running := filepath.Join(dir, "running")
	cmd := firnCommand(context.Background(), "node run --window 3s --store dir:"+store+"?create=true&volatile=true -- tee "+running)
	cmd.Stderr = fullPipe(t)
	if _, err := cmd.StdinPipe(); err != nil { // tee makes the file, and waits for an end that does not come
		t.Fatal(err)
	}
	must.Do(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	must.Await(t, func() bool { _, err := os.Stat(running); return err == nil }, "the program has a node ID")
	must.Do(t, os.Rename(store, store+".away"))
	select {
	case <-ended:
		if code := cmd.ProcessState.ExitCode(); code != 124 {
			t.Errorf("exit code %d, want 124: stopped because of its window", code)
		}
	case <-time.After(must.Patience):
		t.Error("the program runs, long after its window")
	}
}

// TestInterrupted: a signal that arrives while a command waits for a node ID
// ends it with 128 and the number of the signal, however its handlers
// race.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	held := "node run --nodes 5..5 --store dir:" + filepath.Join(t.TempDir(), "store") + "?create=true&volatile=true -- "
	holder := firnCommand(context.Background(), held+"cat")
	holds := must.Get(holder.StdinPipe())(t)
	var output nettest.Output
	holder.Stderr = &output
	must.Do(t, holder.Start())
	defer func() {
		_ = holds.Close()
		_ = holder.Wait()
	}()
	(&running{log: &output}).await(t, "command started")
	for range 10 {
		for _, c := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			cmd := firnCommand(context.Background(), held+"true")
			var log nettest.Output
			cmd.Stderr = &log
			must.Do(t, cmd.Start())
			(&running{log: &log}).await(t, "waiting for a node ID")
			must.Do(t, cmd.Process.Signal(c))
			want := 128 + int(c)
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != want {
				t.Errorf("it ends with %d after %v, want %d: %s", cmd.ProcessState.ExitCode(), c, want, &log)
			}
		}
	}
}
