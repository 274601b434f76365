package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/httpapi"
	"github.com/firnid/firn/server/listen"
	"github.com/firnid/firn/server/nettest"
	"github.com/firnid/firn/server/respapi"
	"github.com/firnid/firn/server/service"
)

// A fickle Backend has sequencers that do what a test wants.
type fickle struct {
	layout firn.Layout
	err    atomic.Pointer[error]
	hang   atomic.Bool

	made *firn.Generator
	wide *firn.Generator128
}

func newFickle(t *testing.T, layout string) *fickle {
	t.Helper()
	f := &fickle{layout: firn.MustParseLayout(layout)}
	var err error
	grant, o := firn.Grant{Node: 1, From: time.Now()}, &firn.Options{MaxAhead: time.Second}
	if f.layout.Bits() == 128 {
		f.wide, err = firn.NewGenerator128(f.layout, grant, o)
	} else {
		f.made, err = firn.NewGenerator(f.layout, grant, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fickle) Sequencer(context.Context, string) (service.Sequencer, error) {
	s := service.Sequencer{Layout: f.layout}
	if f.made != nil {
		s.Source = fickleSource[firn.ID]{f, f.made}
	} else {
		s.Source128 = fickleSource[firn.ID128]{f, f.wide}
	}
	return s, nil
}

func (f *fickle) Opened(string) (service.Sequencer, bool) { return service.Sequencer{}, false }
func (f *fickle) Ready(context.Context) error             { return nil }
func (f *fickle) Admin() service.Administrator            { return nil }

type fickleSource[I firn.AnyID[I]] struct {
	*fickle
	from firn.SourceOf[I]
}

func (s fickleSource[I]) NextBatch(ctx context.Context, n int) (b firn.BatchOf[I], err error) {
	if s.hang.Load() {
		<-ctx.Done()
		return b, ctx.Err()
	}
	if err := s.err.Load(); err != nil {
		return b, *err
	}
	return s.from.NextBatch(ctx, n)
}

// fickleLimit is how long a request may take. A sequencer that hangs does so
// until then, or until its client has gone.
const fickleLimit = 5 * time.Second

// serveFickle serves it on one port until the test ends. It returns the
// address, and a function that counts the requests for IDs over RESP.
func serveFickle(t *testing.T, f *fickle, limits service.Limits, anyHost bool) (address string, resp func() int64) {
	t.Helper()
	var commands atomic.Int64
	observe := func(_ string, n, _ int, _ time.Duration, _ bool) { commands.Add(int64(n)) }
	s := &Server{resp: respapi.NewServer(respapi.Config{Backend: f, Limit: fickleLimit, MaxCount: limits.WithDefaults().Count, Observe: observe})}
	web := httpapi.NewServer(httpapi.NewHandler(httpapi.Config{Backend: f, Limit: fickleLimit, Limits: limits, RESP: s.respOf, AnyHost: anyHost}))
	web.ConnContext = withConn
	mux := listen.New(nettest.Listen(t), listen.Config{})
	var all sync.WaitGroup
	all.Go(func() { _ = mux.Serve() })
	all.Go(func() { _ = web.Serve(mux.Listener(listen.HTTP)) })
	all.Go(func() { _ = s.resp.Serve(mux.Listener(listen.RESP)) })
	t.Cleanup(func() {
		_, _, _ = mux.Close(), web.Close(), s.resp.Close()
		all.Wait()
	})
	return mux.Addr().String(), commands.Load
}

// A lab is a server and a client of it, over one of the transports.
type lab struct {
	*testing.T
	overRESP bool
	address  string
	resp     func() int64 // count over RESP: requests, or connections of a server with TLS
	backend  *fickle
	limits   service.Limits
	roots    *tls.Config // for a server with TLS
	log      strings.Builder
	said     strings.Builder // the outcome, which must be the same over both
}

// start starts the server.
func (l *lab) start(layout string) {
	l.Helper()
	l.backend = newFickle(l.T, layout)
	l.address, l.resp = serveFickle(l.T, l.backend, l.limits, false)
}

// startGuarded starts a server with TLS, and with tokens if tokens is not
// empty.
func (l *lab) startGuarded(tokens string) {
	l.Helper()
	s, address, roots, _ := guarded(l.T, tokens, nil)
	l.address, l.roots, l.resp = address, roots, func() int64 { return s.open(listen.RESP) }
}

// client makes a client of the server. If it speaks RESP it has already begun
// to.
func (l *lab) client(c client.Config) *client.Client {
	l.Helper()
	c.Servers = []string{"http://" + l.address}
	c.Log = slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	if l.roots != nil {
		c.Servers[0] = "https://" + l.address
		c.TLS = l.roots
	}
	if !l.overRESP {
		c.HTTPClient, c.TLS = &http.Client{Transport: &http.Transport{TLSClientConfig: l.roots.Clone()}}, nil
	}
	made, err := client.New(c)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if err := made.Close(context.Background()); err != nil {
			l.Error(err)
		}
		if c.HTTPClient != nil {
			c.HTTPClient.CloseIdleConnections()
		}
	})
	for deadline := time.Now().Add(nettest.Patience); ; time.Sleep(time.Millisecond) {
		var err error
		if l.backend != nil && l.backend.wide != nil {
			_, err = made.Sequencer128("orders").NextBatch(l.Context(), 1)
		} else {
			_, err = made.Sequencer("orders").NextBatch(l.Context(), 1)
		}
		if err != nil {
			l.Fatal(err)
		}
		if !l.overRESP || l.resp() > 0 {
			return made
		}
		if time.Now().After(deadline) {
			l.Fatal("the client does not speak RESP")
		}
	}
}

// ask requests a batch and notes the outcome.
func (l *lab) ask(c *client.Client, name string, n int) {
	b, err := c.Sequencer(name).NextBatch(l.Context(), n)
	l.note(fmt.Sprintf("%s %d", name, n), b.Len(), err)
}

// note records an outcome, without what differs between two servers.
func (l *lab) note(what string, ids int, err error) {
	text := "<nil>"
	if err != nil {
		text = strings.ReplaceAll(err.Error(), l.address, "SERVER")
	}
	fmt.Fprintf(&l.said, "%s: %d IDs, %s\n", what, ids, text)
	if said, ok := errors.AsType[*client.Error](err); ok {
		fmt.Fprintf(&l.said, "\t%d %q %q hint %q retry %v\n", said.Status, said.Kind, said.Detail, said.Hint, said.RetryAfter)
	}
	for name, target := range map[string]error{"exhausted": firn.ErrExhausted, "no grant": firn.ErrGrantOver, "time over": firn.ErrTimeOver, "too large": firn.ErrBatchTooLarge, "deadline": context.DeadlineExceeded, "cancelled": context.Canceled} {
		if errors.Is(err, target) {
			fmt.Fprintf(&l.said, "\tis %s\n", name)
		}
	}
}

// scenarios must have the same outcome over HTTP and RESP; says has parts of
// it.
var scenarios = map[string]struct {
	do   func(l *lab)
	want []string
}{
	"runs": {func(l *lab) {
		l.start("default")
		c := l.client(client.Config{})
		for _, n := range []int{1, 100, 5000, 100_000} {
			l.ask(c, "orders", n)
		}
		_, err := c.Sequencer128("orders").NextBatch(l.Context(), 2)
		l.note("128", 0, err)
	}, []string{"orders 100000: 100000 IDs, <nil>", "use the Client's method Sequencer\n"}},
	"no runs": {func(l *lab) {
		l.start("uuidv7")
		c := l.client(client.Config{})
		for _, n := range []int{1, 100, 5000} {
			b, err := c.Sequencer128("orders").NextBatch(l.Context(), n)
			l.note("uuidv7", b.Len(), err)
		}
		l.ask(c, "orders", 2)
	}, []string{"uuidv7: 5000 IDs, <nil>", "use the Client's method Sequencer128\n"}},
	"limits and names": {func(l *lab) {
		l.limits.Count = 500
		l.start("default")
		c := l.client(client.Config{})
		l.ask(c, "orders", 500)
		l.ask(c, "orders", 501)
		l.ask(c, "-orders", 1)
		l.ask(c, "a b", 1)
		l.ask(c, "a/b", 1)
		l.ask(c, strings.Repeat("x", 300), 1)
	}, []string{"orders 500: 500 IDs, <nil>", "400 \"bad-parameter\"", "400 \"bad-name\""}},
	"kinds": {func(l *lab) {
		l.start("default")
		c := l.client(client.Config{Patience: -1})
		for kind := range service.Kinds() {
			var err error = &service.PeerError{Kind: kind, Detail: "the reason of " + kind.String(), Retry: 7 * time.Second}
			l.backend.err.Store(&err)
			// Another sequencer each time, because the pauses of one do not end here.
			l.ask(c, "of-"+kind.String(), 3)
		}
		l.backend.err.Store(nil)
		l.ask(c, "orders", 3)
		st := c.Servers()[0]
		l.note(fmt.Sprintf("%d failures", st.Failures), 0, st.Err)
	}, []string{
		`503 "busy" "answer of another server`, "retry 7s", "is exhausted", `409 "detached"`, `410 "destroyed"`, `500 "time-over"`, "is time over", `503 "no-grant"`,
		`503 "nodes-exhausted"`, `503 "store-unavailable"`, `503 "clock-ahead"`, `500 "bad-record"`, `503 "recreated"`, `400 "batch-too-large"`, "is too large", `500 "internal"`, "orders 3: 3 IDs, <nil>", "0 failures: 0 IDs, <nil>",
	}},
	"patience": {func(l *lab) {
		l.start("default")
		c := l.client(client.Config{Patience: 10 * time.Second})
		// It returns at once: the server is not available within Patience.
		var err error = &service.PeerError{Kind: service.NoGrant, Detail: "no", Retry: time.Minute}
		l.backend.err.Store(&err)
		l.ask(c, "orders", 3)
		l.note("stats", int(c.Sequencer("orders").Stats().Failures), c.Sequencer("orders").Stats().Err)
	}, []string{"no server gives IDs of orders", "is no grant", "stats: 1 IDs"}},
	"timeout": {func(l *lab) {
		l.start("default")
		c := l.client(client.Config{Timeout: 2 * time.Second, Patience: -1}) // enough for the answers before and after
		l.backend.hang.Store(true)
		l.ask(c, "orders", 3)
		st := c.Servers()[0]
		l.note(fmt.Sprintf("%d failures", st.Failures), 0, st.Err)
		l.backend.hang.Store(false)
		time.Sleep(time.Second)
		l.ask(c, "orders", 3)
	}, []string{"orders at http://SERVER: context deadline exceeded", "1 failures", "orders 3: 3 IDs, <nil>"}},
	"a caller that gives up": {func(l *lab) {
		l.start("default")
		c := l.client(client.Config{Timeout: time.Minute}) // after a quarter of it the server would have failed
		l.backend.hang.Store(true)
		ctx, cancel := context.WithCancel(l.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err := c.Sequencer("orders").NextBatch(ctx, 3)
		l.note("cancelled", 0, err)
		ctx, cancel = context.WithTimeout(l.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = c.Sequencer("orders").NextBatch(ctx, 3)
		l.note("late", 0, err)
		l.backend.hang.Store(false)
		l.ask(c, "others", 3)
		st := c.Servers()[0]
		l.note(fmt.Sprintf("%d failures", st.Failures), 0, st.Err)
	}, []string{"is cancelled", "is deadline", "others 3: 3 IDs, <nil>", "0 failures"}},
	"tokens": {func(l *lab) {
		ofAll, hashOfAll := auth.NewToken()
		ofOrders, hashOfOrders := auth.NewToken()
		l.startGuarded("tokens:\n- {name: a, role: generate, sha256: " + hashOfAll + "}\n- {name: b, role: generate, sha256: " + hashOfOrders + ", sequencers: [orders]}\n")
		var token atomic.Pointer[string]
		token.Store(&ofAll)
		c := l.client(client.Config{Patience: -1, TokenSource: func(context.Context) (string, error) {
			if t := *token.Load(); t != "" {
				return t, nil
			}
			return "", errors.New("no token today")
		}})
		l.ask(c, "orders", 3)
		for _, t := range []string{ofOrders, ofAll, "firn_unknown", ""} {
			token.Store(&t)
			l.ask(c, "orders", 3)
			l.ask(c, "others", 3)
		}
	}, []string{"orders 3: 3 IDs, <nil>", `403 "forbidden"`, `401 "unauthorized"`, "check Config.Token", "no token today"}},
	"a certificate": {func(l *lab) {
		l.startGuarded("")
		l.ask(l.client(client.Config{}), "orders", 3)
	}, []string{"orders 3: 3 IDs, <nil>"}},
	"a token that nobody asks for": {func(l *lab) {
		l.start("default")
		l.ask(l.client(client.Config{Token: "firn_x"}), "orders", 3)
	}, []string{"orders 3: 3 IDs, <nil>"}},
}

// TestClientTransports: the Go client behaves the same over HTTP and RESP, with
// a server that speaks both.
func TestClientTransports(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said [2]string
			for i := range said {
				l := &lab{T: t, overRESP: i == 1}
				scenario.do(l)
				if n := l.resp(); n > 0 != l.overRESP {
					t.Errorf("over RESP: %t, with %d requests over RESP", l.overRESP, n)
				}
				said[i] = l.said.String() + strings.ReplaceAll(l.log.String(), cmp.Or(l.address, "-"), "SERVER")
			}
			if said[0] != said[1] {
				t.Errorf("over HTTP:\n%s\nover RESP:\n%s", said[0], said[1])
			}
			for _, want := range scenario.want {
				if !strings.Contains(said[1], want) {
					t.Errorf("there is no %q in\n%s", want, said[1])
				}
			}
		})
	}
}

// TestClientBehindProxies: only HTTP ever reaches a proxy, even one that would
// pass a protocol switch on, and clients behind it work as before.
func TestClientBehindProxies(t *testing.T) {
	f := newFickle(t, "default")
	address, resp := serveFickle(t, f, service.Limits{}, true)
	for name, careless := range map[string]bool{"a proxy": false, "one that passes on what is for one connection": true} {
		t.Run(name, func(t *testing.T) {
			web := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
			if careless {
				web.ModifyResponse = func(r *http.Response) error {
					r.Header.Set("Connection", "Firn-Upgrade")
					r.Header.Set("Firn-Upgrade", "firn-resp")
					return nil
				}
				web.FlushInterval = -1
			}
			var switches, refused atomic.Int64
			seen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/resp" {
					switches.Add(1)
				}
				rec := &statusRecorder{ResponseWriter: w}
				web.ServeHTTP(rec, r)
				if r.URL.Path == "/v1/resp" && rec.status == http.StatusBadRequest {
					refused.Add(1)
				}
			})
			raw := nettest.Listen(t)
			wire := &wireListener{Listener: raw}
			proxy := &http.Server{Handler: seen}
			go proxy.Serve(wire)
			defer proxy.Close()
			c, err := client.New(client.Config{Servers: []string{"http://" + raw.Addr().String()}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(context.Background())
			ask := func() {
				if b, err := c.Sequencer("orders").NextBatch(t.Context(), 10); err != nil || b.Len() != 10 {
					t.Fatalf("%d IDs, %v", b.Len(), err)
				}
				time.Sleep(time.Millisecond)
			}
			for deadline := time.Now().Add(nettest.Patience); careless && refused.Load() == 0; ask() {
				if time.Now().After(deadline) {
					t.Fatalf("%d attempts to switch, and none was refused", switches.Load())
				}
			}
			for range 50 {
				ask()
			}
			if n := switches.Load(); resp() != 0 || n != refused.Load() || !careless && n != 0 || careless && n != 1 {
				t.Errorf("%d requests over RESP, %d attempts to switch, %d refused", resp(), n, refused.Load())
			}
			if bad := wire.bad(); bad != "" {
				t.Errorf("the proxy was sent %q", bad)
			}
		})
	}
}

// A statusRecorder records the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// A wireListener records what was sent to it.
type wireListener struct {
	net.Listener
	mu    sync.Mutex
	conns []*wireConn
}

func (l *wireListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &wireConn{Conn: c, l: l}
	l.conns = append(l.conns, w)
	return w, nil
}

type wireConn struct {
	net.Conn
	l    *wireListener
	came []byte // guarded by l.mu
}

func (c *wireConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.came = append(c.came, p[:n]...)
	return n, err
}

// bad returns the first bytes that are not an HTTP request without a body.
func (l *wireListener) bad() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		for _, request := range strings.SplitAfter(string(c.came), "\r\n\r\n") {
			line, _, _ := strings.Cut(request, "\r\n")
			if request != "" && !strings.HasSuffix(line, " HTTP/1.1") {
				return request
			}
		}
	}
	return ""
}
