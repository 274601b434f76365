//go:build linux || darwin

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/internal/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/sqltest"
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
	p := &process{
		cmd:   firnCommand(context.Background(), "serve --log-format json --listen "+listen+" "+strings.Join(args, " ")),
		ended: make(chan struct{}),
	}
	logs, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, p.cmd.Start())
	p.log = new(nettest.Output)
	lines := bufio.NewReader(io.TeeReader(logs, p.log))
	if p.url, err = urlIn(lines); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	p.stop = func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	t.Cleanup(p.stop)
	return p
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
	secure := []string{"--tls-cert", filepath.Join(dir, "server.crt"), "--tls-key", filepath.Join(dir, "server.key"), "--client-ca", filepath.Join(dir, "ca.crt")}
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
			web := &http.Client{Transport: &http.Transport{TLSClientConfig: client, DisableKeepAlives: true}, Timeout: nettest.Patience}
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

// An outcome is an error as a client has it, over any protocol.
type outcome struct {
	kind, code, detail string
	retry              time.Duration // 0 where it is not said
}

// overHTTP, overRESP and overGRPC ask for an ID of orders. The outcome has no
// kind where there is one.
func (r *running) overHTTP(t *testing.T) (o outcome) {
	t.Helper()
	status, header, body := r.post(t, "orders")
	if status == 200 {
		return o
	}
	var p struct{ Type, Title, Detail string }
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatal(body, err)
	}
	o.retry, _ = time.ParseDuration(cmp.Or(header.Get("Retry-After"), "0") + "s")
	o.kind, o.code, o.detail = strings.TrimPrefix(p.Type, "urn:firn:problem:"), fmt.Sprint(status)+" "+p.Title, p.Detail
	return o
}

func (r *running) overRESP(t *testing.T) (o outcome) {
	t.Helper()
	conn := must.Get(net.Dial("tcp", strings.TrimPrefix(r.url, "http://")))(t)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(nettest.Patience))
	fmt.Fprint(conn, "NEXT orders\r\n")
	line := must.Get(bufio.NewReader(conn).ReadString('\n'))(t)
	if text, ok := strings.CutPrefix(strings.TrimSpace(line), "-"); ok {
		o.code, text, _ = strings.Cut(text, " ")
		o.kind, o.detail, _ = strings.Cut(text, ": ")
	}
	return o
}

func (r *running) overGRPC(t *testing.T) (o outcome) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(r.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = firnv1.NewIDsClient(conn).Next(t.Context(), &firnv1.NextRequest{Sequencer: "orders"})
	if err == nil {
		return o
	}
	st := status.Convert(err)
	o.code, o.detail = st.Code().String(), st.Message()
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			o.kind = d.GetReason()
		case *errdetails.RetryInfo:
			o.retry = d.GetRetryDelay().AsDuration()
		}
	}
	return o
}

// TestSilentStore: a database that is gone, while the last window has ended, is
// said to be that at once over every protocol, and forgotten when it is back.
func TestSilentStore(t *testing.T) {
	s := sqltest.PostgreSQL(t)
	store := s.URL("create=true")
	if code, out := runLine(t, "sequencer create orders --max-ahead 0s --window 1s --store "+store); code != exitFine {
		t.Fatal(code, out)
	}
	r := startServe(t, nil, "--store", store, "--request-timeout", "20s")
	if o := r.overHTTP(t); o.kind != "" {
		t.Fatal(o)
	}
	s.Kill()
	ask := []func(*testing.T) outcome{r.overHTTP, r.overRESP, r.overGRPC}
	var first time.Duration
	for begin := time.Now(); ; { // the window ends, and the store is silent for long enough
		asked := time.Now()
		o := r.overHTTP(t)
		if o.kind == "store-unavailable" {
			first = time.Since(asked)
			break
		}
		if time.Since(begin) > nettest.Patience {
			t.Fatal(o)
		}
	}
	if first > time.Minute {
		t.Errorf("the first answer took %v", first)
	}
	begin := time.Now()
	for range 20 {
		for i, want := range []string{"503 The store is unavailable", "UNAVAILABLE", codes.Unavailable.String()} {
			if o := ask[i](t); o.kind != "store-unavailable" || o.code != want {
				t.Fatalf("%+v, want %s", o, want)
			}
		}
	}
	took := time.Since(begin)
	if took > 5*time.Minute { // if each waited, 60 would take 20 minutes
		t.Errorf("60 answers took %v", took)
	}
	t.Logf("report: a store that is gone: the first answer after the window took %v, 60 more over three protocols took %v", first.Round(time.Millisecond), took.Round(time.Millisecond))
	s.Start()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		o := r.overHTTP(t)
		if o.kind == "" {
			break
		}
		if o.kind != "store-unavailable" || time.Since(begin) > nettest.Patience {
			t.Fatalf("with the database: %+v", o)
		}
	}
}
