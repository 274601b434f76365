package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/firnid/firn/server/listen"
)

var update = flag.Bool("update", false, "rewrite the table of keys in docs/config.md")

// TestConfigDocs: docs/config.md has every key as it is, and no other, and every flag that
// a file can say is a key.
func TestConfigDocs(t *testing.T) {
	const page = "../../../docs/config.md"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Skip("the module stands alone, without the repository's docs")
	}
	_, flags := servingFlags()
	var b strings.Builder
	b.WriteString("| key | flag | default | meaning |\n|---|---|---|---|\n")
	keyOf := make(map[string]bool)
	traces, err := os.ReadFile("../../../docs/tracing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range configKeys {
		if row := "| `" + k.key + "` | `--" + k.flag + "` |"; strings.HasPrefix(k.key, "tracing.") && !strings.Contains(string(traces), row) {
			t.Errorf("docs/tracing.md does not have %s", row)
		}
		f := flags.Lookup(k.flag)
		if f == nil {
			t.Fatalf("the key %s has no flag --%s", k.key, k.flag)
		}
		keyOf[k.flag] = true
		_, usage := pflag.UnquoteUsage(f)
		byDefault := strings.Trim(f.DefValue, `"[]`)
		if byDefault != "" {
			byDefault = "`" + byDefault + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `--%s` | %s | %s |\n", k.key, k.flag, byDefault, usage)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !keyOf[f.Name] && f.Name != "allow-local-mac" && f.Name != "help" { // it is of one machine
			t.Errorf("the flag --%s has no key", f.Name)
		}
	})
	text := string(data)
	from := strings.Index(text, "| key | flag |")
	if from < 0 {
		t.Fatal("docs/config.md has no table of keys")
	}
	to := from + strings.Index(text[from:], "\n\n") + 1
	if text[from:to] == b.String() {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(text[:from]+b.String()+text[to:]), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("docs/config.md is not as the keys are: go test ./cmd/firn -run TestConfigDocs -update")
}

// TestListenAlone: with an address of one protocol alone there is none for all, unless it is
// said, by whatever of flag, variable and file says them.
func TestListenAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	for _, tt := range []struct {
		args      []string
		env, yaml string
		want      string
	}{
		{nil, "", "", defaultListen},
		{[]string{"--listen-http", "127.0.0.1:1"}, "", "", "http 127.0.0.1:1"},
		{[]string{"--listen-grpc", "127.0.0.1:1"}, "FIRN_LISTEN_RESP=127.0.0.1:2", "", "grpc 127.0.0.1:1, resp 127.0.0.1:2"},
		{nil, "", "listen-resp: 127.0.0.1:1", "resp 127.0.0.1:1"},
		{nil, "", "listen: 127.0.0.1:3\nlisten-resp: 127.0.0.1:1", "127.0.0.1:3, resp 127.0.0.1:1"},
		{[]string{"--listen-http", "127.0.0.1:1", "--listen", defaultListen}, "", "", defaultListen + ", http 127.0.0.1:1"},
		{[]string{"--listen-http", "127.0.0.1:1"}, "FIRN_LISTEN=127.0.0.1:4", "", "127.0.0.1:4, http 127.0.0.1:1"},
	} {
		if err := os.WriteFile(file, []byte(tt.yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		a, _, _ := serveApp(t)
		name, value, _ := strings.Cut(tt.env, "=")
		a.getenv = func(asked string) string {
			switch asked {
			case configEnv:
				return file
			case name:
				return value
			}
			return ""
		}
		s, flags := servingFlags()
		if err := flags.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		if err := s.load(a, flags); err != nil {
			t.Fatal(err)
		}
		endpoints, err := s.endpoints()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range endpoints {
			text := e.text
			if len(e.only) > 0 {
				text = e.only[0].String() + " " + text
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%q, %s, %q: it listens on %q, want %q", tt.args, tt.env, tt.yaml, got, tt.want)
		}
	}
}

// TestAddressOf: other servers are told where gRPC is spoken.
func TestAddressOf(t *testing.T) {
	at := func(port int, only ...listen.Protocol) *endpoint {
		return &endpoint{listener: &fixedListener{addr: &net.TCPAddr{IP: net.IPv4zero, Port: port}}, only: only}
	}
	for _, tt := range []struct {
		endpoints []*endpoint
		want      string
	}{
		{nil, ""},
		{[]*endpoint{at(1), at(2, listen.GRPC)}, "host:1"},
		{[]*endpoint{at(1, listen.HTTP), at(2, listen.GRPC)}, "host:2"},
		{[]*endpoint{at(1, listen.HTTP), at(2, listen.RESP)}, "host:1"},
		{[]*endpoint{{listener: &fixedListener{addr: &net.UnixAddr{Name: "/x", Net: "unix"}}}, at(2, listen.RESP)}, "host:2"},
	} {
		if got := addressOf(tt.endpoints, "host"); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// A fixedListener has an address, and nothing else.
type fixedListener struct {
	net.Listener
	addr net.Addr
}

func (l *fixedListener) Addr() net.Addr { return l.addr }

// TestSlips: a variable that is no key is named, with the key that is perhaps meant; those
// that are meant for something else are not.
func TestSlips(t *testing.T) {
	environ := []string{
		"FIRN_LIMITS_CONECTIONS=4", "FIRN_TLS_CRT=x", "FIRN_ZZZZZZZZZZZZ=1", "FIRN_LIMITS_CONNECTION_S=", "firn_listen=x", "PATH=/bin",
		"FIRN_LISTEN=x", "FIRN_CONFIG=x", "FIRN_STORE=x", "FIRN_TEST_SERVE=x", "FIRN_NUMBER=5",
		"FIRN_SERVICE_HOST=10.0.0.1", "FIRN_SERVICE_PORT=3476", "FIRN_SERVICE_PORT_HTTP=3476", "FIRN_PORT=tcp://10.0.0.1:3476", "FIRN_PORT_3476_TCP=x",
		"FIRN_PORT_3476_TCP_ADDR=x", "FIRN_HEADLESS_SERVICE_HOST=x", "FIRN_HEADLESS_PORT_3476_TCP_PROTO=x",
	}
	want := []slip{{"FIRN_LIMITS_CONECTIONS", "FIRN_LIMITS_CONNECTIONS"}, {"FIRN_TLS_CRT", "FIRN_TLS_CERT"}, {"FIRN_ZZZZZZZZZZZZ", ""}}
	if got := slips(environ, "env:FIRN_NUMBER"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := slips([]string{"FIRN_NUMBER=5"}, "env:OTHER"); len(got) != 1 {
		t.Errorf("%q, want FIRN_NUMBER", got)
	}
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"config", "print"}} {
		a, _, stderr := serveApp(t)
		a.environ = func() []string { return []string{"FIRN_LIMITS_CONECTIONS=4"} }
		ctx, stop := context.WithCancel(t.Context())
		stop() // a server is told to stop before it begins
		run(ctx, a, args)
		for _, text := range []string{"FIRN_LIMITS_CONECTIONS", "did you mean FIRN_LIMITS_CONNECTIONS?"} {
			if !strings.Contains(stderr.String(), text) {
				t.Errorf("%q does not say %q: %s", args, text, stderr)
			}
		}
	}
}
