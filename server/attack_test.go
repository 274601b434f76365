package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// attacked serves in plain text until the test ends and returns the address.
func attacked(t *testing.T, c Config) (*Server, string) {
	t.Helper()
	if c.Store == nil && c.Static == nil {
		c.Store = new(memstore.Store)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l := nettest.Listen(t)
	go s.Serve(Listener{Listener: l})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return s, l.Addr().String()
}

// send makes one raw HTTP request on its own connection, and returns the status
// and the rest.
func send(t *testing.T, address, request string) (code int, answer string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(nettest.Patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	var head bytes.Buffer
	_ = r.Header.Write(&head)
	return r.StatusCode, head.String() + string(body)
}

// talk sends RESP commands in one packet and returns all answers, once the
// connection is idle or has ended.
func talk(t *testing.T, address, commands string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(nettest.Patience))
	if _, err := io.WriteString(conn, commands+"QUIT\r\n"); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%q: %v", commands, err)
	}
	return string(all)
}

func bulk(words ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return text
}

// tricks are names that would lead elsewhere in a path, a log, a page, a store
// key, or a program that reads any of these.
var tricks = []string{
	"../../etc/passwd", "..", "a/b", "a\\b", "a\x00b", "a\r\nSET x 1\r\n", "a\u202eb", "раrcels", "-n", strings.Repeat("x", 129), "<script>alert(1)</script>",
}

// TestTrickyNames: an invalid name is refused over each protocol, wherever a
// name can be given, and the store has no trace of it.
func TestTrickyNames(t *testing.T) {
	store := new(memstore.Store)
	_, address := attacked(t, Config{Store: store})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ids, sequencers := firnv1.NewIDsClient(conn), firnv1.NewSequencersClient(conn)
	for _, name := range tricks {
		escaped := strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
		for _, row := range []struct{ method, path string }{
			{"POST", "/v1/sequencers/%s/next"}, {"PUT", "/v1/sequencers/%s"}, {"GET", "/v1/sequencers/%s"}, {"DELETE", "/v1/sequencers/%s"}, {"POST", "/v1/sequencers/%s/attach"},
		} {
			code, answer := send(t, address, row.method+" "+fmt.Sprintf(row.path, escaped)+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if code != 400 || !strings.Contains(answer, "urn:firn:problem:bad-name") {
				t.Errorf("%s of %q: %d %s", row.method, name, code, answer)
			}
		}
		for _, command := range []string{bulk("NEXT", name), bulk("NEXTB", name, "1"), bulk("INCR", name)} {
			if got := talk(t, address, command); !strings.HasPrefix(got, "-ERR ") || strings.Count(got, "\r\n") != 2 {
				t.Errorf("RESP %q: %q, want one error", command, got)
			}
		}
		if strings.ToValidUTF8(name, "") == name {
			calls := map[string]func(context.Context) error{
				"Next": func(ctx context.Context) error {
					_, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: name})
					return err
				},
				"Create": func(ctx context.Context) error {
					_, err := sequencers.Create(ctx, &firnv1.CreateRequest{Name: name})
					return err
				},
				"Get": func(ctx context.Context) error {
					_, err := sequencers.Get(ctx, &firnv1.GetRequest{Name: name})
					return err
				},
				"Stream": func(ctx context.Context) error {
					s, err := ids.Stream(ctx)
					if err == nil {
						_ = s.Send(&firnv1.StreamRequest{Sequencer: name, Credit: 1})
						_, err = s.Recv()
					}
					return err
				},
			}
			for what, call := range calls {
				if err := call(t.Context()); status.Code(err) != codes.InvalidArgument {
					t.Errorf("gRPC %s of %q: %v, want InvalidArgument", what, name, err)
				}
			}
		}
		code, answer := send(t, address, "GET /sequencers/"+escaped+" HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n")
		if code < 300 || code >= 500 || strings.Contains(answer, "<script>alert") {
			t.Errorf("console %q: %d %s", name, code, answer)
		}
	}
	if err := grant.Sequencers(t.Context(), store, func(name string, _ grant.Info, _ error) bool {
		t.Errorf("the store has a sequencer %q", name)
		return true
	}); err != nil {
		t.Error(err)
	}
}

// TestCrossOrigin: a page of another origin takes no ID and changes nothing,
// whatever the browser says about its origin, by any path and method with an
// effect; and no answer has a header that would allow it to read.
func TestCrossOrigin(t *testing.T) {
	store := new(memstore.Store)
	_, address := attacked(t, Config{Store: store})
	paths := []struct{ method, path string }{
		{"POST", "/v1/sequencers/orders/next"}, {"GET", "/v1/sequencers/orders/next"}, {"PUT", "/v1/sequencers/orders"}, {"POST", "/make"}, {"POST", "/create"},
	}
	for _, headers := range []string{
		"Origin: https://evil.example", "Origin: null", "Origin: http://[", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site",
	} {
		for _, row := range paths {
			body := "name=orders&confirm=orders"
			code, answer := send(t, address, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", row.method, row.path, headers, len(body), body))
			if code != 403 || strings.Contains(answer, "Access-Control-") {
				t.Errorf("%s %s with %s: %d %s", row.method, row.path, headers, code, answer)
			}
		}
	}
	for _, row := range paths {
		code, answer := send(t, address, fmt.Sprintf("OPTIONS %s HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: %s\r\n\r\n", row.path, row.method))
		if strings.Contains(answer, "Access-Control-") {
			t.Errorf("OPTIONS %s: %d %s", row.path, code, answer)
		}
	}
	if err := grant.Sequencers(t.Context(), store, func(name string, _ grant.Info, _ error) bool {
		t.Errorf("the store has a sequencer %q", name)
		return true
	}); err != nil {
		t.Error(err)
	}
}

// TestForeignHosts: a host name that leads a browser to this machine gets no
// answer, over HTTP/1.1 and HTTP/2.
func TestForeignHosts(t *testing.T) {
	_, address := attacked(t, Config{Static: new(Static)})
	for _, host := range []string{
		"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "[::1].evil.example",
		"localhost:80@evil.example", "169.254.169.254", "0.0.0.0", "[::]", "2130706433", "0x7f.1", "localhost%00.evil.example", "[::ffff:10.0.0.1]", "",
	} {
		for _, path := range []string{"/v1/sequencers/orders/next", "/inspect", "/metrics"} {
			code, answer := send(t, address, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
			if code != 421 && code != 400 {
				t.Errorf("Host %q, %s: %d %s", host, path, code, answer)
			}
		}
	}
	// The target of a request takes precedence over Host.
	if code, answer := send(t, address, "GET http://evil.example/v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"); code != 421 && code != 400 {
		t.Errorf("a target of another host: %d %s", code, answer)
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Client{Transport: &http.Transport{Protocols: &protocols}}
	defer web.CloseIdleConnections()
	r, err := http.NewRequest("POST", "http://"+address+"/v1/sequencers/orders/next", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	if resp, err := web.Do(r); err == nil { // HTTP/2 in plain text is only for gRPC
		resp.Body.Close()
		if resp.StatusCode == 200 && resp.Header.Get("Grpc-Status") == "" {
			t.Errorf("over HTTP/2: %s", resp.Status)
		}
	}
}

// TestSecretsStayOut: secrets of clients, right or wrong or in the wrong place,
// appear in no log, answer or metric, at any level.
func TestSecretsStayOut(t *testing.T) {
	token, hash := auth.NewToken()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte("tokens:\n- {name: a, role: admin, sha256: "+hash+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := new(nettest.Output)
	_, address := attacked(t, Config{Tokens: path, Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug - 4}))})
	const wrong = "firn_hunter2hunter2hunter2"
	var answers strings.Builder
	for _, secret := range []string{token, wrong} {
		for _, request := range []string{
			"GET /v1/sequencers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\n\r\n",
			"GET /v1/sequencers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic " + secret + "\r\n\r\n",
			"GET /v1/sequencers HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + secret + "\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\n\r\n",
			"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: " + fmt.Sprint(len("token="+secret)) + "\r\n\r\ntoken=" + secret,
			"GET /inspect HTTP/1.1\r\nHost: localhost\r\nCookie: firn-session=" + secret + "\r\nAccept: text/html\r\n\r\n",
			"POST /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\nX-Request-Id: 1\r\n\r\n",
		} {
			_, answer := send(t, address, request)
			answers.WriteString(answer)
		}
		for _, command := range []string{"AUTH " + secret + "\r\nINFO\r\nCLIENT LIST\r\nNEXT orders\r\n", "HELLO 3 AUTH default " + secret + "\r\n", "AUTH user " + secret + "\r\n"} {
			answers.WriteString(talk(t, address, command))
		}
	}
	if got := answers.String(); strings.Contains(got, token) || strings.Contains(got, wrong) {
		t.Errorf("an answer has what a client has shown: %s", got)
	}
	if got := log.String(); strings.Contains(got, token) || strings.Contains(got, wrong) || strings.Contains(got, hash) {
		t.Errorf("the log has it: %s", got)
	} else if !strings.Contains(got, "request") {
		t.Errorf("the log has no requests: %s", got)
	}
}
