package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/service"
)

// TestConfigKeys: every key has its flag, and every flag that a file can set is a
// key.
func TestConfigKeys(t *testing.T) {
	_, flags := serveFlags()
	keyOf := make(map[string]bool)
	for _, k := range configKeys {
		if flags.Lookup(k.flag) == nil {
			t.Errorf("the key %s has no flag --%s", k.key, k.flag)
		}
		keyOf[k.flag] = true
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !keyOf[f.Name] && f.Name != "allow-local-mac" && f.Name != "config" && f.Name != "help" { // it is of one machine
			t.Errorf("the flag --%s has no key", f.Name)
		}
	})
}

// loadedServe is a serve command with these arguments, a file and variables.
func loadedServe(t *testing.T, file string, getenv func(string) string, args ...string) *serveCmd {
	t.Helper()
	s, flags := serveFlags()
	s.args = args
	must.Do(t, flags.Parse(args))
	wrong, err := s.load(flags, file, getenv)
	must.Do(t, cmp.Or(err, wrong.error(s.from)))
	return s
}

// TestListenAlone: with an address for one protocol, serve has none for all,
// unless one is given, in any of flag, variable and file.
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
		must.Do(t, os.WriteFile(file, []byte(tt.yaml), 0o600))
		name, value, _ := strings.Cut(tt.env, "=")
		getenv := func(asked string) string { return map[string]string{name: value}[asked] }
		s := loadedServe(t, file, getenv, tt.args...)
		endpoints, wrong := s.endpoints()
		must.Do(t, wrong.error(s.from))
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

// TestLimits: the limits of the environment reach their fields. TestEveryField
// of the server has their effect.
func TestLimits(t *testing.T) {
	environ := map[string]string{
		"FIRN_LIMITS_IDS_PER_CALL": "10", "FIRN_LIMITS_BODY": "1KiB", "FIRN_LIMITS_HEADER": "4KiB", "FIRN_LIMITS_READ_TIMEOUT": "1s",
		"FIRN_LIMITS_WRITE_TIMEOUT": "2s", "FIRN_LIMITS_IDLE_TIMEOUT": "3s", "FIRN_LIMITS_RESP_IDLE_TIMEOUT": "4s", "FIRN_LIMITS_CONNECTIONS": "5",
	}
	s := loadedServe(t, "", func(name string) string { return environ[name] })
	want := service.Limits{Count: 10, Body: 1 << 10, Header: 4 << 10, Read: time.Second, Write: 2 * time.Second, Idle: 3 * time.Second}
	if s.Limits != want || s.RESPIdle != 4*time.Second || s.MaxConns != 5 {
		t.Errorf("the limits are %+v, %v and %d, want %+v, 4s and 5", s.Limits, s.RESPIdle, s.MaxConns, want)
	}
}

// TestUnknownVariables: serve and config print name an unknown variable.
// Variables for other purposes are not unknown.
func TestUnknownVariables(t *testing.T) {
	environ := []string{"FIRN_STROE=x", "PATH=/bin", "FIRN_LISTEN=x", "FIRN_CONFIG=x", "FIRN_NUMBER=5",
		"FIRN_SERVICE_HOST=10.0.0.1", "FIRN_HEADLESS_SERVICE_HOST=x", "FIRN_SERVICE_PORT_HTTP=3476", "FIRN_PORT_3476_TCP_ADDR=x"}
	if got := unknownVars(environ, "env:FIRN_NUMBER"); !slices.Equal(got, []string{"FIRN_STROE"}) {
		t.Errorf("%q, want FIRN_STROE", got)
	}
	t.Setenv("FIRN_STROE", "x")
	for _, args := range [][]string{{"serve", "--store", "ftp://x"}, {"config", "print"}} {
		a, _, stderr := serveApp(t)
		run(t.Context(), a, args)
		if !strings.Contains(stderr.String(), "unknown environment variable") || !strings.Contains(stderr.String(), "FIRN_STROE") {
			t.Errorf("%q does not name the unknown variable: %s", args, stderr)
		}
	}
}

// TestConfigFaults: config check finds what serve refuses. Both report all
// unknown keys, and otherwise all wrong values at once, each with its line, and neither names a flag that the
// user has not typed.
func TestConfigFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	for _, tt := range []struct {
		yaml string
		want []string // lines of the output, after the name of the file
	}{
		{"tls: {cert: /nope}", []string{"1: tls.cert: TLS needs both a certificate and its key"}},
		{"tls:\n  key: /nope\n  cert: /nope", []string{"3: tls.cert: open /nope: no such file"}},
		{"tokens: /nope", []string{"1: tokens: stat /nope: no such file"}},
		{"forward-to: https://ids-1:3476\nforward-token: /nope", []string{"2: forward-token: open /nope: no such file"}},
		{"nodes: 0..99999", []string{`1: nodes is "0..99999": node IDs 0..99999 do not fit layout default, which has 0..1023`}},
		{"node: 5000", []string{`1: node is "5000": node 5000 is out of range 0..1023`}},
		{"node: 1\nnodes: 1..2", []string{"2: nodes: either --node or --nodes, not both"}},
		{"layout: hazelcst\nnodes: 0..60000\nsequencers: {x: {nodes: 0..50000}, y: {window: 1ms}}", []string{`1: layout is "hazelcst": unknown preset`}},
		{"max-ahead: 9999h\nsequencers: {x: {window: 60s}}", []string{`1: max-ahead is "9999h0m0s": it must be 0 or more`}},
		{"max-ahead: -1s", []string{`1: max-ahead is "-1s": it must be at least 0s`}},
		{"node: 'env:'", []string{`1: node is "env:": the name is missing`}},
		{"node: 5000\nsequencers: {x: {layout: default}}", []string{`1: node is "5000"`}},
		{"max-ahead: 9999h", []string{`1: max-ahead is "9999h0m0s": it must be 0 or more`}},
		{"layout: ksuid", []string{`1: layout is "ksuid"`}},
		{"layout: hazelcast\nsequencers: {x: {nodes: 0..4000}, y: {layout: default, nodes: 0..4000}}", []string{`2: sequencers: "y": node IDs 0..4000 do not fit layout default`}},
		{"sequencers: {x: {nodes: 0..4000}}", []string{`1: sequencers: "x": node IDs 0..4000 do not fit layout default`}},
		{"nodes: 5..2000\nlayout: hazelcast\nsequencers: {x: {layout: default}}", []string{`3: sequencers: "x": node IDs 5..2000 do not fit layout default`}},
		{`sequencers: {"x": {window: 1ms}}`, []string{`1: sequencers: "x": the window is 1ms`}},
		{`sequencers: {"x": {max-ahead: 9999h}}`, []string{`1: sequencers: "x": max-ahead is 9999h`}},
		{`sequencers: {"bad name": {layout: default}}`, []string{`1: sequencers: "bad name" is neither a sequencer name`}},
		{"sequencers:\n  bad name:\n    layout: nope\n    window: 1ms\n    nodes: 9..1", []string{
			`2: sequencers: "bad name" is neither a sequencer name`, `3: sequencers: "bad name": layout: `, `5: sequencers: "bad name": nodes: "9..1" is not LO..HI`,
		}},
		{`store: "redis://x"`, []string{`1: store: "redis://x": Redis cannot be a store`}},
		{`store: "postgres://u:hunter2@h/d?table=a-b"`, []string{"1: store: "}},
		{`store: "dir:/x?y=1"`, []string{`1: store: dir: unknown parameter "y"`}},
		{`advertise: "not an address"`, []string{`1: advertise is "not an address": it must be HOST:PORT`}},
		{"listen: 5", []string{`1: listen is "5": address 5: missing port`}},
		{`listen: [""]`, []string{"1: listen: the address is empty"}},
		{"listen: ['127.0.0.1:0', '5,6', '7']", []string{`1: listen is "5,6": `, `1: listen is "7": `}},
		{"limits:\n  connections: 0\n  request-timeout: 0s\n  read-timeout: -1s", []string{
			`2: limits.connections is "0": it must be from 1`, `3: limits.request-timeout is "0s": it must be at least 1ms`, `4: limits.read-timeout is "-1s": it must be from 100ms to 10m0s`,
		}},
		{"create-on-first-use: yes", []string{`1: create-on-first-use is "yes": it must be true or false`}},
		{"drain: {delay: soon}", []string{`1: drain.delay is "soon": it must be a duration such as`}},
		{"stroe: x\nlisten: 5\nlisen: y", []string{`1: unknown key "stroe"`, `3: unknown key "lisen"`}},
		{"listen: 5\ntokens: /nope\nlog: {level: [a, b]}", []string{`1: listen is "5"`, "2: tokens: ", `3: log.level is "a,b": it must be a single value`}},
		{"a: [", []string{"1: did not find"}},
	} {
		must.Do(t, os.WriteFile(file, []byte(tt.yaml), 0o600))
		for _, args := range [][]string{{"config", "check", file}, {"serve", "--config", file}} {
			a, stdout, stderr := serveApp(t)
			a.getenv = func(string) string { return "" }
			a.container = func() string { return "a test" } // so that no store of the user's own is made
			ctx, stop := context.WithTimeout(t.Context(), must.Patience)
			code := run(ctx, a, args)
			stop()
			if want := map[string]bool{"config": code == exitNo, "serve": code == exitMisuse || code == exitFailed}[args[0]]; !want {
				t.Errorf("%s of %q: exit %d: %s%s", args[0], tt.yaml, code, stdout, stderr)
			}
			var said []string
			for line := range strings.Lines(stderr.String()) {
				if _, fault, ok := strings.Cut(line, file+":"); ok {
					said = append(said, fault)
				}
			}
			right := len(said) == len(tt.want)
			for i := 0; right && i < len(said); i++ {
				right = strings.HasPrefix(said[i], tt.want[i])
			}
			if !right || strings.Contains(stderr.String(), "hunter2") || strings.Contains(stderr.String(), "--max-connections") {
				t.Errorf("%s of %q says\n%swant %q", args[0], tt.yaml, stderr, tt.want)
			}
		}
	}
}

// TestConfigRight: what serve takes is right, with as many keys as there are.
func TestConfigRight(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	for yaml, want := range map[string]string{
		"listen: 127.0.0.1:0": "1 key and 0 templates",
		"node: env:FIRN_TEST_NO_SUCH\nadvertise: '[::1]:3476'":        "2 keys and 0 templates",
		"node: 'if:no-such-interface'":                                "1 key and",
		"node: 5\nlayout: boundary\nsequencers: {'a*': {window: 3s}}": "2 keys and 1 template ",
		"listen: ['127.0.0.1:0', 'unix:/run/a,b']\nmax-ahead: 0s":     "2 keys",
	} {
		must.Do(t, os.WriteFile(file, []byte(yaml), 0o600))
		if code, out := runLine(t, "config check "+file); code != exitFine || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d, %swant %q", yaml, code, out, want)
		}
	}
}

// TestReload: at SIGHUP the templates of the file apply, and its level of the log
// if no flag sets one. A file with an invalid value changes nothing.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for _, args := range [][]string{{"--layout", "hazelcast"}, {"--layout", "hazelcast", "--log-level", "info"}} {
		write("max-ahead: 1s")
		s := loadedServe(t, file, func(string) string { return "" }, args...)
		var out bytes.Buffer
		a := &app{stderr: &out}
		log := s.logger(a)
		defer a.log.Close()
		for _, tt := range []struct {
			text    string
			err     string
			restart string // keys that need one
			debug   bool   // the level that applies
		}{
			{"max-ahead: 1s\nsequencers: {x: {nodes: 0..4000}}", "", "", false}, // the layout is that of the flag
			{"sequencers: {x: {nodes: 0..70000}}", "node IDs 0..70000 do not fit", "", false},
			{"max-ahead: 1s\nsequencers: {x: {window: 1s}}", "the window is 1s", "", false},
			{"log: {level: debug}\nadvertise: x", `2: advertise is "x"`, "", false},
			{"max-ahead: 1s\nlog: {level: debug}", "", "", true},
			{"log: {level: error}\nlimits: {body: 1B}", "limits.body", "", true},
			{"layout: default\nmax-ahead: 2s\nlog: {level: error}", "", "layout max-ahead", false},
		} {
			write(tt.text)
			before := s.file.Load()
			restart, err := s.reload()
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || strings.Join(restart, " ") != tt.restart {
				t.Errorf("%q: %v, %q, want %q, %q", tt.text, err, restart, tt.err, tt.restart)
			}
			if applies := s.file.Load() != before; applies != (tt.err == "") {
				t.Errorf("%q applies: %t", tt.text, applies)
			}
			out.Reset()
			log.Debug("here")
			if got, want := out.Len() > 0, tt.debug && len(args) == 2; got != want {
				t.Errorf("%q, %q: debug is logged: %t, want %t", args, tt.text, got, want)
			}
		}
	}
}
