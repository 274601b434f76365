package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/operate/logs"
	"github.com/firnid/firn/server/internal/server"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/stores"
)

// serveApp is the world of a serve command that runs in the test.
func serveApp(t *testing.T) (a *app, stdout, stderr *nettest.Output) {
	stdout, stderr = new(nettest.Output), new(nettest.Output)
	store := testStore(t)
	return &app{
		stdin:  strings.NewReader(""),
		stdout: &output{Writer: stdout},
		stderr: stderr,
		now:    time.Now,
		getenv: func(name string) string {
			if name == storeEnv {
				return store
			}
			return ""
		},
		container: func() string { return "" },
	}, stdout, stderr
}

// testStore is the URL of a store of the test's own.
func testStore(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "firn"))(t)
	t.Cleanup(func() {
		// A command that was interrupted may still be creating its store.
		must.Await(t, func() bool { return os.RemoveAll(dir) == nil }, "%s is removed", dir)
	})
	return "dir:" + filepath.Join(dir, "store") + "?create=true&volatile=true"
}

func openTest(t *testing.T, url string) grant.Store {
	t.Helper()
	s := must.Get(stores.Open(t.Context(), url))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// runFirn runs a command in the test.
func runFirn(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	a, out, errs := serveApp(t)
	code = run(t.Context(), a, args)
	return out.String(), errs.String(), code
}

// runLine runs a command, and returns all that it prints.
func runLine(t *testing.T, args string) (code int, out string) {
	t.Helper()
	stdout, stderr, code := runFirn(t, strings.Fields(args)...)
	return code, stdout + stderr
}

// urlIn finds the address in the lines of a log in JSON.
func urlIn(log io.Reader) (string, error) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, URL string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return "", fmt.Errorf("the log has the line %q: %w", lines.Text(), err)
		}
		if line.Msg == "serving" {
			return line.URL, nil
		}
	}
	return "", fmt.Errorf("the log ended: %w", lines.Err())
}

// A running is a firn serve that runs in the test.
type running struct {
	url   string
	log   *nettest.Output
	stop  func()
	ended chan int
}

// startServe starts firn serve with these flags, and more of the environment.
// With clockEnv in it, the server has another clock.
func startServe(t *testing.T, env map[string]string, args ...string) *running {
	t.Helper()
	a, _, stderr := serveApp(t)
	byDefault := a.getenv
	a.getenv = func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		return byDefault(name)
	}
	a.clock = clockOf(env[clockEnv])
	logs, logsIn := io.Pipe()
	a.stderr = io.MultiWriter(stderr, logsIn)
	ctx, stop := context.WithCancel(t.Context())
	r := &running{log: stderr, ended: make(chan int, 1)}
	go func() {
		r.ended <- run(ctx, a, append([]string{"serve", "--listen", "127.0.0.1:0", "--log-format", "json"}, args...))
		logsIn.Close()
	}()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		stop()
		if code := <-r.ended; code != exitFine {
			t.Errorf("exit %d:\n%s", code, stderr)
		}
	}
	lines := bufio.NewReader(logs)
	url := must.Get(urlIn(lines))(t)
	go io.Copy(io.Discard, logs)
	r.url = url
	t.Cleanup(r.stop)
	return r
}

// twoServers are two servers of one store with one node ID. The first has it,
// so that the second forwards calls for orders.
func twoServers(t *testing.T, args ...string) (has, asks *running) {
	t.Helper()
	args = append([]string{"--store", testStore(t), "--nodes", "0..0"}, args...)
	has = startServe(t, nil, args...)
	if status, _, body := has.post(t, "orders"); status != 200 {
		t.Fatal(status, body)
	}
	asks = startServe(t, nil, append(args, "--forward-to", has.url)...)
	if status, _, body := asks.post(t, "orders"); status != 200 {
		t.Fatal(status, body)
	}
	return has, asks
}

// await waits until the log has a text.
func (r *running) await(t *testing.T, text string) {
	t.Helper()
	must.Await(t, func() bool { return strings.Contains(r.log.String(), text) }, "the log has %q: %s", text, r.log)
}

// get returns the body of a path, which must succeed.
func (r *running) get(t *testing.T, path string) []byte {
	t.Helper()
	resp := must.Get(http.Get(r.url + path))(t)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", path, resp.Status, err)
	}
	return body
}

// post asks for an ID.
func (r *running) post(t *testing.T, name string, header ...string) (status int, h http.Header, body string) {
	t.Helper()
	q := must.Get(http.NewRequestWithContext(t.Context(), "POST", r.url+"/v1/sequencers/"+name+"/next", nil))(t)
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp := must.Get(http.DefaultClient.Do(q))(t)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(text)
}

// metric is the value of a series in a server's metrics; 0 if it is not there.
func (r *running) metric(t *testing.T, series string) float64 {
	t.Helper()
	for line := range strings.Lines(string(r.get(t, "/metrics"))) {
		if value, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), series+" "); ok {
			return must.Get(strconv.ParseFloat(value, 64))(t)
		}
	}
	return 0
}

// servePipes runs a server without a store until stop, on connections that the
// test adds.
func servePipes(t *testing.T, s *serveCmd) (listener *nettest.Pipes, stderr *nettest.Output, stop func(), ended chan error) {
	t.Helper()
	a, _, stderr := serveApp(t)
	s.node = "0"
	log, lines := logs.New(stderr, false, &s.level) // no handler of signals in a bubble: SIGPIPE would end all tests
	t.Cleanup(lines.Close)
	c := must.Get(s.serverConfig(t.Context(), a, log, func(error) {}))(t)
	srv := must.Get(server.New(c))(t)
	ctx, stop := context.WithCancel(t.Context())
	listener, ended = nettest.NewPipes(), make(chan error, 1)
	go func() {
		ended <- s.serve(ctx, a, log, srv, []*endpoint{{text: "pipes", scheme: "http", address: new(net.TCPAddr), listener: listener}}, nil)
	}()
	return listener, stderr, stop, ended
}

// Requests that wait when the server stops get their IDs. Those that take
// longer than the limit are cut off, and that is a failure.
func TestServeDrain(t *testing.T) {
	for _, row := range []struct {
		drain time.Duration
		code  int
	}{
		{2 * time.Minute, exitFine},
		{10 * time.Second, exitFailed},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
			s := newServeCmd()
			s.Sequencers.Layout = firn.MustParseLayout("bits=time:40.seq:4,unit=1m,epoch=2026-01-01T00:00:00Z")
			s.RequestTimeout, s.drainTimeout = time.Hour, row.drain
			listener, stderr, stop, ended := servePipes(t, s)

			client, conn := net.Pipe()
			listener.Add(conn)
			fmt.Fprintf(client, "GET /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n")
			synctest.Wait()
			stop()
			answer, _ := io.ReadAll(client)
			client.Close()
			err := <-ended
			if got := exitCode(err); got != row.code {
				t.Errorf("drain %v: exit %d (%v), want %d\n%s", row.drain, got, err, row.code, stderr)
			}
			if got, want := strings.Contains(string(answer), `{"ids":["`), row.code == exitFine; got != want {
				t.Errorf("drain %v: the answer is %q", row.drain, answer)
			}
			for _, want := range []string{"stopping", "a second signal stops the server at once"} {
				if strings.Count(stderr.String(), want) != 1 {
					t.Errorf("the log does not say %q once: %s", want, stderr)
				}
			}
		})
	}
}

// With --drain-delay the server keeps serving for that long, and /readyz
// reports that it will stop: that is how a load balancer learns of it.
func TestServeDrainDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
		s := newServeCmd()
		s.RequestTimeout, s.drainDelay, s.drainTimeout = time.Second, 10*time.Second, time.Second
		listener, stderr, stop, ended := servePipes(t, s)
		want := func(path string, want int) {
			t.Helper()
			client, conn := net.Pipe()
			defer client.Close()
			listener.Add(conn)
			fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
			resp := must.Get(http.ReadResponse(bufio.NewReader(client), nil))(t)
			io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != want {
				t.Errorf("%v after the signal, GET %s: status %d, want %d", s.drainDelay-time.Second, path, resp.StatusCode, want)
			}
		}
		want("/readyz", 200)
		begin := time.Now()
		stop()
		time.Sleep(s.drainDelay - time.Second)
		want("/readyz", 503)
		want("/healthz", 200)
		want("/v1/sequencers/orders/next", 200)
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v\n%s", err, stderr)
		}
		if got := time.Since(begin); got < s.drainDelay || got > s.drainDelay+s.drainTimeout {
			t.Errorf("it ended %v after the signal, want after %v", got, s.drainDelay)
		}
	})
}

// Every way to start it wrongly has its exit code and says what would be right;
// TestConfigFaults has more.
func TestServeErrors(t *testing.T) {
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	for _, row := range []struct {
		args  []string
		code  int
		texts []string
	}{
		{[]string{"--listen", taken.Addr().String()}, exitFailed, []string{"already in use", "hint:", "--listen 127.0.0.1:0"}},
		{[]string{"--listen", ":3476"}, exitMisuse, []string{"other machines can reach", "hint: use --listen 127.0.0.1:3476", "--insecure"}},
		{[]string{"--listen", "0.0.0.0:80"}, exitMisuse, []string{"other machines can reach", "127.0.0.1:80"}},
		{[]string{"--listen", "[::]:80"}, exitMisuse, []string{"other machines can reach", "127.0.0.1:80"}},
		{[]string{"--listen", "192.0.2.1:80"}, exitMisuse, []string{"other machines can reach", "127.0.0.1:80"}},
		{[]string{"--listen", "127.0.0.1:99999"}, exitMisuse, []string{"invalid port"}},
		{[]string{"--listen", "unix:"}, exitMisuse, []string{"the path is missing"}},
		{[]string{"--listen", "unix:/x?mode=999"}, exitMisuse, []string{`mode "999"`, "?mode=0660"}},
		{[]string{"--listen-resp", ":6379"}, exitMisuse, []string{"--listen-resp", "other machines can reach"}},
		{[]string{"--tls-cert", "x", "--tls-key", "y"}, exitFailed, []string{"no such file"}},
		{[]string{"--tls-cert", "x", "--tls-key", "y", "--listen", ":80"}, exitMisuse, []string{"not authenticated", "--tokens"}},
		{[]string{"--tokens", "/nowhere", "--listen", ":80"}, exitMisuse, []string{"sent unencrypted", "--tls-cert"}},
		{[]string{"--drain-delay", "-1s"}, exitMisuse, []string{"--drain-delay"}},
		{[]string{"--node", ""}, exitMisuse, []string{"--node", "it is empty"}},
		{[]string{"--nodes", "5"}, exitMisuse, []string{"LO..HI"}},
		{[]string{"--nodes", "6..5"}, exitMisuse, []string{"6 is above 5"}},
		{[]string{"--store", "consul://localhost"}, exitMisuse, []string{"unknown kind of store", "dir:PATH"}},
		{[]string{"--store", "dir:"}, exitMisuse, []string{"the path is missing"}},
		{[]string{"--store", "dir:/no/such/place"}, exitFailed, []string{"/no/such/place", "create=true"}},
		{[]string{"--node", "env:FIRN_TEST_NOT_SET"}, exitMisuse, []string{"FIRN_TEST_NOT_SET", "is not set"}},
		{[]string{"--drain-timeout", "-1s"}, exitMisuse, []string{"--drain-timeout"}},
		{[]string{"--max-sequencers", "0"}, exitMisuse, []string{"--max-sequencers"}},
		{[]string{"--log-format", "xml"}, exitMisuse, []string{"text or json"}},
		{[]string{"--max-ids-per-call", "0"}, exitMisuse, []string{"--max-ids-per-call", "from 1 to 100000"}},
		{[]string{"--max-ids-per-call", "100001"}, exitMisuse, []string{"--max-ids-per-call", "from 1 to 100000"}},
		{[]string{"--max-body", "1023B"}, exitMisuse, []string{"--max-body", "from 1KiB to 16MiB"}},
		{[]string{"--max-body", "17MiB"}, exitMisuse, []string{"--max-body", "from 1KiB to 16MiB"}},
		{[]string{"--max-body", "64"}, exitMisuse, []string{"--max-body", "from 1KiB to 16MiB"}},
		{[]string{"--max-body", "64KB"}, exitMisuse, []string{"--max-body", "512MiB"}},
		{[]string{"--max-header", "3KiB"}, exitMisuse, []string{"--max-header", "from 4KiB to 1MiB"}},
		{[]string{"--max-header", "2MiB"}, exitMisuse, []string{"--max-header", "from 4KiB to 1MiB"}},
		{[]string{"--read-timeout", "99ms"}, exitMisuse, []string{"--read-timeout", "from 100ms to 10m"}},
		{[]string{"--read-timeout", "11m"}, exitMisuse, []string{"--read-timeout", "from 100ms to 10m"}},
		{[]string{"--write-timeout", "0s"}, exitMisuse, []string{"--write-timeout", "from 100ms to 10m"}},
		{[]string{"--idle-timeout", "0s"}, exitMisuse, []string{"--idle-timeout", "from 1s to 24h"}},
		{[]string{"--idle-timeout", "25h"}, exitMisuse, []string{"--idle-timeout", "from 1s to 24h"}},
		{[]string{"--resp-idle-timeout", "1ms"}, exitMisuse, []string{"--resp-idle-timeout", "from 1s to 24h"}},
		{[]string{"--resp-integers", "some"}, exitMisuse, []string{"--resp-integers", "allow or refuse-unsafe"}},
		{[]string{"--max-connections", "0"}, exitMisuse, []string{"--max-connections", "from 1 to 1000000"}},
		{[]string{"--max-connections", "1000001"}, exitMisuse, []string{"--max-connections", "from 1 to 1000000"}},
		{[]string{"--tracing-endpoint", "ftp://x"}, exitMisuse, []string{"--tracing-endpoint", "is neither a URL"}},
		{[]string{"--log-level", "loud"}, exitMisuse, []string{"--log-level", "debug, info, warn or error"}},
		{[]string{"--log-level", "INFO"}, exitMisuse, []string{"--log-level", "debug, info, warn or error"}},
		{[]string{"now"}, exitMisuse, []string{"no argument"}},
	} {
		a, stdout, stderr := serveApp(t)
		// A command that does not fail as it should is stopped at once.
		ctx, stop := context.WithTimeout(t.Context(), must.Patience)
		if got := run(ctx, a, append([]string{"serve"}, row.args...)); got != row.code {
			t.Errorf("serve %q: exit %d, want %d", row.args, got, row.code)
		}
		stop()
		for _, text := range row.texts {
			if !strings.Contains(stderr.String(), text) {
				t.Errorf("serve %q says\n%swant %q", row.args, stderr, text)
			}
		}
		if stdout.String() != "" {
			t.Errorf("serve %q printed %q", row.args, stdout)
		}
	}
}

// anyNode stands for whatever number the store gives.
const anyNode = math.MaxUint64

// The flags reach what they are for.
func TestServeFlags(t *testing.T) {
	for _, row := range []struct {
		args       []string
		host       string
		layout     string
		node       uint64
		status     int
		isInsecure bool
	}{
		{[]string{"--node", "0"}, "localhost", "default", 0, 200, false},
		{nil, "localhost", "default", anyNode, 200, false},
		{[]string{"--nodes", "77..77"}, "localhost", "default", 77, 200, false},
		{[]string{"--store", testStore(t), "--node", "78"}, "localhost", "default", 78, 200, false},
		{[]string{"--layout", "boundary"}, "localhost", "boundary", anyNode, 200, false},
		{[]string{"--layout", "flake-idgen", "--node", "datacenter=9,worker=7"}, "127.0.0.1", "flake-idgen", 295, 200, false},
		{[]string{"--layout", "hazelcast", "--node", "12", "--max-ahead", "0"}, "[::1]:3476", "hazelcast", 12, 200, false},
		{nil, "ids.example", "", anyNode, 421, false},
		{[]string{"--insecure"}, "ids.example", "default", anyNode, 421, true},
		{[]string{"--allow-host", "ids.example", "--insecure"}, "ids.example:80", "default", anyNode, 200, true},
		{[]string{"--advertise", "ids.example:3476"}, "ids.example", "default", anyNode, 200, false},
	} {
		server := startServe(t, nil, row.args...)
		r, _ := http.NewRequest("GET", server.url+"/v1/sequencers/orders/next?format=dec", nil)
		r.Host = row.host
		r.Header.Set("Accept", "text/plain")
		resp := must.Get(http.DefaultClient.Do(r))(t)
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != row.status {
			t.Errorf("%q, Host %s: status %d, want %d: %s", row.args, row.host, resp.StatusCode, row.status, body)
		}
		if row.status == 200 && row.layout != "boundary" {
			id := must.Get(firn.ParseID(strings.TrimSpace(string(body))))(t)
			if parts, err := firn.MustParseLayout(row.layout).Decompose(id); err != nil || parts.Node != row.node && row.node != anyNode {
				t.Errorf("%q: the ID %v has parts %+v, %v, want node %d", row.args, id, parts, err, row.node)
			}
		}
		up, applied := server.metric(t, "firn_store_up"), server.metric(t, `firn_cas_total{result="applied",sequencer="orders"}`)
		server.stop()
		stderr := server.log
		isStatic := slices.Contains(row.args, "--node") && !slices.Contains(row.args, "--store")
		if (up == 1) == isStatic || (applied > 0) == (isStatic || row.status != 200) {
			t.Errorf("%q: metrics have the store up: %v, and %v writes", row.args, up, applied)
		}
		if got := strings.Contains(stderr.String(), "static node"); got != isStatic {
			t.Errorf("%q: the log says that the node is static: %t, want %t:\n%s", row.args, got, isStatic, stderr)
		}
		if got := strings.Contains(stderr.String(), "insecure"); got != row.isInsecure {
			t.Errorf("%q: the log is\n%s", row.args, stderr)
		}
	}
}
