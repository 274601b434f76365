//go:build linux || darwin

package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/internal/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/server"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestServeGuarded: with TLS and tokens a server listens for other machines. A
// token, or a certificate, may do what the file says; one that is taken out of
// the file ends at SIGHUP.
func TestServeGuarded(t *testing.T) {
	dir := t.TempDir()
	withCert := nettest.Certificates(t, dir)
	without := withCert.Clone()
	without.Certificates = nil
	token, hash := auth.NewToken()
	reader, readerHash := auth.NewToken()
	tokens := filepath.Join(dir, "tokens.yaml")
	write := func(hash string) {
		t.Helper()
		text := fmt.Sprintf("tokens:\n- {name: billing, role: generate, sha256: %s, sequencers: [orders]}\n- {name: reader, role: read, sha256: %s}\n- {name: mesh, role: admin, cn: client.example}\n", hash, readerHash)
		must.Do(t, os.WriteFile(tokens, []byte(text), 0o600))
	}
	write(hash)
	p := startProcess(t, "0.0.0.0:0", fmt.Sprintf("--store dir:%[1]s/store?create=true&volatile=true --tls-cert %[1]s/server.crt --tls-key %[1]s/server.key --client-ca %[1]s/ca.crt --tokens %[2]s", dir, tokens))
	web := func(c *tls.Config, name, token string) int {
		t.Helper()
		r := must.Get(http.NewRequest("POST", p.url+"/v1/sequencers/"+name+"/next", nil))(t)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		client := &http.Client{Timeout: nettest.Patience, Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		resp := must.Get(client.Do(r))(t)
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, row := range []struct {
		c           *tls.Config
		name, token string
		want        int
	}{
		{without, "orders", "", 401}, {without, "orders", token, 200}, {without, "users", token, 403}, {without, "orders", reader, 403}, {withCert, "users", "", 200},
	} {
		if got := web(row.c, row.name, row.token); got != row.want {
			t.Errorf("%s with %q: status %d, want %d", row.name, row.token, got, row.want)
		}
	}

	// With TLS a session's cookie is one that browsers keep for this host and for
	// TLS only.
	client := &http.Client{Timeout: nettest.Patience, Transport: &http.Transport{TLSClientConfig: without},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp := must.Get(client.PostForm(p.url+"/sign-in", map[string][]string{"token": {reader}}))(t)
	resp.Body.Close()
	if c := resp.Cookies(); resp.StatusCode != 303 || len(c) != 1 || c[0].Name != "__Host-firn" || !c[0].Secure {
		t.Errorf("sign in: status %d, cookies %v", resp.StatusCode, c)
	}

	_, other := auth.NewToken()
	write(other)
	must.Do(t, p.cmd.Process.Signal(syscall.SIGHUP))
	for begin := time.Now(); web(without, "orders", token) != 401; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > nettest.Patience {
			t.Fatal("a token that was taken out of the file still counts")
		}
	}
}

// TestEmptiedTokens: a token file that is emptied by mistake locks no client
// out, and one without tokens is reported in the log; at the start too.
func TestEmptiedTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	token, hash := auth.NewToken()
	write("tokens:\n- {name: a, role: generate, sha256: " + hash + "}\n")
	var log nettest.Output
	srv, err := server.New(server.Config{Static: new(service.StaticConfig), TokenFile: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown(t.Context())
	l := nettest.Listen(t)
	go srv.Serve(server.Listener{Listener: l})
	for _, step := range []struct {
		text, want string
		knows      bool
	}{
		{"", `msg="tokens loaded" entries=1`, true},
		{"\n", "level=ERROR msg=\"invalid tokens: keeping the previous ones\"", true},
		{"tokens: []\n", `msg="tokens reloaded" entries=0`, false},
	} {
		if step.text != "" {
			write(step.text)
			srv.Reload()
		}
		if !strings.Contains(log.String(), step.want) {
			t.Errorf("the file is %q, and the log has no %s:\n%s", step.text, step.want, &log)
		}
		r := must.Get(http.NewRequest("POST", "http://"+l.Addr().String()+"/v1/sequencers/orders/next", nil))(t)
		r.Header.Set("Authorization", "Bearer "+token)
		resp := must.Get(http.DefaultClient.Do(r))(t)
		resp.Body.Close()
		if (resp.StatusCode == http.StatusOK) != step.knows {
			t.Errorf("the file is %q: status %d", step.text, resp.StatusCode)
		}
		if got := strings.Contains(log.String(), "no client may do anything"); got == step.knows {
			t.Errorf("the file is %q: want the warning about an empty file: %t\n%s", step.text, got, &log)
		}
	}
	for _, text := range []string{"", "# nobody yet\n"} {
		write(text)
		if code, out := runLine(t, "serve --listen 127.0.0.1:0 --tokens "+path); code != exitFailed || !strings.Contains(out, "tokens: []") {
			t.Errorf("serve with the file %q: exit %d, want %d: %s", text, code, exitFailed, out)
		}
	}
}
