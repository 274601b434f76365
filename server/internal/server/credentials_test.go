package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// guarded serves with TLS until the test ends, with a token file if tokens is
// not empty. It returns the server, its address, the TLS configuration of a
// client with a certificate, and the directory of the files.
func guarded(t *testing.T, tokens string, f func(*tlsconf.Files)) (*Server, string, *tls.Config, string) {
	t.Helper()
	dir := t.TempDir()
	client := nettest.Certificates(t, dir)
	c := Config{Static: new(service.StaticBackendConfig), TLS: tlsconf.Files{Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"), ClientCA: filepath.Join(dir, "ca.crt")}}
	if f != nil {
		f(&c.TLS)
	}
	if tokens != "" {
		c.TokenFile = filepath.Join(dir, "tokens.yaml")
		must.Do(t, os.WriteFile(c.TokenFile, []byte(tokens), 0o600))
	}
	s, address := served(t, c)
	return s, address, client, dir
}

// asking returns the ways to ask for an ID or for what an administrator sees,
// with values of Authorization. Each keeps its connection and returns whether
// the server let it in.
func asking(t *testing.T, address string, c *tls.Config) map[string]func(values ...string) bool {
	t.Helper()
	get := func(method, path, accept string) func(...string) bool {
		// One connection for each, as one that is refused may not be used
		// again.
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: c.Clone()}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		t.Cleanup(web.CloseIdleConnections)
		return func(values ...string) bool {
			r := must.Get(http.NewRequest(method, "https://"+address+path, nil))(t)
			r.Header["Authorization"] = values
			r.Header.Set("Accept", accept)
			resp := must.Get(web.Do(r))(t)
			_, _ = io.Copy(io.Discard, resp.Body) // or the connection is not used again
			resp.Body.Close()
			return resp.StatusCode == 200
		}
	}
	conn := must.Get(grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(c.Clone()))))(t)
	t.Cleanup(func() { _ = conn.Close() })
	secure := must.Get(tls.Dial("tcp", address, c.Clone()))(t)
	t.Cleanup(func() { _ = secure.Close() })
	in := bufio.NewReader(secure)
	command := func(text string) string {
		_ = secure.SetDeadline(time.Now().Add(must.Patience))
		fmt.Fprint(secure, text+"\r\n")
		line, err := in.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		if strings.HasPrefix(line, "$") {
			_, _ = in.ReadString('\n')
		}
		return line
	}
	return map[string]func(values ...string) bool{
		"HTTP":    get("POST", "/v1/sequencers/orders/next", "*/*"),
		"console": get("GET", "/inspect", "text/html"),
		"gRPC": func(values ...string) bool {
			ctx := t.Context()
			for _, v := range values {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", v)
			}
			_, err := firnv1.NewIDsClient(conn).Next(ctx, &firnv1.NextRequest{Sequencer: "orders"})
			if err != nil && status.Code(err) != codes.Unauthenticated {
				t.Errorf("gRPC: %v", err)
			}
			return err == nil
		},
		"RESP": func(values ...string) bool {
			for _, v := range values {
				if got := command("AUTH " + strings.TrimPrefix(v, "Bearer ")); !strings.HasPrefix(got, "+OK") {
					return false
				}
			}
			return strings.HasPrefix(command("NEXT orders"), "$")
		},
	}
}

// TestCredentialsOverEachProtocol: credentials mean the same over each
// protocol. A client that shows an invalid token is not let in by its
// certificate.
func TestCredentialsOverEachProtocol(t *testing.T) {
	token, hash := auth.NewToken()
	_, address, client, _ := guarded(t, "tokens:\n- {name: a, role: generate, sha256: "+hash+"}\n- {name: mesh, role: admin, cn: client.example}\n", nil)
	ask := asking(t, address, client)
	for _, row := range []struct {
		values []string
		want   bool
	}{
		{nil, true},
		{[]string{"Bearer " + token}, true},
		{[]string{"Bearer firn_wrong"}, false},
		{[]string{"Bearer "}, false},
		{[]string{""}, false},
		{[]string{"Basic " + token}, false},
		{[]string{"Bearer " + token, "Bearer " + token}, false},
	} {
		for protocol, ask := range ask {
			if protocol == "RESP" && len(row.values) > 0 && (len(row.values) > 1 || !strings.HasPrefix(row.values[0], "Bearer firn_")) {
				continue // it has no schemes, and AUTH may be repeated
			}
			if protocol == "console" && row.want && len(row.values) > 0 {
				continue // it wants a token once, and then a session
			}
			if got := ask(row.values...); got != row.want {
				t.Errorf("%s with %q: allowed: %t, want %t", protocol, row.values, got, row.want)
			}
		}
	}
}

// TestOneLimit: what a client has taken over one protocol is missing over the
// others, which refuse it with the time to wait.
func TestOneLimit(t *testing.T) { synctest.Test(t, testOneLimit) }

func testOneLimit(t *testing.T) {
	path, token := tokensOf(t)
	data := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.WriteFile(path, []byte(strings.Replace(string(data), "role: admin", "role: admin, rate: 0.01, burst: 3", 1)), 0o600))
	_, pipes := onPipes(t, Config{Static: new(service.StaticBackendConfig), TokenFile: path})
	dial := func(context.Context, string) (net.Conn, error) { return pipes.Dial(), nil }
	client := firnv1.NewIDsClient(nettest.DialGRPC(t, "passthrough:///", grpc.WithContextDialer(dial)))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	all := func() map[string]string {
		_, web := sendOver(t, pipes.Dial(), "POST /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+
			"\r\nContent-Length: 0\r\n\r\n")
		answer, err := client.Next(ctx, &firnv1.NextRequest{Sequencer: "orders"})
		return map[string]string{"http": web, "grpc": fmt.Sprint(answer, err, status.Convert(err).Details()),
			"resp": talkOver(t, pipes.Dial(), "AUTH "+token+"\r\nNEXT orders\r\n")}
	}
	for protocol, answer := range all() {
		if strings.Contains(answer, "limit") {
			t.Errorf("the first ID over %s: %s", protocol, answer)
		}
	}
	for protocol, want := range map[string]string{"http": "rate-limited", "grpc": "retry_delay", "resp": "TRYAGAIN rate-limited: a may take 0.01 IDs a second from each server; retry after 100 s"} {
		if answer := all()[protocol]; !strings.Contains(answer, want) {
			t.Errorf("over %s: %s, want %q", protocol, answer, want)
		}
	}
}

// TestSignInOverTLS: over TLS a session's cookie is one that browsers keep for
// this host and for TLS only.
func TestSignInOverTLS(t *testing.T) {
	token, hash := auth.NewToken()
	_, address, client, _ := guarded(t, "tokens:\n- {name: a, role: read, sha256: "+hash+"}\n", nil)
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: client}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer web.CloseIdleConnections()
	resp := must.Get(web.PostForm("https://"+address+"/sign-in", map[string][]string{"token": {token}}))(t)
	resp.Body.Close()
	if c := resp.Cookies(); resp.StatusCode != 303 || len(c) != 1 || c[0].Name != "__Host-firn" || !c[0].Secure {
		t.Errorf("status %d, cookies %v", resp.StatusCode, c)
	}
}

// TestOpenConnections: a connection that is open does not keep a certificate
// whose authority was removed, over any protocol, and the client does not keep
// the connection: it is let in once it has a certificate of the new authority.
func TestOpenConnections(t *testing.T) {
	for what, tokens := range map[string]string{"tokens": "tokens:\n- {name: mesh, role: admin, cn: client.example}\n", "certificates alone": ""} {
		t.Run(what, func(t *testing.T) {
			s, address, client, dir := guarded(t, tokens, func(f *tlsconf.Files) { f.Require = tokens == "" })
			var own atomic.Pointer[tls.Certificate]
			own.Store(&client.Certificates[0])
			client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.Load(), nil }
			ask := asking(t, address, client)
			for protocol, ask := range ask {
				if !ask() {
					t.Errorf("%s: refused", protocol)
				}
			}
			other := nettest.NewAuthority(t)
			must.Do(t, os.WriteFile(filepath.Join(dir, "ca.crt"), other.PEM(t), 0o600))
			must.Do(t, os.Chtimes(filepath.Join(dir, "ca.crt"), time.Time{}, time.Now().Add(time.Minute)))
			s.Reload()
			for protocol, ask := range ask {
				if ask() {
					t.Errorf("%s: allowed with a certificate of an authority that was removed", protocol)
				}
			}
			renewed := other.Issue(t, "client.example", 9, time.Hour)
			own.Store(&renewed)
			delete(ask, "RESP") // one connection
			for protocol, ask := range ask {
				must.Await(t, func() bool { return ask() }, "%s: a renewed certificate is let in", protocol)
			}
		})
	}
}

// TestRefusedCertificate: a connection whose certificate is refused is closed
// once what has arrived is answered, so that the client connects again and
// shows the one that it has now.
func TestRefusedCertificate(t *testing.T) {
	s, address, client, dir := guarded(t, "tokens:\n- {name: mesh, role: admin, cn: client.example}\n", nil)
	type row struct{ ask, allowed, refused string }
	conns := make(map[row]*tls.Conn)
	for _, r := range []row{
		{"PING a\r\nPING b\r\n", "$1\r\na\r\n$1\r\nb\r\n", "-NOAUTH [^\r]*\r\n-NOAUTH [^\r]*\r\n"},
		{"HEAD /v1/inspect/1 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200", "(?s).*HTTP/1.1 401 .*\r\nConnection: close\r\n.*"},
	} {
		conn := must.Get(tls.Dial("tcp", address, client.Clone()))(t)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(must.Patience))
		must.Get(io.WriteString(conn, r.ask))(t)
		said := make([]byte, 1024)
		n, err := io.ReadAtLeast(conn, said, len(r.allowed))
		if err != nil || !strings.HasPrefix(string(said[:n]), r.allowed) {
			t.Fatalf("%q: %q, %v, want %q", r.ask, said[:n], err, r.allowed)
		}
		conns[r] = conn
	}
	file := filepath.Join(dir, "tokens.yaml")
	must.Do(t, os.WriteFile(file, []byte("tokens: []\n"), 0o600))
	must.Do(t, os.Chtimes(file, time.Time{}, time.Now().Add(time.Minute)))
	s.Reload()
	for r, conn := range conns {
		must.Get(io.WriteString(conn, r.ask))(t)
		said, err := io.ReadAll(conn)
		if err != nil || !regexp.MustCompile("^"+r.refused+"$").Match(said) {
			t.Errorf("%q: %q, %v, want %q and the end", r.ask, said, err, r.refused)
		}
	}
}

// TestFewFiles: if the system refuses connections, that is logged once, and
// later connections are served.
func TestFewFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fails = 20
		var log strings.Builder
		l := nettest.NewPipes()
		s := serveOn(t, Config{Static: new(service.StaticBackendConfig), Logger: slog.New(slog.NewTextHandler(&log, nil))}, &exhausted{Listener: l, fails: fails})
		conn := l.Dial()
		defer conn.Close()
		must.Get(io.WriteString(conn, "PING\r\n"))(t)
		if answer, err := bufio.NewReader(conn).ReadString('\n'); answer != "+PONG\r\n" {
			t.Errorf("PING = %q, %v", answer, err)
		}
		must.Do(t, s.Shutdown(t.Context()))
		if n := strings.Count(log.String(), "accept failed"); n != 1 {
			t.Errorf("%d lines of %d connections that were not accepted, want 1:\n%s", n, fails, log.String())
		}
	})
}

// An exhausted listener fails some times as one does whose process has too many
// files open.
type exhausted struct {
	net.Listener
	fails int
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.fails--; l.fails >= 0 {
		return nil, tooManyFiles{}
	}
	return l.Listener.Accept()
}

type tooManyFiles struct{}

func (tooManyFiles) Error() string   { return "accept: too many open files" }
func (tooManyFiles) Temporary() bool { return true }
func (tooManyFiles) Timeout() bool   { return false }
