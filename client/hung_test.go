package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// A gate stops servers in every way that leaves their connections open.
type gate struct {
	how   string // "silent", "half", "connect" or "name"
	mu    sync.Mutex
	open  chan struct{} // closed when the servers run
	conns []net.Conn    // of clients; guarded by the network's mu
}

func newGate(how string) *gate {
	g := &gate{how: how, open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

func (g *gate) stopped() bool {
	select {
	case <-g.wait():
		return false
	default:
		return true
	}
}

// A gatedConn is the server's end of a connection.
type gatedConn struct {
	net.Conn
	*gate
}

func (c gatedConn) Write(b []byte) (n int, err error) {
	if c.stopped() {
		switch c.how {
		case "half":
			if n, err = c.Conn.Write(b[:len(b)/2]); err != nil {
				return n, err
			}
			<-c.wait()
		case "silent":
			<-c.wait()
		}
	}
	m, err := c.Conn.Write(b[n:])
	return n + m, err
}

// A gatedHandler does not answer for the name orders.
type gatedHandler struct {
	http.Handler
	*gate
}

func (h gatedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.how == "name" && strings.Contains(r.URL.Path, "/orders/") {
		<-h.wait()
	}
	h.Handler.ServeHTTP(w, r)
}

// kindsOfCalls get IDs in every way.
var kindsOfCalls = map[string]func(ctx context.Context, q *Sequencer) ([]firn.ID, error){
	"Next": func(ctx context.Context, q *Sequencer) ([]firn.ID, error) {
		id, err := q.Next(ctx)
		return []firn.ID{id}, err
	},
	"Fill": func(ctx context.Context, q *Sequencer) ([]firn.ID, error) {
		ids := make([]firn.ID, 40)
		return ids, q.Fill(ctx, ids)
	},
	"NextBatch": func(ctx context.Context, q *Sequencer) ([]firn.ID, error) {
		b, err := q.NextBatch(ctx, 10)
		return slices.Collect(b.All()), err
	},
}

// With servers that hang in any way, a call waits for each of them once before
// it asks another one. After that only probes are sent to them, until they
// answer, and no call waits. No ID comes twice.
func TestHungServers(t *testing.T) {
	for _, how := range []string{"silent", "half", "connect", "name"} {
		for kind, call := range kindsOfCalls {
			for i := range 4 {
				scheme, hung := []string{"http", "firn"}[i%2], 1+i/2
				t.Run(fmt.Sprintf("%s, %s over %s, %d of 3", how, kind, scheme, hung), func(t *testing.T) {
					inBubble(t, func(t *testing.T, n *network) {
						g := newGate(how)
						defer g.resume()
						var handlers []TestHandler
						for i, host := range []string{"a", "b", "c"} {
							var own *gate
							if i < hung {
								own = g
							}
							handlers = append(handlers, n.gated(t, scheme, host, uint64(i+1), "default", own))
						}
						c := n.client(t, Config{Servers: []string{scheme + "://a", scheme + "://b", scheme + "://c"}, Prefetch: &firn.PrefetchOptions{Count: 10, MaxCount: 10}})
						q := c.Sequencer("orders")
						all := make(seen)
						// calls makes calls for a while, and returns how many
						// of them waited and how long the longest took.
						calls := func(d time.Duration) (waited int, longest time.Duration) {
							for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
								start := time.Now()
								all.add(t, must.Get(call(t.Context(), q))(t)...)
								if took := time.Since(start); took > 0 {
									waited++
									longest = max(longest, took)
								}
							}
							return waited, longest
						}
						requests := func(from, to int) (sum int) {
							for _, h := range handlers[from:to] {
								sum += h.Requests()
							}
							return sum
						}
						if waited, _ := calls(10 * time.Second); waited > 0 {
							t.Fatalf("%d calls waited with three servers", waited)
						}
						g.stop()
						if how == "connect" { // no connection is left
							n.mu.Lock()
							for _, conn := range g.conns {
								conn.Close()
							}
							n.mu.Unlock()
						}
						waited, longest := calls(45 * time.Second)
						if longest > time.Duration(hung)*minHedgeAfter || waited > hung {
							t.Errorf("%d calls waited, one of them %v, want each hung server to cost one %v", waited, longest, minHedgeAfter)
						}
						for i, err := range c.ServerErrors()[:hung] {
							if err == nil || !strings.Contains(err.Error(), `"orders" at `+c.config.Servers[i]) {
								t.Errorf("a hung server is left out because of %v", err)
							}
						}
						g.resume()
						if waited, _ := calls(20 * time.Second); waited > 0 {
							t.Errorf("%d calls waited after the server had recovered", waited)
						}
						before := requests(0, hung)
						calls(30 * time.Second)
						for _, err := range c.ServerErrors() {
							if err != nil {
								t.Errorf("after the recovery: %v", err)
							}
						}
						if got := requests(0, hung) - before; got == 0 {
							t.Errorf("servers that recovered had %d requests", got)
						}
						taken := uint64(0)
						for _, h := range handlers {
							taken += h.Taken()
						}
						// Taken by a hung server, and never received: one
						// request each time it was asked.
						if s := q.Stats(); s.IDs > taken || s.Discarded == 0 || how == "connect" && s.IDs != taken || kind == "NextBatch" && uint64(len(all)) != s.IDs-s.Discarded {
							t.Errorf("%d IDs used, %d made, %+v", len(all), taken, s)
						}
					})
				})
			}
		}
	}
}

// If all servers hang, a call ends with its context or Patience, and the error
// names each of them. They are used as soon as they answer.
func TestAllServersHang(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		g := newGate("silent")
		defer g.resume()
		servers := []string{"http://a", "http://b", "firn://c"}
		for i, server := range servers {
			scheme, host, _ := strings.Cut(server, "://")
			n.gated(t, scheme, host, uint64(i+1), "default", g)
		}
		g.stop()
		q := n.client(t, Config{Servers: servers}).Sequencer("orders")
		for _, limit := range []time.Duration{time.Second, 3 * time.Second, time.Hour} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			_, err := q.NextBatch(ctx, 10)
			if took := time.Since(start); took != min(limit, 10*time.Second) || !errors.Is(err, context.DeadlineExceeded) || limit == time.Hour != strings.Contains(err.Error(), "no server gives") {
				t.Errorf("NextBatch() = %v after %v", err, took)
			}
			for _, server := range servers {
				if want := `"orders" at ` + server + ": no answer after "; !strings.Contains(err.Error(), want) {
					t.Errorf("NextBatch() = %v, want %q", err, want)
				}
			}
		}
		time.AfterFunc(7*time.Second, g.resume)
		start := time.Now()
		if _, err := q.NextBatch(t.Context(), 10); err != nil || time.Since(start) > 8*time.Second {
			t.Errorf("NextBatch() = %v after %v, want IDs as soon as a server answers", err, time.Since(start))
		}
	})
}

// Servers that always take long are not suspects, and another one is asked
// beside them ever more rarely.
func TestSlowServers(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		var handlers []TestHandler
		for i, host := range []string{"a", "b"} {
			h := n.node(t, host, uint64(i+1), "default")
			h.Delay(time.Second)
			defer h.Close()
			handlers = append(handlers, h)
		}
		q := n.client(t, Config{Servers: []string{"http://a", "http://b"}}).Sequencer("orders")
		requests := func() int { return handlers[0].Requests() + handlers[1].Requests() }
		for range 100 {
			mustBatch(t, q, 10)
		}
		before := requests()
		for range 100 {
			mustBatch(t, q, 10)
		}
		if got := requests() - before; got != 100 {
			t.Errorf("100 calls made %d requests", got)
		}
		// It is not a longer delay that a hung server gets.
		handlers[0].Delay(0)
		handlers[1].Delay(0)
		for range 200 {
			mustBatch(t, q, 10)
		}
		handlers[0].Delay(time.Hour)
		start := time.Now()
		for range 10 {
			mustBatch(t, q, 10)
		}
		if took := time.Since(start); took > minHedgeAfter {
			t.Errorf("a hung server cost %v", took)
		}
	})
}

// While a request is pending at a hung server, the call returns to servers that
// failed as soon as their pauses have passed. What a slow server says about
// itself counts, also if another one has answered meanwhile.
func TestHungAndFailing(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		hung := n.node(t, "a", 1, "default")
		defer hung.Close()
		hung.Delay(time.Hour)
		start := time.Now()
		for _, host := range []string{"b", "c"} {
			h := NewTestHandler(t, 2, "default")
			n.serve(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if time.Since(start) < minHedgeAfter*3/2 {
					w.WriteHeader(503)
					return
				}
				h.ServeHTTP(w, r)
			}))
		}
		for range 10 {
			start = time.Now()
			q := n.client(t, Config{Servers: []string{"http://a", "http://b", "http://c"}}).Sequencer("orders")
			if _, err := q.NextBatch(t.Context(), 10); err != nil || time.Since(start) > time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
	})
	inBubble(t, func(t *testing.T, n *network) {
		n.serve("a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(minHedgeAfter * 3 / 2)
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(503)
		}))
		b := n.node(t, "b", 1, "default")
		b.Delay(minHedgeAfter)
		defer b.Close()
		c := n.client(t, Config{Servers: []string{"http://a", "http://b"}})
		for range 20 {
			if c.ServerErrors()[0] != nil {
				break
			}
			mustBatch(t, c.Sequencer("orders"), 10)
		}
		var said *Error
		if h := c.set.health[0]; !errors.As(h.err, &said) || said.Status != 503 || time.Until(h.probeAfter) < 30*time.Second {
			t.Errorf("%+v, want what it said", h)
		}
	})
	// A server that is busy for this sequencer is left out as long as it asks.
	inBubble(t, func(t *testing.T, n *network) {
		refused := 0
		n.serve("a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			refused++
			problem(w, 503, "60", `{"type":"urn:firn:problem:busy"}`)
		}))
		n.node(t, "b", 1, "default")
		q := n.client(t, Config{Servers: []string{"http://a", "http://b"}}).Sequencer("orders")
		for range 100 {
			mustBatch(t, q, 10)
		}
		if refused != 1 {
			t.Errorf("%d requests to a server that asked for a minute, want 1", refused)
		}
	})
}

// Close ends a probe, and a request that another one made superfluous.
func TestCloseWhileHung(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		n.node(t, "a", 1, "default")
		hung := n.node(t, "b", 2, "default")
		hung.Delay(time.Hour)
		defer hung.Close()
		c := n.client(t, Config{Servers: []string{"http://a", "http://b"}})
		q := c.Sequencer("orders")
		for hung.Requests() < 2 {
			mustBatch(t, q, 10)
			time.Sleep(10 * time.Millisecond)
		}
		for range 100 { // one probe at a time
			mustBatch(t, q, 10)
			time.Sleep(10 * time.Millisecond)
		}
		if n := hung.Requests(); n != 2 {
			t.Errorf("%d requests to a hung server, want one and a probe", n)
		}
		start := time.Now()
		if err := q.Close(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("Close() = %v after %v", err, time.Since(start))
		}
	})
}

// gated starts a server, at a URL of this scheme, that g can stop.
func (n *network) gated(t *testing.T, scheme, host string, node uint64, layout string, g *gate) TestHandler {
	t.Helper()
	h := NewTestHandler(t, node, layout)
	handler := http.Handler(h)
	if g != nil {
		handler = gatedHandler{h, g}
	}
	if scheme == "firn" {
		n.serveRESP(t, host, &respServer{TestHandler: h, handler: handler})
	} else {
		n.serve(host, handler)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host].gate = g
	return h
}
