//go:build unix

// Package etcdtest starts a real three-process etcd for tests, on loopback in
// its own directory, and subjects it to failures of machines and networks.
package etcdtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Members is the number of members.
const Members = 3

// patience is for events that must happen eventually; it does not measure how
// long they take.
const patience = 10 * time.Minute

// A Cluster is an etcd of three members. All traffic to a member passes through
// proxies that can be cut. Its methods are safe for concurrent use, except
// Kill, Start and Ready.
type Cluster struct {
	// Clients is the link of all clients that use URL.
	Clients *Link

	t       testing.TB
	dir     string
	binary  string
	members [Members]member
	web     http.Client
	rules   [Members][Members]*gate // traffic from one member to another
	done    chan struct{}           // closed when the test has ended
	proxies sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	names     map[string]int
	listeners []net.Listener
}

type member struct {
	peer                   string // for other members: a proxy
	listenPeer, listenHTTP string // its own addresses
	cmd                    *exec.Cmd
	ended                  chan struct{}
	log                    *bytes.Buffer // read it only after the process has ended
}

var binary = sync.OnceValues(func() (string, error) {
	// The test's directory may be that of any package of the module.
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		script := filepath.Join(dir, "scripts", "etcd.sh")
		if _, err := os.Stat(script); err != nil {
			if dir == filepath.Dir(dir) {
				return "", errors.New("scripts/etcd.sh not found: the module is outside its repository")
			}
			continue
		}
		var stderr bytes.Buffer
		build := exec.Command("sh", script)
		build.Stderr = &stderr
		out, err := build.Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w: %s", script, err, bytes.TrimSpace(stderr.Bytes()))
		}
		return strings.TrimSpace(string(out)), nil
	}
})

// Binary returns the path of etcd. It skips the test if etcd cannot be built.
func Binary(t testing.TB) string {
	t.Helper()
	etcd, err := binary()
	if err != nil {
		t.Skipf("SKIPPED: NO ETCD TO TEST WITH, AND NONE CAN BE BUILT: %v", err)
	}
	return etcd
}

// Start starts an etcd that ends with the test. It skips the test if etcd
// cannot be built.
func Start(t testing.TB) *Cluster {
	t.Helper()
	if flag.Lookup("test.short") != nil && testing.Short() { // bench/ is not a test
		t.Skip("starts three members of etcd")
	}
	etcd := Binary(t)
	// Not t.TempDir, which fails the test if a file is still being written.
	dir, err := os.MkdirTemp("", "firn-etcd")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, dir: dir, binary: etcd, done: make(chan struct{}), names: make(map[string]int)}
	c.web.Timeout = 10 * time.Second
	t.Cleanup(func() {
		for i := range c.members {
			if c.members[i].cmd != nil {
				c.Kill(i)
			}
		}
		close(c.done)
		c.mu.Lock()
		for _, l := range c.listeners {
			_ = l.Close()
		}
		c.mu.Unlock()
		c.proxies.Wait()
		c.web.CloseIdleConnections()
		_ = os.RemoveAll(dir)
	})
	for from := range c.rules {
		for to := range c.rules[from] {
			c.rules[from][to] = newGate()
		}
	}
	free := freeAddresses(t, ownAddress(), 2*len(c.members))
	for i := range c.members {
		m := &c.members[i]
		m.listenPeer, m.listenHTTP = free[2*i], free[2*i+1]
		m.peer = c.listen(m.listenPeer, func(in net.Conn) (pipe, error) { return c.fromMember(in, i) })
	}
	c.Clients = c.NewLink()
	for i := range c.members {
		c.Start(i)
	}
	c.Ready()
	return c
}

// ownAddress returns a loopback address for this cluster alone, if there is
// more than one, so that other connections do not take the ports of members
// that are down.
func ownAddress() string {
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "127.0.0.1"
	}
	_ = l.Close()
	return host
}

// freeAddresses returns n different addresses of a host with free ports.
func freeAddresses(t testing.TB, host string, n int) (all []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // at the end: a port that is closed can be given out again
		all = append(all, l.Addr().String())
	}
	return all
}

// URL returns the URL of a store in the cluster, by way of Clients.
func (c *Cluster) URL(prefix string) string { return c.Clients.URL(prefix) }

// Start starts a member that is not running.
func (c *Cluster) Start(i int) {
	m := &c.members[i]
	var peers []string
	for n := range c.members {
		peers = append(peers, fmt.Sprintf("m%d=http://%s", n, c.members[n].peer))
	}
	m.log = new(bytes.Buffer)
	m.cmd = exec.Command(c.binary, "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(c.dir, strconv.Itoa(i)),
		"--log-level", "error", "--heartbeat-interval", "50", "--election-timeout", "500",
		"--listen-peer-urls", "http://"+m.listenPeer, "--initial-advertise-peer-urls", "http://"+m.peer,
		"--listen-client-urls", "http://"+m.listenHTTP, "--advertise-client-urls", "http://"+c.Clients.endpoints[i],
		"--initial-cluster", strings.Join(peers, ","))
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	EndWithParent(m.cmd)
	if err := m.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	m.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(m.cmd, m.ended)
}

// Kill kills a member with SIGKILL, even a paused one.
func (c *Cluster) Kill(i int) {
	_ = c.members[i].cmd.Process.Kill()
	<-c.members[i].ended
}

// Stop pauses a member, and Go resumes it.
func (c *Cluster) Stop(i int) { _ = c.members[i].cmd.Process.Signal(syscall.SIGSTOP) }

// Go resumes a paused member.
func (c *Cluster) Go(i int) { _ = c.members[i].cmd.Process.Signal(syscall.SIGCONT) }

// CutMember holds traffic from one member to another, whichever side made the
// connection.
func (c *Cluster) CutMember(from, to int, cut bool) { c.rules[from][to].set(!cut) }

// Isolate holds all traffic between a member and the other two.
func (c *Cluster) Isolate(i int, cut bool) {
	for n := range Members {
		if n != i {
			c.CutMember(i, n, cut)
			c.CutMember(n, i, cut)
		}
	}
}

// post sends a request to a member past its proxies, or to another address.
func (c *Cluster) post(address, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := c.web.Post("http://"+address+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 1000))
		return fmt.Errorf("%s: %s", r.Status, text)
	}
	return json.NewDecoder(r.Body).Decode(answer)
}

// put writes a key by way of an address.
func (c *Cluster) put(address, key, value string) error {
	in64 := base64.StdEncoding.EncodeToString
	var answer struct{}
	return c.post(address, "/v3/kv/put", map[string]string{"key": in64([]byte(key)), "value": in64([]byte(value))}, &answer)
}

type status struct {
	Header struct {
		MemberID string `json:"member_id"`
		Revision string `json:"revision"`
	} `json:"header"`
	Leader string `json:"leader"`
	Term   string `json:"raftTerm"`
}

// Leader returns the leader and its revision; -1 if it is unknown at the
// moment. An isolated member may still believe that it is the leader; of two
// leaders, the newer one is returned.
func (c *Cluster) Leader() (leader int, revision int64) {
	var found [Members]status
	var errs [Members]error
	var all sync.WaitGroup
	for i := range c.members {
		all.Go(func() {
			errs[i] = c.post(c.members[i].listenHTTP, "/v3/maintenance/status", struct{}{}, &found[i])
		})
	}
	all.Wait()
	leader = -1
	var newest uint64
	for i, s := range found {
		if errs[i] != nil || s.Leader != s.Header.MemberID {
			continue
		}
		if term, _ := strconv.ParseUint(s.Term, 10, 64); term > newest {
			leader, newest = i, term
			revision, _ = strconv.ParseInt(s.Header.Revision, 10, 64)
		}
	}
	return leader, revision
}

// WaitLeader is Leader, once there is one.
func (c *Cluster) WaitLeader() (leader int, revision int64) {
	c.t.Helper()
	c.until("a leader", func() error {
		if leader, revision = c.Leader(); leader < 0 {
			return errors.New("no leader")
		}
		return nil
	})
	return leader, revision
}

// Compact forgets all revisions except the last ones. It needs a majority.
func (c *Cluster) Compact() {
	c.t.Helper()
	var nothing struct{}
	c.until("compaction", func() error {
		leader, revision := c.WaitLeader()
		return c.post(c.members[leader].listenHTTP, "/v3/kv/compaction",
			map[string]any{"revision": strconv.FormatInt(revision, 10), "physical": true}, &nothing)
	})
}

// Defragment makes a member rewrite its database, during which it does not
// respond.
func (c *Cluster) Defragment(i int) {
	c.t.Helper()
	var nothing struct{}
	c.until("defragmentation", func() error {
		return c.post(c.members[i].listenHTTP, "/v3/maintenance/defragment", struct{}{}, &nothing)
	})
}

// until repeats do until it succeeds, or the test's patience ends.
func (c *Cluster) until(what string, do func() error) {
	c.t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			c.t.Fatalf("etcd: %s: nothing for %v: %v", what, patience, err)
		}
	}
}

// Ready waits until every member takes writes.
func (c *Cluster) Ready() {
	c.t.Helper()
	for i := range c.members {
		m := &c.members[i]
		c.until(fmt.Sprintf("member %d is ready", i), func() error {
			select {
			case <-m.ended:
				if !strings.Contains(m.log.String(), "address already in use") {
					c.t.Fatalf("etcd %d ended: %s", i, m.log)
				}
				c.Start(i) // the user of the port may go away
			default:
			}
			if err := c.put(m.listenHTTP, "ready", "ready"); err != nil {
				return err
			}
			var s status
			if err := c.post(m.listenHTTP, "/v3/maintenance/status", struct{}{}, &s); err != nil {
				return err
			}
			id, err := strconv.ParseUint(s.Header.MemberID, 10, 64)
			if err != nil {
				return err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.names[strconv.FormatUint(id, 16)] = i
			return nil
		})
	}
}
