//go:build linux || darwin

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/server"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestServeGuarded: with TLS and tokens, who has none gets nothing over either
// protocol; who has one, or a certificate, gets what it may; and a token that
// is taken out of the file ends.
func TestServeGuarded(t *testing.T) {
	dir := t.TempDir()
	withCert := nettest.Certificates(t, dir)
	without := withCert.Clone()
	without.Certificates = nil
	token, hash := auth.NewToken()
	reader, readerHash := auth.NewToken()
	tokens := filepath.Join(dir, "tokens.yaml")
	entry := func(name, role, hash string) string {
		return fmt.Sprintf("- {name: %s, role: %s, sha256: %s, sequencers: [orders]}\n", name, role, hash)
	}
	others := entry("reader", "read", readerHash) + "- {name: mesh, role: admin, cn: client.example}\n"
	if err := os.WriteFile(tokens, []byte("tokens:\n"+entry("billing", "generate", hash)+others), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, "0.0.0.0:0", fmt.Sprintf("--store dir:%[1]s/store?create=true&volatile=true --tls-cert %[1]s/server.crt --tls-key %[1]s/server.key --client-ca %[1]s/ca.crt --tokens %[2]s", dir, tokens))
	url := p.url
	if !strings.HasPrefix(url, "https://") {
		t.Fatal(url)
	}
	address := strings.TrimPrefix(url, "https://")

	web := func(c *tls.Config, method, path, token string) int {
		t.Helper()
		client := &http.Client{Timeout: nettest.Patience, Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		r, err := http.NewRequest(method, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, row := range []struct {
		c                   *tls.Config
		method, path, token string
		want                int
	}{
		{without, "POST", "/v1/sequencers/orders/next", "", 401},
		{without, "POST", "/v1/sequencers/orders/next", "firn_wrong", 401},
		{without, "POST", "/v1/sequencers/orders/next", token, 200},
		{without, "POST", "/v1/sequencers/users/next", token, 403},
		{without, "GET", "/v1/sequencers", reader, 200},
		{without, "GET", "/metrics", reader, 403}, // they have the names of all
		{without, "POST", "/v1/sequencers/orders/next", reader, 403},
		{withCert, "GET", "/v1/sequencers", "", 200},
		{withCert, "POST", "/v1/sequencers/users/next", "", 200},
		{without, "GET", "/members", "", 303}, // the console asks to sign in
		{withCert, "GET", "/members", "", 200},
	} {
		if got := web(row.c, row.method, row.path, row.token); got != row.want {
			t.Errorf("%s %s: status %d, want %d", row.method, row.path, got, row.want)
		}
	}

	// With TLS a session's cookie is one that browsers keep for this host and for
	// TLS only.
	client := &http.Client{Timeout: nettest.Patience, Transport: &http.Transport{TLSClientConfig: without},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.PostForm(url+"/sign-in", map[string][]string{"token": {reader}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if c := resp.Cookies(); resp.StatusCode != 303 || len(c) != 1 || c[0].Name != "__Host-firn" || !c[0].Secure {
		t.Errorf("sign in: status %d, cookies %v", resp.StatusCode, c)
	} else {
		r, _ := http.NewRequest("GET", url+"/members", nil)
		r.AddCookie(c[0])
		if resp, err = client.Do(r); err != nil || resp.StatusCode != 200 {
			t.Errorf("signed in: %v, %v", resp, err)
		} else {
			resp.Body.Close()
		}
	}

	dial := func(c *tls.Config) (net.Conn, func(string) string) {
		t.Helper()
		conn, err := tls.Dial("tcp", address, c)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		return conn, func(command string) string {
			t.Helper()
			_ = conn.SetDeadline(time.Now().Add(nettest.Patience))
			fmt.Fprintf(conn, "%s\r\n", command)
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			if strings.HasPrefix(line, "$") {
				_, _ = in.ReadString('\n')
			}
			return strings.TrimSpace(line)
		}
	}
	conn, ask := dial(without)
	defer conn.Close()
	for _, row := range []struct{ command, want string }{
		{"NEXT orders", "-NOAUTH"}, {"AUTH firn_wrong", "-WRONGPASS"}, {"AUTH " + token, "+OK"},
		{"NEXT orders", "$18"}, {"NEXT users", "-NOPERM"},
	} {
		if got := ask(row.command); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %s, want %s", row.command, got, row.want)
		}
	}
	certified, askCertified := dial(withCert)
	defer certified.Close()
	if got := askCertified("NEXT users"); !strings.HasPrefix(got, "$") {
		t.Errorf("with a certificate: %s", got)
	}

	// The token is taken out of the file.
	if err := os.WriteFile(tokens, []byte("tokens:\n"+others), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); web(without, "POST", "/v1/sequencers/orders/next", token) != 401; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > nettest.Patience {
			t.Fatal("a token that was taken out of the file still counts")
		}
	}
	for _, command := range []string{"NEXT orders", "NEXT users", "INFO", "INSPECT 1", "PING"} {
		if got := ask(command); got != "-NOAUTH Authentication required." {
			t.Errorf("the connection of a token that was taken out: %s: %s", command, got)
		}
	}
	if got := askCertified("NEXT users"); !strings.HasPrefix(got, "$") {
		t.Errorf("another one: %s", got)
	}
}

// TestEmptiedTokens: a token file that is emptied by mistake locks no client
// out, and one without tokens is reported in the log; at the start too.
func TestEmptiedTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token, hash := auth.NewToken()
	write("tokens:\n- {name: a, role: generate, sha256: " + hash + "}\n")
	a, _, stderr := serveApp(t)
	s := newServeCmd()
	s.Tokens = path
	log := s.logger(a)
	defer a.log.Close()
	if err := s.checkFiles().error(nil); err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Config{Static: new(server.Static), Tokens: path, Logger: log})
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
		if !strings.Contains(stderr.String(), step.want) {
			t.Errorf("the file is %q, and the log has no %s:\n%s", step.text, step.want, stderr)
		}
		r, err := http.NewRequest("POST", "http://"+l.Addr().String()+"/v1/sequencers/orders/next", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if (resp.StatusCode == http.StatusOK) != step.knows {
			t.Errorf("the file is %q: status %d", step.text, resp.StatusCode)
		}
		if got := strings.Contains(stderr.String(), "no client may do anything"); got == step.knows {
			t.Errorf("the file is %q: want the warning about an empty file: %t\n%s", step.text, got, stderr)
		}
	}
	for text, want := range map[string]int{"": exitFailed, "# nobody yet\n": exitFailed} {
		write(text)
		a, _, stderr := serveApp(t)
		ctx, stop := context.WithTimeout(t.Context(), nettest.Patience)
		code := run(ctx, a, []string{"serve", "--listen", "127.0.0.1:0", "--tokens", path})
		stop()
		if code != want || !strings.Contains(stderr.String(), "tokens: []") {
			t.Errorf("serve with the file %q: exit %d, want %d: %s", text, code, want, stderr)
		}
	}
}
