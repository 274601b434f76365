package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRedirects: no command follows a redirect, because its token would be sent
// along, perhaps without TLS.
func TestRedirects(t *testing.T) {
	var asked atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer target.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL+r.URL.Path, status)
		}))
		for _, command := range []string{"next", "bench --duration 10ms --connections 1"} {
			code, out := runLine(t, command+" --token secret --server "+server.URL)
			if code == exitFine || !strings.Contains(out, "a redirect to") || !strings.Contains(out, target.URL) || asked.Load() > 0 {
				t.Errorf("%s, %d: exit %d, %d requests of the target: %s", command, status, code, asked.Load(), out)
			}
		}
		server.Close()
	}
}
