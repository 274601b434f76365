package server

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/server/internal/operate/issued"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/veil"
)

// asks returns the answers to a request for IDs over each protocol, with a
// format over those that have one.
func asks(t *testing.T, address, name string, n int, format string) map[string]string {
	t.Helper()
	_, http := send(t, address, fmt.Sprintf("POST /v1/sequencers/%s/next?count=%d&format=%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", name, n, format))
	all := map[string]string{"http": http, "resp": talk(t, address, fmt.Sprintf("NEXT %s %d FORMAT %s\r\n", name, n, format))}
	if format == "dec" {
		answer, err := firnv1.NewIDsClient(nettest.DialGRPC(t, address)).Next(t.Context(), &firnv1.NextRequest{Sequencer: name, Count: uint32(n)})
		all["grpc"] = fmt.Sprint(answer, err)
	}
	return all
}

// wantAll checks that each answer has a text.
func wantAll(t *testing.T, what string, all map[string]string, text string) {
	t.Helper()
	for protocol, answer := range all {
		if !strings.Contains(answer, text) {
			t.Errorf("%s over %s: %.400s, want %q", what, protocol, answer, text)
		}
	}
}

// sources returns a Config for each source of IDs, changed by f.
func sources(f func(*Config)) map[string]Config {
	all := map[string]Config{"static": {Static: new(service.StaticBackendConfig)}, "store": {Store: new(memstore.Store)}}
	for source, c := range all {
		f(&c)
		all[source] = c
	}
	return all
}

// tokensOf writes a token file, and returns its path and the token.
func tokensOf(t *testing.T) (path, token string) {
	t.Helper()
	token, hash := auth.NewToken()
	path = filepath.Join(t.TempDir(), "tokens.yaml")
	must.Do(t, os.WriteFile(path, []byte("tokens:\n- {name: a, role: admin, sha256: "+hash+"}\n"), 0o600))
	return path, token
}

// veilKeys returns keys of veiled IDs.
func veilKeys(t *testing.T) veil.Keys {
	t.Helper()
	return must.Get(veil.ParseKeys(strings.Repeat("00", 32)))(t)
}

// slow is a layout with four IDs a second.
var slow = firn.MustParseLayout("bits=time:40.node:10.seq:2,unit=1s,epoch=2026-01-01T00:00:00Z")

// fieldTests show that each field of Config has its effect, with each source of
// IDs and over each protocol that it concerns.
var fieldTests = map[string]func(t *testing.T){
	"Store":  func(t *testing.T) { testForwarding(t, "") },
	"Static": testStatic,
	"Sequencers": func(t *testing.T) {
		_, address := served(t, Config{Sequencers: sequencer.Options{Layout: slow, MustExist: true}})
		wantAll(t, "MustExist", asks(t, address, "orders", 1, "dec"), "create it first")
	},
	"VeilKeys": func(t *testing.T) {
		for source, c := range sources(func(c *Config) { c.VeilKeys = veilKeys(t) }) {
			_, address := served(t, c)
			for protocol, answer := range asks(t, address, "orders", 1, "veiled") {
				if strings.Contains(answer, "ERR") || strings.Contains(answer, "problem") {
					t.Errorf("%s over %s: %s", source, protocol, answer)
				}
			}
		}
	},
	"MaxSequencers": func(t *testing.T) {
		for source, c := range sources(func(c *Config) { c.MaxSequencers = 1 }) {
			_, address := served(t, c)
			asks(t, address, "orders", 1, "dec")
			want := map[string]string{"static": "limit of 1 names", "store": "1 sequencers open"}[source]
			wantAll(t, source, asks(t, address, "others", 1, "dec"), want)
		}
	},
	"Template": func(t *testing.T) {
		_, address := served(t, Config{Template: func(name string, o *sequencer.Options) error {
			o.Prefix = name
			return nil
		}})
		wantAll(t, "a template", asks(t, address, "orders", 1, "typed"), "orders_")
	},
	"ForwardTo":        func(t *testing.T) { testForwarding(t, "") },
	"ForwardTokenFile": func(t *testing.T) { testForwarding(t, "token") },
	"Advertise":        testMember,
	"Version":          testMember,
	"TokenFile": func(t *testing.T) {
		path, _ := tokensOf(t)
		_, address := served(t, Config{TokenFile: path})
		all := asks(t, address, "orders", 1, "dec")
		for protocol, want := range map[string]string{"http": "unauthorized", "grpc": "Unauthenticated", "resp": "NOAUTH"} {
			wantAll(t, "without a token", map[string]string{protocol: all[protocol]}, want)
		}
	},
	"TLS": testMember,
	"Hosts": func(t *testing.T) {
		_, address := served(t, Config{Hosts: []string{"ids.example"}, Advertise: "other.example:1"})
		for host, want := range map[string]int{"ids.example": 200, "other.example": 200, "evil.example": 421} {
			if code, answer := send(t, address, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); code != want {
				t.Errorf("%s: %d, want %d: %s", host, code, want, answer)
			}
		}
	},
	"RequestTimeout": func(t *testing.T) {
		for source, c := range sources(func(c *Config) { c.RequestTimeout = 54 * time.Millisecond }) {
			if c.Sequencers.Layout = slow; c.Static != nil {
				c.Static.Layout = slow
			}
			_, address := served(t, c)
			wantAll(t, source, asks(t, address, "orders", 1000, "dec"), "54ms")
		}
	},
	"Limits": func(t *testing.T) {
		_, address := served(t, Config{Limits: service.Limits{Count: 10}})
		wantAll(t, "11 IDs", asks(t, address, "orders", 11, "dec"), "10")
		for what, input := range map[string]string{"a silent client": "", "a part of a header": "GET / HTTP/1.1\r\n", "a part of a command": "PI"} {
			if took := ends(t, Config{Limits: service.Limits{Read: 54 * time.Second}}, input); took != 54*time.Second {
				t.Errorf("%s is closed after %v, want Limits.Read", what, took)
			}
		}
		if took := ends(t, Config{Limits: service.Limits{Idle: 54 * time.Second}}, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); took != 54*time.Second {
			t.Errorf("an idle client of HTTP is closed after %v, want Limits.Idle", took)
		}
		_, address = served(t, Config{Limits: service.Limits{Body: 1 << 10, Header: 4 << 10}})
		body := "PUT /v1/sequencers/made HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1025\r\n\r\n" + strings.Repeat(" ", 1025)
		if code, answer := send(t, address, body); code != 400 || !strings.Contains(answer, "1024 bytes") {
			t.Errorf("a body of 1025 bytes: %d, %s", code, answer)
		}
		if code, answer := send(t, address, "GET /healthz HTTP/1.1\r\nX: "+strings.Repeat("x", 9<<10)+"\r\n\r\n"); code != 431 {
			t.Errorf("a header of 9 KiB: %d, %s", code, answer)
		}
		if answer := talk(t, address, "*1\r\n$2000\r\n"); !strings.Contains(answer, "up to 1024") {
			t.Errorf("an argument of 2,000 bytes: %s", answer)
		}
		long := &firnv1.NextRequest{Sequencer: strings.Repeat("x", 2<<10)}
		if _, err := firnv1.NewIDsClient(nettest.DialGRPC(t, address)).Next(t.Context(), long); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a message of 2 KiB: %v", err)
		}
	},
	"RESPIdle": func(t *testing.T) {
		if took := ends(t, Config{RESPIdle: 54 * time.Hour}, "PING\r\n"); took != 54*time.Hour {
			t.Errorf("an idle client is closed after %v", took)
		}
	},
	"RESPRefuseUnsafe": func(t *testing.T) {
		for _, refuse := range []bool{false, true} {
			_, address := served(t, Config{RESPRefuseUnsafe: refuse})
			if answer := talk(t, address, "INCR orders\r\n"); strings.HasPrefix(answer, "-") != refuse {
				t.Errorf("refusing %t: %s", refuse, answer)
			}
		}
	},
	"MaxConns": func(t *testing.T) {
		_, address := served(t, Config{MaxConns: 5})
		for range 5 {
			conn := nettest.Dial(t, address)
			fmt.Fprint(conn, "PING\r\n")
			_, _ = conn.Read(make([]byte, 1))
		}
		if code, answer := send(t, address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); code != 503 {
			t.Errorf("a sixth connection gets %d %s", code, answer)
		}
	},
	"Tracing": func(t *testing.T) {
		spans := tracetest.NewInMemoryExporter()
		_, address := served(t, Config{Tracing: trace.NewTracerProvider(trace.WithSyncer(spans))})
		asks(t, address, "orders", 1, "dec")
		var names []string
		for _, s := range spans.GetSpans() {
			names = append(names, s.Name)
		}
		for _, want := range []string{"POST /v1/sequencers/{name}/next", "firn.v1.IDs/Next", "RESP next", "store cas"} {
			if !strings.Contains(strings.Join(names, "\n"), want) {
				t.Errorf("spans %q, want %s", names, want)
			}
		}
	},
	"IssueLog": func(t *testing.T) {
		out := new(nettest.Output)
		log := must.Get(issued.Open("stdout", out, "ids-1", slog.New(slog.DiscardHandler)))(t)
		log.Start()
		_, address := served(t, Config{IssueLog: log})
		all := asks(t, address, "orders", 1, "dec")
		must.Do(t, log.Close())
		if n := strings.Count(out.String(), `"sequencer":"orders"`); n != len(all) {
			t.Errorf("%d answers over %d protocols:\n%s", n, len(all), out)
		}
	},
	"Logger": func(t *testing.T) {
		log := new(nettest.Output)
		_, address := served(t, Config{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		asks(t, address, "orders", 1, "dec")
		for _, want := range []string{"node ID acquired", `audit=create result=done sequencer=orders principal="" address=127.0.0.1:`, "protocol=http", "protocol=grpc", "protocol=resp"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log has no %q:\n%s", want, log)
			}
		}
	},
}

// TestEveryField: each field of Config has a test above, and has its effect.
func TestEveryField(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if fieldTests[f.Name] == nil {
			t.Errorf("the field %s has no test in fieldTests", f.Name)
			continue
		}
		t.Run(f.Name, fieldTests[f.Name])
	}
}

func testStatic(t *testing.T) {
	_, address := served(t, Config{Static: &service.StaticBackendConfig{Layout: slow, Node: 5, Options: &firn.Options{MaxAhead: 300 * time.Second}}})
	for protocol, answer := range asks(t, address, "orders", 1, "dec") {
		found := false
		for _, word := range strings.FieldsFunc(answer, func(r rune) bool { return r < '0' || r > '9' }) {
			if id, err := firn.ParseID(word); err == nil && len(word) > 8 {
				parts, err := slow.Decompose(id)
				// A static node begins ahead of all that its previous process
				// may have used.
				found = found || err == nil && parts.Node == 5 && time.Until(parts.Time) > 60*time.Second
			}
		}
		if !found {
			t.Errorf("over %s: no ID of node 5, 300 s ahead of the clock, in %.300s", protocol, answer)
		}
	}
}

// testForwarding: a server without a node ID has its store's IDs from another
// one. The request ID, the token, the prefix and the keys are carried there,
// and the list of servers has the count.
func testForwarding(t *testing.T, token string) {
	store, log := new(memstore.Store), new(nettest.Output)
	first := Config{Store: store, Logger: slog.New(requestid.NewHandler(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		Sequencers: sequencer.Options{Prefix: "order", Nodes: &grant.NodeRange{Lo: 9, Hi: 9}}}
	second := Config{Store: store, Sequencers: first.Sequencers, VeilKeys: veilKeys(t)}
	authorization := ""
	if token != "" {
		first.TokenFile, token = tokensOf(t)
		second.ForwardTokenFile = filepath.Join(t.TempDir(), "token")
		must.Do(t, os.WriteFile(second.ForwardTokenFile, []byte(token+"\n"), 0o600))
		authorization = "Authorization: Bearer " + token + "\r\n"
	}
	_, has := served(t, first)
	second.ForwardTo = []string{"http://" + has}
	lacks, address := served(t, second)
	request := func(address, format, id string) (int, string) {
		return send(t, address, "POST /v1/sequencers/orders/next?format="+format+" HTTP/1.1\r\nHost: localhost\r\n"+authorization+"X-Request-Id: "+id+"\r\nContent-Length: 0\r\n\r\n")
	}
	if code, answer := request(has, "dec", "before"); code != 200 {
		t.Fatal(code, answer)
	}
	for format, want := range map[string]string{"dec": "ids", "typed": `"order_`, "veiled": "ids"} {
		if code, answer := request(address, format, "carried-"+format); code != 200 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s, want %s", format, code, answer, want)
		}
		if !strings.Contains(log.String(), "request_id=carried-"+format) {
			t.Errorf("%s: the other server's log does not have the request ID:\n%s", format, log)
		}
	}
	if m := lacks.describe(nil)(); m.Forwarded != 3 {
		t.Errorf("the list of servers has %d forwarded requests, want 3", m.Forwarded)
	}
}

// testMember: other servers see what a server says of itself, and so do the
// protocols.
func testMember(t *testing.T) {
	dir := t.TempDir()
	nettest.Certificates(t, dir)
	s, _ := served(t, Config{Store: new(memstore.Store), Version: "v5.4", Advertise: "ids.example:54",
		TLS: tlsconf.Files{Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key")}})
	if m := s.describe(nil)(); m.Version != "v5.4" || m.Address != "ids.example:54" || !m.TLS || m.Host == "" || m.Started.IsZero() {
		t.Errorf("the server describes itself as %+v", m)
	}
	store := new(memstore.Store)
	_, address := served(t, Config{Store: store, Version: "v5.4"})
	var all []members.Server
	must.Await(t, func() bool {
		all = must.Get(members.List(t.Context(), store, time.Now()))(t)
		return len(all) == 1
	}, "the store has the server")
	if m := all[0]; m.Version != "v5.4" || m.Address != address || m.TLS {
		t.Errorf("the store has the server as %+v", m)
	}
	_, metrics := send(t, address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
	wantAll(t, "the version", map[string]string{"http": metrics, "resp": talk(t, address, "INFO\r\n")}, "v5.4")
}

// ends returns after which time a server ends a connection on which no more
// than the input is sent.
func ends(t *testing.T, c Config, input string) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.Static = new(service.StaticBackendConfig)
		_, pipes := onPipes(t, c)
		conn := pipes.Dial()
		defer conn.Close()
		begin := time.Now()
		_ = conn.SetDeadline(begin.Add(100 * time.Hour))
		go io.WriteString(conn, input)
		_, _ = io.Copy(io.Discard, conn)
		took = time.Since(begin)
	})
	return took
}
