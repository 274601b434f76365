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
	answer, status := `{"title":"The store is unavailable","detail":"more is in the log"}`, http.StatusServiceUnavailable
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
	problem, unready := answer, status
	for _, tt := range []struct {
		status       int
		answer, args string
		code         int
		want         string
	}{
		{unready, problem, "ADDRESS", exitNo, "is not ready: The store is unavailable: more is in the log"},
		{unready, problem, "--live ADDRESS", exitFine, ""},
		{http.StatusNotFound, "what?", "ADDRESS", exitNo, "404 Not Found"},
		{unready, problem, "nonsense", exitMisuse, "is not an address"},
		{unready, problem, "unix:", exitFailed, "does not answer"},
		{unready, problem, "a:1 b:2", exitMisuse, "takes only the address"},
	} {
		status, answer = tt.status, tt.answer
		code, out := runLine(t, "health "+strings.Replace(tt.args, "ADDRESS", l.Addr().String(), 1))
		if code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("health %s of %d %s exits with %d and %s, want %d and %q", tt.args, tt.status, tt.answer, code, out, tt.code, tt.want)
		}
	}
}
