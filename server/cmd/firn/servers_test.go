//go:build linux || darwin

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/internal/test/s3test"
	"github.com/firnid/firn/server/internal/test/distinct"
	"github.com/firnid/firn/server/internal/test/etcdtest"
	"github.com/firnid/firn/server/internal/test/sqltest"
)

// chaosLayout has few node IDs, so that they change hands often.
const chaosLayout = "bits=time:41.node:5.seq:12,unit=1ms,epoch=2026-01-01T00:00:00Z"

// patient is a parameter of a store's URL: its first answer may take as long as
// a slow machine needs.
var patient = "timeout=" + must.Patience.String()

// firnCommand is firn in a process of its own.
func firnCommand(ctx context.Context, args string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "FIRN_TEST_SERVE="+args, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// A testServer is a firn serve that is killed and started again.
type testServer struct {
	*process
	listen string                 // "" is a free port each time
	url    atomic.Pointer[string] // of the current process
	going  time.Time              // when to resume it, if it is paused
}

// start starts it, and waits until it serves. Should the store be away, it
// ends, and is started again, as what runs services does.
func (s *testServer) start(t *testing.T, store string) {
	t.Helper()
	args := "serve --listen " + cmp.Or(s.listen, "127.0.0.1:0") + " --log-format json --request-timeout 3s --store " + store
	for begin := time.Now(); ; {
		p, err := serves(t, firnCommand(context.Background(), args))
		if err == nil {
			s.process = p
			s.url.Store(&p.url)
			return
		}
		if p.stop(); time.Since(begin) > must.Patience {
			t.Fatal(err)
		}
	}
}

// end ends it with a signal, even while it is stopped.
func (s *testServer) end(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	<-s.ended
	s.going = time.Time{}
}

// createChaos creates the sequencer chaos.
func createChaos(t *testing.T, flags string) {
	t.Helper()
	if out, err := firnCommand(t.Context(), "sequencer create chaos "+flags).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// take takes count IDs of chaos from a server, as runs or one by one.
func take(client *http.Client, url string, count int, asRuns bool, counted *distinct.Slots) error {
	resp, err := client.Post(fmt.Sprintf("%s/v1/sequencers/chaos/next?count=%d&runs=%t", url, count, asRuns), "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var v struct {
		IDs  []firn.ID
		Runs []struct {
			First firn.ID
			Step  uint64 `json:",string"`
			Count uint64
		}
	}
	if resp.StatusCode != 200 {
		_, _ = io.Copy(io.Discard, resp.Body)
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		return err // cut off by a kill
	}
	for _, r := range v.Runs {
		if r.Step != 1 {
			return fmt.Errorf("a run with step %d", r.Step)
		}
		if err := counted.Add(r.First, r.Count); err != nil {
			return err
		}
	}
	return counted.AddAll(v.IDs)
}

// nextChaos takes IDs of chaos by firn next. It counts them, also if that fails.
func nextChaos(flags string, counted *distinct.Slots) (n int, err error) {
	var stderr bytes.Buffer
	cmd := firnCommand(context.Background(), "next --sequencer chaos "+flags)
	cmd.Stderr = &stderr
	out, failure := cmd.Output()
	for line := range strings.Lines(string(out)) {
		id, err := firn.ParseID(strings.TrimSpace(line))
		if err = cmp.Or(err, counted.Add(id, 1)); err != nil {
			return n, err
		}
		n++
	}
	if failure != nil {
		failure = fmt.Errorf("%w: %s", failure, &stderr)
	}
	return n, failure
}

// A disturbance is what servers have gone through.
type disturbance struct{ kills, ends, stops int }

// disturb kills servers, stops them, and pauses them for longer than their
// windows of a second, at moments chosen by the seed, for that long, and until
// it has done each and enough returns true. Servers that end are started again,
// and all run when it returns. It calls also in between.
func disturb(t *testing.T, servers []testServer, store string, lasts time.Duration, seed uint64, also func(), enough func() bool) (d disturbance) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, seed))
	begin := time.Now()
	for more := true; more; more = time.Since(begin) < lasts || time.Since(begin) < lasts+must.Patience && (d.kills == 0 || d.stops == 0 || !enough()) {
		time.Sleep(time.Duration(100+r.IntN(300)) * time.Millisecond)
		for i := range servers {
			if s := &servers[i]; !s.going.IsZero() && time.Now().After(s.going) {
				_ = s.cmd.Process.Signal(syscall.SIGCONT)
				s.going = time.Time{}
			}
		}
		also()
		s := &servers[r.IntN(len(servers))]
		switch what := r.IntN(5); {
		case what < 2:
			s.end(syscall.SIGKILL)
			s.start(t, store)
			d.kills++
		case what < 3 && s.going.IsZero():
			s.end(syscall.SIGTERM)
			s.start(t, store)
			d.ends++
		case s.going.IsZero():
			_ = s.cmd.Process.Signal(syscall.SIGSTOP)
			s.going = time.Now().Add(time.Duration(r.IntN(2500)) * time.Millisecond)
			d.stops++
		}
	}
	for i := range servers {
		_ = servers[i].cmd.Process.Signal(syscall.SIGCONT)
		servers[i].going = time.Time{}
	}
	return d
}

// TestServersOnDirectory: two firn serve on one directory.
func TestServersOnDirectory(t *testing.T) {
	inFull(t)
	testServers(t, "a directory", 2, testStore(t), func() {})
}

// TestServersOnEtcd: three firn serve on one etcd, a member of which is killed
// now and then.
func TestServersOnEtcd(t *testing.T) {
	inFull(t)
	c := etcdtest.Start(t)
	startEarly(t, c)
	n := 0
	testServers(t, "etcd", 3, c.URL("servers")+"?"+patient, func() {
		c.Kill(n % etcdtest.Members)
		c.Start(n % etcdtest.Members)
		n++
	})
}

// startEarly: a server that starts before its etcd serves, unready, and hands
// out IDs once the etcd is reachable.
func startEarly(t *testing.T, c *etcdtest.Cluster) {
	t.Helper()
	for i := range etcdtest.Members {
		c.Kill(i)
	}
	var s testServer
	s.start(t, c.URL("early"))
	defer s.end(syscall.SIGTERM)
	ask := func(method, path string) (status int) {
		r := must.Get(http.NewRequestWithContext(t.Context(), method, *s.url.Load()+path, nil))(t)
		answer := must.Get(http.DefaultClient.Do(r))(t)
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	const next = "/v1/sequencers/early/next"
	if ready, given := ask("GET", "/readyz"), ask("POST", next); ready != http.StatusServiceUnavailable || given != http.StatusServiceUnavailable {
		t.Fatalf("before etcd runs: /readyz answers %d and next %d, want 503 twice", ready, given)
	}
	for i := range etcdtest.Members {
		c.Start(i)
	}
	c.Ready()
	must.Await(t, func() bool { return ask("GET", "/readyz") == http.StatusOK }, "the server is ready once etcd is")
	if given := ask("POST", next); given != http.StatusOK {
		t.Fatalf("next answers %d once etcd runs", given)
	}
}

// TestServersOnPostgreSQL: three firn serve on one PostgreSQL, which is killed
// now and then.
func TestServersOnPostgreSQL(t *testing.T) {
	inFull(t)
	s := sqltest.PostgreSQL(t)
	testServers(t, "PostgreSQL", 3, s.URL("create=true", patient), func() {
		s.Kill()
		s.Start()
	})
}

// TestServersOnBucket: ten firn serve on one bucket behind a link that leads to
// one of two gateways. It is cut, and the gateway is killed or stopped for
// longer than a window, now and then.
func TestServersOnBucket(t *testing.T) {
	if os.Getenv("FIRN_ALL") == "" {
		t.Skip("it takes long: make test-all runs it, or FIRN_ALL=1")
	}
	gateways := []*s3test.Gateway{s3test.Start(t, t.TempDir())}
	gateways = append(gateways, s3test.Start(t, gateways[0].Dir))
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	link := proc.NewLink(t, gateways[0].Address)
	n := 0
	testServers(t, "a bucket", 10, "s3://ids/chaos?path-style=true&"+patient+"&endpoint=http://"+link.Address, func() {
		killed := gateways[n%2]
		n++
		link.Lead(gateways[n%2].Address) // present connections stay
		switch n % 3 {
		case 0:
			link.Reset()
		case 1:
			link.CutAnswers(true)
			time.Sleep(50 * time.Millisecond) // how long answers are lost
			link.CutAnswers(false)
		case 2:
			killed.Signal(syscall.SIGSTOP)
			time.Sleep(1500 * time.Millisecond)
			killed.Signal(syscall.SIGCONT) // what it was sent before is answered now
			return
		}
		killed.Kill()
		killed.Begin()
	})
}

// inFull skips a test that has no use for less time.
func inFull(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
}

// chaosLasts is how long servers are disturbed, at least. FIRN_SOAK=1h makes it
// an hour.
func chaosLasts() time.Duration {
	if text := os.Getenv("FIRN_SOAK"); text != "" {
		if d, err := time.ParseDuration(text); err == nil {
			return d
		}
		return 10 * time.Minute
	}
	if os.Getenv("FIRN_ALL") != "" {
		return 12 * time.Second
	}
	return 4 * time.Second
}

// testServers: firn serve on one store, and firn next beside them, hand out IDs
// together while the servers are killed, told to stop, and stopped for longer
// than their windows, and the store fails for a moment. Every ID is checked.
func testServers(t *testing.T, where string, size int, store string, fail func()) {
	lasts := chaosLasts()
	createChaos(t, "--max-ahead 200ms --window 1s --layout "+chaosLayout+" --store "+store)

	counted := &distinct.Slots{Layout: firn.MustParseLayout(chaosLayout)}
	servers := make([]testServer, size)
	for i := range servers {
		servers[i].start(t, store)
	}
	defer func() {
		for i := range servers {
			servers[i].end(syscall.SIGKILL)
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var failures atomic.Int64 // of the store
	var clients sync.WaitGroup
	var refused, answered, next, nextRefused atomic.Int64
	fromEach := make([]atomic.Int64, size)
	for i := range servers {
		for n := range 3 {
			clients.Go(func() {
				client := &http.Client{Timeout: 5 * time.Second, Transport: new(http.Transport)}
				defer client.CloseIdleConnections()
				for ctx.Err() == nil {
					if err := take(client, *servers[i].url.Load(), 1000, n > 0, counted); err != nil {
						refused.Add(1)
						time.Sleep(10 * time.Millisecond)
						continue
					}
					fromEach[i].Add(1)
					answered.Add(1)
				}
			})
		}
	}
	clients.Go(func() {
		for ctx.Err() == nil {
			n, err := nextChaos("-n 20000 --store "+store, counted)
			if err != nil {
				// Each kill blocks a node ID for a window; there are more. But
				// a store that fails may lead to this error.
				nextRefused.Add(1)
			}
			if failures.Load() == 0 && (err != nil || n != 20000) {
				t.Errorf("firn next made %d IDs: %v", n, err)
				return
			}
			next.Add(1)
		}
	})

	lastFailure := time.Now()
	d := disturb(t, servers, store, lasts, 1, func() {
		if time.Since(lastFailure) > 3*time.Second && where != "a directory" {
			failures.Add(1)
			fail()
			lastFailure = time.Now()
		}
	}, func() bool {
		for i := range fromEach {
			if fromEach[i].Load() == 0 {
				return false
			}
		}
		return next.Load() > 0 && counted.Len() >= 1_000_000
	})
	stop()
	clients.Wait()

	nodes, _ := counted.Check(t)
	t.Logf("report: servers on %s: %d firn serve and %d firn next one after the other, for %v: %d killed, %d told to stop, %d stopped up to 2.5s (the window is 1s), the store killed %d times: %d requests answered, %d not, %d of firn next not: %d IDs of %d node IDs, no duplicate",
		where, size, next.Load(), lasts, d.kills, d.ends, d.stops, failures.Load(), answered.Load(), refused.Load(), nextRefused.Load(), counted.Len(), nodes)
	if counted.Len() < 1_000_000 {
		t.Errorf("%d IDs, want a million", counted.Len())
	}
	for i := range fromEach {
		if fromEach[i].Load() == 0 {
			t.Errorf("server %d took no part", i)
		}
	}
	if next.Load() == 0 || d.kills == 0 || d.stops == 0 {
		t.Errorf("not all took part")
	}
}

// A second signal ends the server while it drains, and the log explains that.
func TestServeSecondSignal(t *testing.T) {
	p := startProcess(t, "127.0.0.1:0", "--node 7 --drain-delay 1h")
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.await(t, "a second signal stops the server at once, without giving node IDs back")
	for alive, begin := true, time.Now(); alive && time.Since(begin) < must.Patience; { // one that comes before the line's own is of no effect
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
			alive = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	p.stop()
	if by := p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); by != syscall.SIGTERM {
		t.Errorf("after the second signal it ended by %v, want SIGTERM", by)
	}
}
