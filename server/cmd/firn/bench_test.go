package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/firnid/firn/server/auth"
)

// startServing runs serve in this process, and returns its URL.
func startServing(t *testing.T, args ...string) string {
	t.Helper()
	a, _, _ := serveApp(t)
	in, out := io.Pipe()
	a.stderr = out
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		_ = run(ctx, a, append([]string{"serve", "--listen", "127.0.0.1:0", "--log-format", "json"}, args...))
		out.Close()
	})
	t.Cleanup(all.Wait)
	t.Cleanup(stop)
	lines := bufio.NewReader(in)
	url, err := urlIn(lines)
	if err != nil {
		t.Fatal(err)
	}
	all.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	return url
}

// TestBench: over each protocol IDs come and none twice; of two servers with
// the same static node, some come twice, and that is said.
func TestBench(t *testing.T) {
	url := startServing(t, "--node", "1", "--max-ahead", "1s")
	bench := func(args ...string) (code int, result struct{ IDs, Requests, Duplicates uint64 }) {
		t.Helper()
		a, stdout, stderr := serveApp(t)
		code = run(t.Context(), a, append([]string{"bench", "--json", "--duration", "300ms"}, args...))
		if err := json.NewDecoder(strings.NewReader(stdout.String())).Decode(&result); err != nil {
			t.Fatalf("bench %q: %v: %s%s", args, err, stdout, stderr)
		}
		return code, result
	}
	for _, args := range []string{"--protocol http --count 10", "--protocol grpc --count 10", "--protocol resp --pipeline 8 --count 3", "--protocol resp"} {
		code, r := bench(append([]string{"--server", url}, strings.Fields(args)...)...)
		if code != exitFine || r.IDs == 0 || r.Requests == 0 || r.Duplicates != 0 {
			t.Errorf("%s: exit %d, %+v", args, code, r)
		}
	}
	twin := startServing(t, "--node", "1", "--max-ahead", "1s")
	for tries := 0; ; tries++ {
		code, r := bench("--server", url+","+twin, "--count", "1000", "--sequencer", "twice", "--connections", "2")
		if code == exitNo && r.Duplicates > 0 {
			break
		}
		if tries == 20 {
			t.Fatal("two servers with the same node never gave the same ID")
		}
	}
	for _, args := range []string{"--connections 0", "--count 100001", "--pipeline 2", "--duration 0s", "--server ftp://x", "--protocol xml", "--sequencer a,b"} {
		a, _, stderr := serveApp(t)
		if code := run(t.Context(), a, append([]string{"bench"}, strings.Fields(args)...)); code != exitMisuse {
			t.Errorf("bench %s: exit %d, want %d: %s", args, code, exitMisuse, stderr)
		}
	}
}

// TestBenchHint: where a server lets nobody in without a token, the hint is
// about the token, over each protocol.
func TestBenchHint(t *testing.T) {
	token, hash := auth.NewToken()
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(tokens, []byte("tokens:\n- {name: a, role: generate, sequencers: [orders], sha256: "+hash+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := startServing(t, "--node", "1", "--tokens", tokens)
	for _, protocol := range []string{"http", "grpc", "resp"} {
		for _, tt := range []struct{ token, want string }{
			{"", "hint: the server wants to know who asks: --token"},
			{"firn_wrong", "hint: the server does not know this --token"},
			{token, "hint: this --token may not take IDs of bench"},
		} {
			a, _, stderr := serveApp(t)
			code := run(t.Context(), a, []string{"bench", "--server", url, "--protocol", protocol, "--token", tt.token, "--connections", "1", "--duration", "1ms"})
			if code != exitFailed || !strings.Contains(stderr.String(), tt.want) {
				t.Errorf("%s with token %q: exit %d, and %s, want %q", protocol, tt.token, code, stderr, tt.want)
			}
		}
	}
}
