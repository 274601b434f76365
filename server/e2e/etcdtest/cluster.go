//go:build unix

// Package etcdtest starts a real etcd of three processes for tests, on loopback, in
// a directory of its own, and does to it what happens to machines and networks.
package etcdtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
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

// Members is how many there are.
const Members = 3

// clients is where a connection comes from that is of no member.
const clients = Members

// A Cluster is an etcd of three members. What clients and members say to a member
// goes through a proxy, which can be cut. Its methods are safe for use by many
// goroutines at once, but for Kill and Start of one member.
type Cluster struct {
	t       testing.TB
	dir     string
	binary  string
	members [Members]member
	web     http.Client

	mu    sync.Mutex
	rules [Members + 1][Members]*gate // from, to
	names map[string]int              // X-Server-From of a member
}

type member struct {
	peer, client           string // as others see them: the proxies
	listenPeer, listenHTTP string // where it listens
	cmd                    *exec.Cmd
	ended                  chan struct{}
	log                    *bytes.Buffer
}

// A gate lets bytes pass, or holds them until it is opened again: they come late
// then, as on a network.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while it is open
	open   bool
}

func newGate() *gate {
	c := make(chan struct{})
	close(c)
	return &gate{opened: c, open: true}
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if open && !g.open {
		close(g.opened)
	} else if !open && g.open {
		g.opened = make(chan struct{})
	}
	g.open = open
}

func (g *gate) wait(done <-chan struct{}) bool {
	g.mu.Lock()
	c := g.opened
	g.mu.Unlock()
	select {
	case <-c:
		return true
	case <-done:
		return false
	}
}

// Start starts an etcd that ends with the test. It skips the test where etcd cannot
// be built.
func Start(t testing.TB) *Cluster {
	t.Helper()
	script := filepath.Join("..", "..", "scripts", "etcd.sh")
	if _, err := os.Stat(script); err != nil {
		script = filepath.Join("..", script)
	}
	var stderr bytes.Buffer
	build := exec.Command("sh", script)
	build.Stderr = &stderr
	out, err := build.Output()
	if err != nil {
		t.Skipf("SKIPPED: etcd does not build: %v: %s", err, stderr.String())
	}
	dir, err := os.MkdirTemp("", "firn-etcd")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, dir: dir, binary: strings.TrimSpace(string(out)), names: make(map[string]int)}
	c.web.Timeout = 2 * time.Second
	done := make(chan struct{})
	var proxies sync.WaitGroup
	var listeners []net.Listener
	t.Cleanup(func() {
		for i := range c.members {
			if c.members[i].cmd != nil {
				c.Kill(i)
			}
		}
		close(done)
		for _, l := range listeners {
			_ = l.Close()
		}
		proxies.Wait()
		c.web.CloseIdleConnections()
		_ = os.RemoveAll(dir)
	})
	for from := range c.rules {
		for to := range c.rules[from] {
			c.rules[from][to] = newGate()
		}
	}
	for i := range c.members {
		m := &c.members[i]
		m.listenPeer, m.listenHTTP = free(t), free(t)
		for _, p := range []struct {
			at, to string
			peer   bool
			seen   *string
		}{{"peer", m.listenPeer, true, &m.peer}, {"client", m.listenHTTP, false, &m.client}} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			listeners = append(listeners, l)
			*p.seen = l.Addr().String()
			proxies.Go(func() { c.proxy(l, p.to, i, p.peer, done) })
		}
	}
	for i := range c.members {
		c.Start(i)
	}
	c.Ready()
	return c
}

// free is an address on loopback that nobody listens on at this moment.
func free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// URL is that of a store in it.
func (c *Cluster) URL(prefix string) string {
	return "etcd://" + strings.Join(c.Endpoints(), ",") + "/" + prefix
}

// Endpoints are where clients find the members.
func (c *Cluster) Endpoints() []string {
	var all []string
	for i := range c.members {
		all = append(all, c.members[i].client)
	}
	return all
}

// Start starts a member that does not run.
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
		"--listen-client-urls", "http://"+m.listenHTTP, "--advertise-client-urls", "http://"+m.client,
		"--initial-cluster", strings.Join(peers, ","))
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	endWithParent(m.cmd)
	if err := m.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	m.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(m.cmd, m.ended)
}

// Kill ends a member with SIGKILL, also one that is stopped.
func (c *Cluster) Kill(i int) {
	_ = c.members[i].cmd.Process.Kill()
	<-c.members[i].ended
}

// Stop makes a member stand still, and Go go on.
func (c *Cluster) Stop(i int) { _ = c.members[i].cmd.Process.Signal(syscall.SIGSTOP) }

// Go lets a stopped member go on.
func (c *Cluster) Go(i int) { _ = c.members[i].cmd.Process.Signal(syscall.SIGCONT) }

// CutMember holds what a member says on connections of its own to another one.
func (c *Cluster) CutMember(from, to int, cut bool) { c.rules[from][to].set(!cut) }

// Isolate holds all that a member and the two others say to each other.
func (c *Cluster) Isolate(i int, cut bool) {
	for n := range Members {
		if n != i {
			c.CutMember(i, n, cut)
			c.CutMember(n, i, cut)
		}
	}
}

// CutClients holds what clients and a member say to each other.
func (c *Cluster) CutClients(to int, cut bool) { c.rules[clients][to].set(!cut) }

// post asks a member past its proxy.
func (c *Cluster) post(i int, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := c.web.Post("http://"+c.members[i].listenHTTP+path, "application/json", bytes.NewReader(body))
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

type status struct {
	Header struct {
		MemberID string `json:"member_id"`
		Revision string `json:"revision"`
	} `json:"header"`
	Leader string `json:"leader"`
}

// Leader finds which member is the leader, and the revision it is at; -1 if it is
// not known at this moment.
func (c *Cluster) Leader() (leader int, revision int64) {
	for i := range c.members {
		var s status
		if c.post(i, "/v3/maintenance/status", struct{}{}, &s) == nil && s.Leader == s.Header.MemberID {
			n, _ := strconv.ParseInt(s.Header.Revision, 10, 64)
			return i, n
		}
	}
	return -1, 0
}

// Compact forgets all revisions but the last ones, and gives the space back.
func (c *Cluster) Compact() error {
	leader, revision := c.Leader()
	if leader < 0 {
		return fmt.Errorf("there is no leader")
	}
	var nothing struct{}
	if err := c.post(leader, "/v3/kv/compaction", map[string]any{"revision": strconv.FormatInt(revision, 10), "physical": true}, &nothing); err != nil {
		return err
	}
	return c.post((leader+1)%Members, "/v3/maintenance/defragment", struct{}{}, &nothing)
}

// Ready waits until every member takes writes.
func (c *Cluster) Ready() {
	c.t.Helper()
	key := base64.StdEncoding.EncodeToString([]byte("ready"))
	for i := range c.members {
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			var answer struct {
				Header status `json:"-"`
			}
			err := c.post(i, "/v3/kv/put", map[string]string{"key": key, "value": key}, &answer)
			if err == nil {
				break
			}
			select {
			case <-c.members[i].ended:
				c.t.Fatalf("etcd %d ended: %v: %s", i, err, c.members[i].log)
			default:
			}
			if time.Since(begin) > time.Minute {
				c.t.Fatalf("etcd %d is not ready: %v: %s", i, err, c.members[i].log)
			}
		}
		var s status
		if c.post(i, "/v3/maintenance/status", struct{}{}, &s) == nil {
			id, _ := strconv.ParseUint(s.Header.MemberID, 10, 64)
			c.mu.Lock()
			c.names[strconv.FormatUint(id, 16)] = i
			c.mu.Unlock()
		}
	}
}

// proxy passes the connections to one address of a member.
func (c *Cluster) proxy(l net.Listener, target string, to int, peer bool, done chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() { c.pass(in, target, to, peer, done) })
	}
}

// pass copies both ways, through the gates of where the connection comes from.
func (c *Cluster) pass(in net.Conn, target string, to int, peer bool, done chan struct{}) {
	defer in.Close()
	var first []byte
	gateOf := func() *gate { return c.rules[clients][to] }
	if peer {
		// The first request says which member it is. Its ID is known a moment after
		// the first start.
		var err error
		var name string
		if first, name, err = sender(in); err != nil {
			return
		}
		gateOf = func() *gate {
			c.mu.Lock()
			from, ok := c.names[name]
			c.mu.Unlock()
			if !ok {
				return newGate()
			}
			return c.rules[from][to]
		}
	}
	if !gateOf().wait(done) {
		return
	}
	out, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	if _, err := out.Write(first); err != nil {
		return
	}
	var both sync.WaitGroup
	ended := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(ended); in.Close(); out.Close() }) }
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			defer end()
			buf := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(buf)
				if !gateOf().wait(ended) {
					return
				}
				if n > 0 {
					if _, err := way[1].Write(buf[:n]); err != nil {
						return
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	go func() {
		select {
		case <-done:
			end()
		case <-ended:
		}
	}()
	both.Wait()
}

// sender reads the head of the first request of a member, and who has sent it.
func sender(in net.Conn) (head []byte, name string, err error) {
	_ = in.SetReadDeadline(time.Now().Add(10 * time.Second))
	defer func() { _ = in.SetReadDeadline(time.Time{}) }()
	buf := make([]byte, 4096)
	for !bytes.Contains(head, []byte("\r\n\r\n")) && len(head) < 64<<10 {
		n, err := in.Read(buf)
		head = append(head, buf[:n]...)
		if err != nil {
			return nil, "", err
		}
	}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if key, value, ok := strings.Cut(line, ": "); ok && strings.EqualFold(key, "X-Server-From") {
			return head, value, nil
		}
	}
	return head, "", nil
}
