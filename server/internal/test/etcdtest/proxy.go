//go:build unix

package etcdtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// A gate lets bytes pass, or holds them until it is opened again: they arrive
// late, as on a network, or never, if the connection is given up meanwhile. The
// zero gate is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed when it opens; nil while it is open
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if open && g.opened != nil {
		close(g.opened)
		g.opened = nil
	} else if !open && g.opened == nil {
		g.opened = make(chan struct{})
	}
}

// wait waits until it is open, and reports whether that was before the context
// ended.
func (g *gate) wait(ctx context.Context) bool {
	g.mu.Lock()
	c := g.opened
	g.mu.Unlock()
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

// A pipe is a connection between two members: the current gates of both
// directions, and what was already read from it.
type pipe struct {
	head            []byte
	request, answer func() *gate
}

// listen passes connections of other members on to a member, through the gates.
func (c *Cluster) listen(target string, to int) (address string) {
	c.t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(c.t)
	c.t.Cleanup(func() { _ = l.Close() })
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
	if err != nil || !p.request().wait(c.life) {
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
	ctx, end := context.WithCancel(c.life)
	context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })
	carry := func(to, from net.Conn, through func() *gate) {
		defer end()
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			if !through().wait(ctx) {
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
	var both sync.WaitGroup
	both.Go(func() { carry(out, in, p.request) })
	both.Go(func() { carry(in, out, p.answer) })
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
	var head bytes.Buffer // and what arrives with it
	_ = in.SetReadDeadline(time.Now().Add(10 * time.Second))
	first, err := http.ReadRequest(bufio.NewReader(io.TeeReader(in, &head)))
	if err != nil {
		return pipe{}, err
	}
	_ = in.SetReadDeadline(time.Time{})
	name := first.Header.Get("X-Server-From")
	if name == "" && strings.HasPrefix(first.URL.Path, "/raft") {
		return pipe{}, errProbe
	}
	// IDs are known once the cluster is ready for the first time.
	between := func(rule func(from int) *gate) func() *gate {
		return func() *gate {
			c.mu.Lock()
			from, ok := c.memberOf[name]
			c.mu.Unlock()
			if !ok {
				return new(gate)
			}
			return rule(from)
		}
	}
	return pipe{
		head:    head.Bytes(),
		request: between(func(from int) *gate { return &c.gates[from][to] }),
		answer:  between(func(from int) *gate { return &c.gates[to][from] }),
	}, nil
}
