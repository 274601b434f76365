package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestHealth asks a server that runs, over each kind of address, and one that
// has ended.
func TestHealth(t *testing.T) {
	dir := t.TempDir()
	nettest.Certificates(t, dir)
	for name, more := range map[string][]string{
		"plain": nil,
		"TLS":   {"--tls-cert", filepath.Join(dir, "server.crt"), "--tls-key", filepath.Join(dir, "server.key")},
	} {
		t.Run(name, func(t *testing.T) {
			a, stdout, stderr := serveApp(t)
			socket := filepath.Join(t.TempDir(), "socket")
			address := nettest.FreeAddress(t)
			a.getenv = func(name string) string {
				if name == "FIRN_LISTEN" {
					return address + ",unix:" + socket
				}
				return ""
			}
			r := startServe(t, nil, append(slices.Clip(more), "--listen", address, "--listen", "unix:"+socket)...)
			for _, args := range [][]string{nil, {address}, {"unix:" + socket}, {"--live"}} {
				if code := run(t.Context(), a, append([]string{"health"}, args...)); code != 0 {
					t.Errorf("health %q of a ready server exits with %d\n%s", args, code, stderr)
				}
			}
			if got := stdout.String(); got != "ready\nready\nready\nok\n" {
				t.Errorf("health prints %q", got)
			}
			r.stop()
			if code := run(t.Context(), a, []string{"health"}); code != exitFailed {
				t.Errorf("health of a server that has ended exits with %d, want %d", code, exitFailed)
			}
		})
	}
}

// TestUnhealthy: a server that is not ready exits with 1, and so does one that
// is not Firn.
func TestUnhealthy(t *testing.T) {
	answer := `{"title":"The store is unavailable","detail":"more is in the log"}`
	status := http.StatusServiceUnavailable
	l := nettest.Listen(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	a, _, stderr := serveApp(t)
	address := l.Addr().String()
	if code := run(t.Context(), a, []string{"health", address}); code != exitNo || !strings.Contains(stderr.String(), "is not ready: The store is unavailable: more is in the log") {
		t.Errorf("health of a server that is not ready exits with %d and %s", code, stderr)
	}
	if code := run(t.Context(), a, []string{"health", "--live", address}); code != 0 {
		t.Errorf("health --live of it exits with %d\n%s", code, stderr)
	}
	status, answer = http.StatusNotFound, "what?"
	if code := run(t.Context(), a, []string{"health", address}); code != exitNo || !strings.Contains(stderr.String(), "404 Not Found") {
		t.Errorf("health of another server exits with %d and %s", code, stderr)
	}
	for _, args := range [][]string{{"nonsense"}, {"unix:"}, {"a:1", "b:2"}} {
		if code := run(t.Context(), a, append([]string{"health"}, args...)); code == 0 || code == exitNo {
			t.Errorf("health %q exits with %d", args, code)
		}
	}
}
