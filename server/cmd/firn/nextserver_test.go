//go:build linux || darwin

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNextFromServer: firn next --server prints IDs of the server, in the
// sequencer's own format.
func TestNextFromServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	url := startServe(t, nil, "--layout", "uuidv7", "--listen", "unix:"+socket).url
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Welcome") }))
	defer other.Close()
	narrow := startServe(t, nil, "--layout", "uuidv7", "--max-ids-per-call", "1000").url
	short := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		fmt.Fprint(w, "12345678\n23456789\n")
	}))
	defer short.Close()
	const httpAlone = "over HTTP\n.*hint: write http://HOST:PORT, https://HOST:PORT or unix:/PATH\n$"
	for _, row := range []struct {
		args []string
		code int
		want string // in the output, or in the errors
	}{
		{[]string{"-n", "2"}, exitFine, `^([0-9a-f-]{36}\n){2}$`},
		{[]string{"-n", "100001", "--format", "hex"}, exitFine, `^([0-9a-f]{32}\n)+$`},
		{[]string{"-n", "2", "--json"}, exitFine, `^(\{"id":"[0-9a-f-]{36}"\}\n){2}$`},
		{[]string{"-n", "3", "--format", "raw"}, exitFine, ""},
		{[]string{"-n", "5001", "--server", narrow}, exitFine, `^([0-9a-f-]{36}\n)+$`},
		{[]string{"-n", "3", "--server", short.URL}, exitFailed, "3 IDs"},
		{[]string{"-n", "3", "--server", short.URL, "--format", "raw"}, exitFailed, "3 IDs"},
		{[]string{"--format", "typed"}, exitFailed, "no prefix"},
		{[]string{"--layout", "uuidv7"}, exitMisuse, "the server decides"},
		{[]string{"--sequencer", "a b"}, exitMisuse, "a b"},
		{[]string{"--token", "a", "--token-file", "b"}, exitMisuse, "\\[token token-file\\] were all set"},
		{[]string{"-n", "2", "--server", "unix:" + socket}, exitFine, `^([0-9a-f-]{36}\n){2}$`},
		{[]string{"-n", "2", "--server", "unix://" + socket}, exitFine, `^([0-9a-f-]{36}\n){2}$`},
		{[]string{"--server", "firn://127.0.0.1:1"}, exitMisuse, httpAlone},
		{[]string{"--server", "127.0.0.1:3476"}, exitMisuse, httpAlone},
		{[]string{"--server", "http://"}, exitMisuse, `write http://HOST:PORT, without`},
		{[]string{"--server", "http://a", "--ca", "ca.crt"}, exitMisuse, `with TLS\n.*hint: write --server https://HOST:PORT\n`},
		{[]string{"--server", other.URL}, exitFailed, "Welcome.*\\n.*check that firn serve is running there; if it uses TLS, write https://\n$"},
		{[]string{"--server", "http://127.0.0.1:1"}, exitFailed, "running there; if it uses TLS, write https://\n$"},
		{[]string{"--server", "https://127.0.0.1:1"}, exitFailed, "check that firn serve is running there\n$"},
	} {
		out, errs, code := runFirn(t, append([]string{"next", "--sequencer", "orders", "--server", url}, row.args...)...)
		if code != exitFine {
			out = errs
		}
		if code != row.code || !regexp.MustCompile(row.want).MatchString(out) {
			t.Errorf("%v: exit %d, %.200q, want %d and %s", row.args, code, out, row.code, row.want)
		}
		if want, _ := strconv.Atoi(row.args[1]); code == exitFine && strings.Count(out, "\n") != want && len(out) != 16*want {
			t.Errorf("%v: %d lines in %d bytes", row.args, strings.Count(out, "\n"), len(out))
		}
	}
}
