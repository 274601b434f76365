package main

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
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
	r := startServe(t, map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "20000"})
	next := func() string {
		t.Helper()
		must.Do(t, manager.SetReadDeadline(time.Now().Add(must.Patience)))
		b := make([]byte, 4096)
		n, err := manager.Read(b)
		if err != nil {
			t.Fatalf("the manager hears nothing: %v\n%s", err, r.log)
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
	go r.stop()
	m := next()
	for m == "WATCHDOG=1" {
		m = next()
	}
	if lines := strings.Split(m, "\n"); lines[0] != "STOPPING=1" || !slices.Contains(lines, "EXTEND_TIMEOUT_USEC=20000000") {
		t.Errorf("the message of a server that stops is %q, want STOPPING=1 and how long it may take", m)
	}
}
