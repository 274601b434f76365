package main

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestNotify: a service manager hears that the server is ready, that it is
// alive, and that it stops, in this order.
func TestNotify(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Skipf("no sockets for datagrams here: %v", err)
	}
	defer manager.Close()
	a, _, stderr := serveApp(t)
	getenv := a.getenv
	a.getenv = func(name string) string {
		switch name {
		case "NOTIFY_SOCKET":
			return socket
		case "WATCHDOG_USEC":
			return "20000"
		}
		return getenv(name)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, a, []string{"serve", "--listen", "127.0.0.1:0"}) }()
	next := func() string {
		t.Helper()
		if err := manager.SetReadDeadline(time.Now().Add(nettest.Patience)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		n, err := manager.Read(b)
		if err != nil {
			t.Fatalf("the manager hears nothing: %v\n%s", err, stderr)
		}
		return string(b[:n])
	}
	if m := next(); !strings.HasPrefix(m, "READY=1\nSTATUS=Serving on http://127.0.0.1:") {
		t.Errorf("the first message is %q, want READY=1 and the address", m)
	}
	for range 3 {
		if m := next(); m != "WATCHDOG=1" {
			t.Errorf("a message of a server that runs is %q, want WATCHDOG=1", m)
		}
	}
	stop()
	m := next()
	for m == "WATCHDOG=1" {
		m = next()
	}
	if lines := strings.Split(m, "\n"); lines[0] != "STOPPING=1" || !slices.Contains(lines, "EXTEND_TIMEOUT_USEC=20000000") {
		t.Errorf("the message of a server that stops is %q, want STOPPING=1 and how long it may take", m)
	}
	if code := <-ended; code != 0 {
		t.Errorf("serve exits with %d\n%s", code, stderr)
	}
}

// TestNoManager: without a manager, or with one that is gone, the server runs.
func TestNoManager(t *testing.T) {
	for _, socket := range []string{"", filepath.Join(t.TempDir(), "gone")} {
		a, _, stderr := serveApp(t)
		getenv := a.getenv
		a.getenv = func(name string) string {
			if name == "NOTIFY_SOCKET" {
				return socket
			}
			return getenv(name)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() { ended <- run(ctx, a, []string{"serve", "--listen", "127.0.0.1:0"}) }()
		for !strings.Contains(stderr.String(), "msg=serving") {
			select {
			case code := <-ended:
				t.Fatalf("serve exits with %d\n%s", code, stderr)
			case <-time.After(time.Millisecond):
			}
		}
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("serve with NOTIFY_SOCKET=%q exits with %d\n%s", socket, code, stderr)
		}
	}
}
