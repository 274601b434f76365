//go:build linux || darwin

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A process is a firn serve in a process of its own.
type process struct {
	running
	cmd   *exec.Cmd
	ended chan struct{}
}

// startProcess starts firn serve at an address. It is killed when the test ends.
func startProcess(t *testing.T, listen string, args ...string) *process {
	t.Helper()
	return started(t, firnCommand(context.Background(), "serve --log-format json --listen "+listen+" "+strings.Join(args, " ")))
}

// started starts a command that is firn serve.
func started(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p, err := serves(t, cmd)
	must.Do(t, err)
	return p
}

// serves starts a command that is firn serve, and returns an error if that ends
// before it serves.
func serves(t *testing.T, cmd *exec.Cmd) (p *process, err error) {
	t.Helper()
	p = &process{cmd: cmd, ended: make(chan struct{})}
	logs := must.Get(cmd.StderrPipe())(t)
	must.Do(t, cmd.Start())
	p.log = new(nettest.Output)
	lines := bufio.NewReader(io.TeeReader(logs, p.log))
	p.url, err = urlIn(lines)
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait() // killed, or told to stop
		close(p.ended)
	}()
	p.stop = func() {
		_ = cmd.Process.Kill()
		<-p.ended
	}
	t.Cleanup(p.stop)
	return p, err
}

// TestForwardGuarded: servers ask each other over TLS, with certificates or
// with a token; one that is not let in says what it lacks, and why the other
// did not help.
func TestForwardGuarded(t *testing.T) {
	dir := t.TempDir()
	client := nettest.Certificates(t, dir)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	token, hash := auth.NewToken()
	stranger, _ := auth.NewToken()
	// So guarded, a server may listen for other machines.
	secure := []string{"--listen", "0.0.0.0:0", "--tls-cert", filepath.Join(dir, "server.crt"), "--tls-key", filepath.Join(dir, "server.key"), "--client-ca", filepath.Join(dir, "ca.crt")}
	entry := "tokens:\n- {name: all, role: admin, sha256: " + hash + "}\n"
	mutual := append(slices.Clip(secure), "--require-client-cert", "--tokens", file("mutual.yaml", entry+"- {name: members, role: generate, cn: server.example}\n"))
	tokens := append(slices.Clip(secure), "--tokens", file("tokens.yaml", entry))
	for _, row := range []struct {
		what   string
		args   []string
		asks   []string
		result string
		says   string
	}{
		{"certificates", mutual, nil, "ok", ""},
		{"a token", tokens, []string{"--forward-token", file("member", token)}, "ok", ""},
		{"no token", tokens, nil, "unauthorized", "1 denied this server access"},
		{"an authority that is not known", tokens, nil, "unreachable", "1 did not answer"},
		{"an unknown token", tokens, []string{"--forward-token", file("stranger", stranger)}, "unauthorized", "1 denied this server access"},
	} {
		t.Run(row.what, func(t *testing.T) {
			web := &http.Client{Transport: &http.Transport{TLSClientConfig: client, DisableKeepAlives: true}, Timeout: must.Patience}
			do := func(r *running, method, path string) (int, string) {
				t.Helper()
				q := must.Get(http.NewRequestWithContext(t.Context(), method, r.url+path, nil))(t)
				q.Header.Set("Authorization", "Bearer "+token)
				resp := must.Get(web.Do(q))(t)
				defer resp.Body.Close()
				text, _ := io.ReadAll(resp.Body)
				return resp.StatusCode, string(text)
			}
			args := append([]string{"--store", testStore(t), "--nodes", "0..0"}, row.args...)
			has := startServe(t, nil, args...)
			if status, body := do(has, "POST", "/v1/sequencers/orders/next"); status != 200 {
				t.Fatal(status, body)
			}
			args = append(append(args, "--forward-to", has.url), row.asks...)
			if row.result == "unreachable" {
				// Without TLS of its own it trusts the authorities of the system.
				args = append(args[:4:4], "--forward-to", has.url, "--forward-token", file("member", token), "--tokens", file("tokens.yaml", entry))
			}
			asks := startServe(t, nil, args...)
			status, body := do(asks, "POST", "/v1/sequencers/orders/next")
			if row.result == "ok" && status != 200 || row.result != "ok" && (status != 503 || !strings.Contains(body, row.says)) {
				t.Errorf("%d %s, want %s", status, body, row.result)
			}
			if _, text := do(asks, "GET", "/metrics"); !strings.Contains(text, `firn_forwards_total{result="`+row.result+`"} 1`+"\n") {
				t.Errorf("the metrics do not count one call with the result %s", row.result)
			}
		})
	}
}
