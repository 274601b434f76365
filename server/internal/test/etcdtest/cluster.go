//go:build unix

// Package etcdtest starts a real three-process etcd for tests, on loopback in
// its own directory, and subjects it to failures of machines and networks.
package etcdtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// Members is the number of members.
const Members = 3

// A Cluster is an etcd of three members. All traffic to a member passes through
// proxies that can be cut. Its methods are safe for concurrent use, except
// Kill, Start and Ready.
type Cluster struct {
	// Clients are the links of clients that use URL, to each of the members.
	Clients [Members]*proc.Link

	t       testing.TB
	dir     string
	binary  string
	members [Members]member
	web     http.Client
	gates   [Members][Members]gate // traffic from one member to another
	life    context.Context        // ends with the test
	proxies sync.WaitGroup

	mu       sync.Mutex     // guards memberOf
	memberOf map[string]int // by the ID that etcd gave it
}

type member struct {
	peer                   string // for other members: a proxy
	listenPeer, listenHTTP string // its own addresses
	*proc.Process
}

// Start starts an etcd that ends with the test. It skips the test if etcd
// cannot be built.
func Start(t testing.TB) *Cluster {
	t.Helper()
	etcd := proc.Built(t, "etcd.sh")
	// Not t.TempDir, which fails the test if a file is still being written.
	dir := must.Get(os.MkdirTemp("", "firn-etcd"))(t)
	life, end := context.WithCancel(context.Background())
	c := &Cluster{t: t, dir: dir, binary: etcd, life: life, memberOf: make(map[string]int)}
	c.web.Timeout = 10 * time.Second
	t.Cleanup(func() {
		for i := range c.members {
			if c.members[i].Process != nil {
				c.Kill(i)
			}
		}
		end()
		c.proxies.Wait()
		c.web.CloseIdleConnections()
		_ = os.RemoveAll(dir)
	})
	for i := range c.members {
		m := &c.members[i]
		m.listenPeer, m.listenHTTP = nettest.FreeAddress(t), nettest.FreeAddress(t)
		m.peer = c.listen(m.listenPeer, i)
		c.Clients[i] = proc.NewLink(t, m.listenHTTP)
	}
	for i := range c.members {
		c.Start(i)
	}
	c.Ready()
	return c
}

// URL returns the URL of a store in the cluster, by way of Clients.
func (c *Cluster) URL(prefix string) string {
	var endpoints []string
	for _, l := range c.Clients {
		endpoints = append(endpoints, l.Address)
	}
	return "etcd://" + strings.Join(endpoints, ",") + "/" + prefix
}

// Start starts a member that is not running.
func (c *Cluster) Start(i int) {
	m := &c.members[i]
	var peers []string
	for n := range c.members {
		peers = append(peers, fmt.Sprintf("m%d=http://%s", n, c.members[n].peer))
	}
	m.Process = proc.Start(c.t, c.binary, "--name", fmt.Sprintf("m%d", i), "--data-dir",
		filepath.Join(c.dir, strconv.Itoa(i)),
		"--log-level", "error", "--heartbeat-interval", "50", "--election-timeout", "500",
		"--listen-peer-urls", "http://"+m.listenPeer, "--initial-advertise-peer-urls", "http://"+m.peer,
		"--listen-client-urls", "http://"+m.listenHTTP, "--advertise-client-urls", "http://"+c.Clients[i].Address,
		"--initial-cluster", strings.Join(peers, ","))
}

// Kill kills a member with SIGKILL, even a paused one.
func (c *Cluster) Kill(i int) { c.members[i].Kill() }

// Stop pauses a member, and Continue resumes it.
func (c *Cluster) Stop(i int) { c.members[i].Signal(syscall.SIGSTOP) }

// Continue resumes a paused member.
func (c *Cluster) Continue(i int) { c.members[i].Signal(syscall.SIGCONT) }

// CutMember holds traffic from one member to another, whichever side made the
// connection.
func (c *Cluster) CutMember(from, to int, cut bool) { c.gates[from][to].set(!cut) }

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

// until repeats do until it succeeds, or the test's must.Patience ends.
func (c *Cluster) until(what string, do func() error) {
	c.t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Since(begin) > must.Patience {
			c.t.Fatalf("etcd: %s: nothing for %v: %v", what, must.Patience, err)
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
			case <-m.Ended:
				if !strings.Contains(m.Log(), "address already in use") {
					c.t.Fatalf("etcd %d ended: %s", i, m.Log())
				}
				c.Start(i) // the user of the port may go away
			default:
			}
			key := base64.StdEncoding.EncodeToString([]byte("ready"))
			var s status
			if err := c.post(m.listenHTTP, "/v3/kv/put", map[string]string{"key": key, "value": key}, &s); err != nil {
				return err
			}
			id, err := strconv.ParseUint(s.Header.MemberID, 10, 64)
			if err != nil {
				return err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.memberOf[strconv.FormatUint(id, 16)] = i
			return nil
		})
	}
}
