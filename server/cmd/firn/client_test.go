//go:build linux || darwin

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/internal/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestNextFromServer: firn next --server prints IDs of the server, in the
// sequencer's own format.
func TestNextFromServer(t *testing.T) {
	url := startServe(t, nil, "--layout", "uuidv7").url
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Welcome") }))
	defer other.Close()
	for _, row := range []struct {
		args []string
		code int
		want string // in the output, or in the errors
	}{
		{[]string{"-n", "2"}, exitFine, `^([0-9a-f-]{36}\n){2}$`},
		{[]string{"-n", "100001", "--format", "hex"}, exitFine, `^([0-9a-f]{32}\n)+$`},
		{[]string{"-n", "2", "--json"}, exitFine, `^(\{"id":"[0-9a-f-]{36}"\}\n){2}$`},
		{[]string{"-n", "3", "--format", "raw"}, exitFine, ""},
		{[]string{"--format", "typed"}, exitFailed, "no prefix"},
		{[]string{"--layout", "uuidv7"}, exitMisuse, "the server decides"},
		{[]string{"--sequencer", "a b"}, exitMisuse, "a b"},
		{[]string{"--token", "a", "--token-file", "b"}, exitMisuse, "\\[token token-file\\] were all set"},
		{[]string{"--server", "firn://127.0.0.1:1"}, exitMisuse, "http://HOST:PORT"},
		{[]string{"--server", other.URL}, exitFailed, "Welcome.*\\n.*check that firn serve is running there"},
		{[]string{"--server", "http://127.0.0.1:1"}, exitFailed, "check that firn serve is running there"},
	} {
		a, stdout, stderr := serveApp(t)
		code := run(t.Context(), a, append([]string{"next", "--sequencer", "orders", "--server", url}, row.args...))
		out := stdout.String()
		if code != exitFine {
			out = stderr.String()
		}
		if code != row.code || !regexp.MustCompile(row.want).MatchString(out) {
			t.Errorf("%v: exit %d, %.200q, want %d and %s", row.args, code, out, row.code, row.want)
		}
		if want, _ := strconv.Atoi(row.args[1]); code == exitFine && strings.Count(out, "\n") != want && len(out) != 16*want {
			t.Errorf("%v: %d lines in %d bytes", row.args, strings.Count(out, "\n"), len(out))
		}
	}
}

// TestClientOfStoppedServer: with one of three servers stopped, no call waits
// for it, nor for a TLS handshake with it: a request to it would take an hour. It
// is used again once it runs. TestHungServers in client has other ways to hang.
func TestClientOfStoppedServer(t *testing.T) {
	dir := t.TempDir()
	secure := nettest.Certificates(t, dir)
	servers := make([]testServer, 3)
	store := testStore(t)
	for i := range servers {
		servers[i].start(t, store+" --tls-cert "+dir+"/server.crt --tls-key "+dir+"/server.key")
		defer servers[i].end(syscall.SIGTERM)
	}
	for _, scheme := range []string{"https", "firns"} {
		t.Run(scheme, func(t *testing.T) { testStoppedServer(t, servers, scheme, secure) })
	}
}

func testStoppedServer(t *testing.T, servers []testServer, scheme string, secure *tls.Config) {
	config := client.Config{Timeout: time.Hour, TLS: secure}
	for i := range servers {
		_, addr, _ := strings.Cut(*servers[i].url.Load(), "://")
		config.Servers = append(config.Servers, scheme+"://"+addr)
	}
	seen := make(map[firn.ID]bool)
	newClient := func() (*client.Client, func()) {
		c := must.Get(client.New(config))(t)
		return c, func() {
			b := must.Get(c.Sequencer("orders").NextBatch(t.Context(), 10))(t)
			for id := range b.All() {
				if seen[id] {
					t.Fatalf("%v comes twice", id)
				}
				seen[id] = true
			}
		}
	}
	c, call := newClient()
	defer c.Close(context.Background())
	for range 30 {
		call()
	}
	_ = servers[0].cmd.Process.Signal(syscall.SIGSTOP)
	defer servers[0].cmd.Process.Signal(syscall.SIGCONT)
	for range 300 {
		call()
	}
	if c.ServerErrors()[0] == nil {
		t.Error("calls wait for the stopped server")
	}
	fresh, callFresh := newClient()
	defer fresh.Close(context.Background())
	for range 30 {
		callFresh()
	}
	_ = servers[0].cmd.Process.Signal(syscall.SIGCONT)
	for c.ServerErrors()[0] != nil && t.Context().Err() == nil {
		call()
	}
}
