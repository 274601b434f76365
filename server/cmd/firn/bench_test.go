package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestBench: IDs of both sizes arrive, without duplicates. Two servers
// with the same static node make duplicates, and bench reports them.
func TestBench(t *testing.T) {
	url := startServe(t, nil, "--node", "1", "--max-ahead", "1s").url
	wide := startServe(t, nil, "--node", "1", "--layout", "uuidv7").url
	bench := func(args ...string) (code int, result struct{ IDs, Requests, Duplicates uint64 }) {
		t.Helper()
		stdout, stderr, code := runFirn(t, append([]string{"bench", "--json", "--duration", "300ms"}, args...)...)
		if err := json.Unmarshal([]byte(stdout), &result); err != nil {
			t.Fatalf("bench %q: %v: %s%s", args, err, stdout, stderr)
		}
		return code, result
	}
	for _, args := range []string{"--count 10 --server " + url, "--connections 2 --server " + url, "--count 100 --server " + wide} {
		code, r := bench(strings.Fields(args)...)
		if code != exitFine || r.IDs == 0 || r.Requests == 0 || r.Duplicates != 0 {
			t.Errorf("%s: exit %d, %+v", args, code, r)
		}
	}
	twin := startServe(t, nil, "--node", "1", "--max-ahead", "1s").url
	for tries := 0; ; tries++ {
		code, r := bench("--server", url+","+twin, "--count", "1000", "--sequencer", "twice", "--connections", "2")
		if code == exitNo && r.Duplicates > 0 {
			break
		}
		if tries == 20 {
			t.Fatal("two servers with the same node never gave the same ID")
		}
	}
	for _, args := range []string{"--connections 0", "--count 100001", "--duration 0s", "--server ftp://x", "--sequencer a,b"} {
		if code, out := runLine(t, "bench "+args); code != exitMisuse {
			t.Errorf("bench %s: exit %d, want %d: %s", args, code, exitMisuse, out)
		}
	}
}

// TestBenchTLS: --ca admits servers whose certificates a private authority has
// signed, and --cert identifies the client. A missing or wrong flag gives a
// hint.
func TestBenchTLS(t *testing.T) {
	token, hash := auth.NewToken()
	dir := t.TempDir()
	nettest.Certificates(t, dir)
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"tokens.yaml": "tokens:\n- {name: a, role: generate, sequencers: [bench], sha256: " + hash + "}\n- {name: c, role: generate, dns: localhost}\n",
		"token":       token + "\n",
	} {
		must.Do(t, os.WriteFile(file(name), []byte(text), 0o600))
	}
	secure := []string{"--node", "1", "--tls-cert", file("server.crt"), "--tls-key", file("server.key"), "--tokens", file("tokens.yaml")}
	url := startServe(t, nil, secure...).url
	mutual := startServe(t, nil, append(slices.Clip(secure), "--client-ca", file("ca.crt"), "--require-client-cert")...).url
	open := startServe(t, nil, "--node", "1").url
	for _, row := range []struct {
		args string
		want string // of the hint; "" if all is well
	}{
		{"--server " + url + " --ca " + file("ca.crt") + " --token-file " + file("token"), ""},
		{"--server " + mutual + " --ca " + file("ca.crt") + " --cert " + file("client.crt") + " --key " + file("client.key"), ""},
		{"--server " + url + " --token-file " + file("token"), "with --ca FILE"},
		{"--server " + mutual + " --ca " + file("ca.crt") + " --token-file " + file("token"), "with --cert FILE and --key FILE"},
		{"--server " + strings.Replace(url, "https:", "http:", 1), "if it uses TLS, write https://"},
		{"--server " + strings.Replace(mutual, "https:", "http:", 1), "if it uses TLS, write https://"},
		{"--server " + strings.Replace(open, "http:", "https:", 1), "the server does not use TLS"},
		{"--server " + url + " --ca " + file("ca.crt"), "name a token that the server knows"},
		{"--server " + url + " --sequencer other --ca " + file("ca.crt") + " --token-file " + file("token"), "name a token that may take IDs of other"},
	} {
		code, out := runLine(t, "bench --connections 1 --duration 1ms "+row.args)
		if want := map[bool]int{true: exitFine, false: exitFailed}[row.want == ""]; code != want || !strings.Contains(out, row.want) {
			t.Errorf("%s: exit %d, %s, want %d and %q", row.args, code, out, want, row.want)
		}
	}
	for _, args := range []string{"--token x --token-file " + file("token"), "--ca " + file("ca.crt"), "--server " + url + " --cert " + file("client.crt")} {
		if code, out := runLine(t, "bench "+args); code != exitMisuse {
			t.Errorf("bench %s: exit %d, want %d: %s", args, code, exitMisuse, out)
		}
	}
	for _, args := range []string{"--token-file " + file("none"), "--ca " + file("client.key"), "--cert " + file("server.crt") + " --key " + file("client.key")} {
		if code, out := runLine(t, "bench --server "+url+" "+args); code != exitFailed {
			t.Errorf("bench %s: exit %d, want %d: %s", args, code, exitFailed, out)
		}
	}
}
