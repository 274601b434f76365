//go:build unix

package etcdtest

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"
	"time"
)

// A gate lets bytes pass, or holds them until it is opened again: they arrive
// late, as on a network, or never, if the connection is given up meanwhile.
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

// always is a gate that is open.
var always = newGate()

// A pipe is a connection between two members: the current gates of both
// directions, and what was already read from it.
type pipe struct {
	head            []byte
	request, answer func() *gate
}

// listen passes connections of other members on to a member, through the gates.
func (c *Cluster) listen(target string, to int) (address string) {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.listeners = append(c.listeners, l)
	c.mu.Unlock()
	c.proxies.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			c.proxies.Go(func() { c.pass(in, target, to) })
		}
	})
	return l.Addr().String()
}

// pass copies in both directions.
func (c *Cluster) pass(in net.Conn, target string, to int) {
	defer in.Close()
	p, err := c.fromMember(in, to)
	if err != nil || !p.request().wait(c.done) {
		return
	}
	out, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	if _, err := out.Write(p.head); err != nil {
		return
	}
	ended := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(ended); in.Close(); out.Close() }) }
	var both sync.WaitGroup
	carry := func(to, from net.Conn, through func() *gate) {
		defer end()
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			if !through().wait(ended) {
				return
			}
			if n > 0 {
				if _, err := to.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	both.Go(func() { carry(out, in, p.request) })
	both.Go(func() { carry(in, out, p.answer) })
	both.Go(func() {
		select {
		case <-c.done:
			end()
		case <-ended:
		}
	})
	both.Wait()
}

var errProbe = errors.New("a probe")

// fromMember begins a connection to the peer port of a member. Traffic between
// the members of etcd begins with a request that has the sender's ID. There are
// two other kinds of connections: queries for versions and the like, on
// separate connections; and probes, which only measure and are logged, but
// whose connections may be reused for messages. Probes are refused, so that no
// message bypasses the gates.
func (c *Cluster) fromMember(in net.Conn, to int) (pipe, error) {
	head, err := firstHead(in)
	if err != nil {
		return pipe{}, err
	}
	name := ""
	lines := strings.Split(string(head), "\r\n")
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, ": "); ok && strings.EqualFold(key, "X-Server-From") {
			name = value
		}
	}
	if name == "" && strings.Contains(lines[0], " /raft") {
		return pipe{}, errProbe
	}
	// IDs are known once the cluster is ready for the first time.
	between := func(rule func(from int) *gate) func() *gate {
		return func() *gate {
			c.mu.Lock()
			from, ok := c.memberOf[name]
			c.mu.Unlock()
			if !ok {
				return always
			}
			return rule(from)
		}
	}
	return pipe{
		head:    head,
		request: between(func(from int) *gate { return c.gates[from][to] }),
		answer:  between(func(from int) *gate { return c.gates[to][from] }),
	}, nil
}

// firstHead reads the head of the first request, and what arrives with it.
func firstHead(in net.Conn) (head []byte, err error) {
	_ = in.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, 4096)
	for !bytes.Contains(head, []byte("\r\n\r\n")) && len(head) < 64<<10 {
		n, err := in.Read(b)
		head = append(head, b[:n]...)
		if err != nil {
			return nil, err
		}
	}
	return head, in.SetReadDeadline(time.Time{})
}
