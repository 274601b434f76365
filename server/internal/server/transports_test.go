package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/protocol/respapi"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// A fickle Backend fails when a test wants.
type fickle struct {
	service.Backend
	err atomic.Pointer[error]
}

func newFickle(t *testing.T, layout string) *fickle {
	t.Helper()
	c := service.StaticBackendConfig{Layout: firn.MustParseLayout(layout), Node: 1, Options: &firn.Options{MaxAhead: time.Second}}
	static := must.Get(service.NewStaticBackend(c))(t)
	f := new(fickle)
	f.Backend = servicetest.Backend(func(ctx context.Context, name string) (*service.Sequencer, error) {
		if err := f.err.Load(); err != nil {
			return nil, *err
		}
		return static.Sequencer(ctx, name, nil)
	})
	return f
}

// serveFickle serves it on one port until the test ends. It returns the
// address, and a function that counts the requests for IDs over RESP.
func serveFickle(t *testing.T, f *fickle, limits service.Limits) (address string, resp func() int64) {
	t.Helper()
	var commands atomic.Int64
	observe := func(_ service.Kind, _ time.Duration, n int) { commands.Add(int64(n)) }
	s := &Server{resp: respapi.NewServer(respapi.Config{Front: service.Front{Backend: f, Limits: service.Limits{Count: limits.Count}, Observe: observe}})}
	web := httpapi.NewServer(httpapi.NewHandler(httpapi.Config{Front: service.Front{Backend: f, Limits: limits}}))
	mux := listen.New(nettest.Listen(t), listen.Config{})
	var all sync.WaitGroup
	all.Go(func() { _ = mux.Serve() })
	all.Go(func() { _ = web.Serve(mux.Listener(listen.HTTP)) })
	all.Go(func() { _ = s.resp.Serve(mux.Listener(listen.RESP)) })
	t.Cleanup(func() {
		_, _ = mux.Close(), web.Close()
		all.Wait()
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.resp.Shutdown(cut)
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
	l.address, l.resp = serveFickle(l.T, l.backend, l.limits)
}

// startGuarded starts a server with TLS, and with tokens if tokens is not
// empty.
func (l *lab) startGuarded(tokens string) {
	l.Helper()
	s, address, roots, _ := guarded(l.T, tokens, nil)
	l.address, l.roots, l.resp = address, roots, func() int64 { return s.open(listen.RESP) }
}

// client makes a client of the server.
func (l *lab) client(c client.Config) *client.Client {
	l.Helper()
	scheme := "http"
	if l.overRESP {
		scheme = "firn"
	}
	if l.roots != nil {
		scheme += "s"
		c.TLS = l.roots
	}
	c.Servers = []string{scheme + "://" + l.address}
	c.Logger = slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	made := must.Get(client.New(c))(l)
	l.Cleanup(func() {
		if err := made.Close(context.Background()); err != nil {
			l.Error(err)
		}
	})
	return made
}

// ask requests a batch and notes the outcome.
func (l *lab) ask(c *client.Client, name string, n int) {
	b, err := c.Sequencer(name).NextBatch(l.Context(), n)
	l.note(fmt.Sprintf("%s %d", name, n), b.Len(), err)
}

// plain replaces what differs between runs and protocols in a text.
func (l *lab) plain(text string) string {
	text = regexp.MustCompile("(http|firn)s?://"+l.address).ReplaceAllString(text, "SERVER")
	// What a client should send differs between the protocols.
	return regexp.MustCompile(`(401 unauthorized: ).*`).ReplaceAllString(text, "$1…")
}

// note records an outcome, without what differs between two servers.
func (l *lab) note(what string, ids int, err error) {
	text := "<nil>"
	if err != nil {
		text = l.plain(err.Error())
	}
	said, ok := errors.AsType[*client.Error](err)
	if ok && (said.Kind == "unauthorized" || said.Kind == "forbidden") {
		fmt.Fprintf(&l.said, "%s: %d %q hint %q\n", what, said.Status, said.Kind, said.Hint)
		return // Redis has texts of its own for these
	}
	fmt.Fprintf(&l.said, "%s: %d IDs, %s\n", what, ids, text)
	if ok {
		fmt.Fprintf(&l.said, "\t%d %q %q hint %q retry %v\n", said.Status, said.Kind, said.Detail, said.Hint, said.RetryAfter)
	}
	for _, is := range []struct {
		name   string
		target error
	}{{"exhausted", firn.ErrExhausted}, {"no grant", firn.ErrGrantOver}, {"time over", firn.ErrTimeOver}, {"too large", firn.ErrBatchTooLarge}} {
		if errors.Is(err, is.target) {
			fmt.Fprintf(&l.said, "\tis %s\n", is.name)
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
	}, []string{"orders 500: 500 IDs, <nil>", "orders 501: 501 IDs, <nil>", "400 \"bad-name\""}},
	"kinds": {func(l *lab) {
		l.start("default")
		c := l.client(client.Config{Patience: -1})
		for i, row := range backendErrors {
			l.backend.err.Store(&row.err)
			// Another sequencer each time, because the pauses of one do not end
			// here.
			l.ask(c, fmt.Sprintf("of-%v-%d", service.ProblemOf(row.err, time.Second, false).Kind, i), 3)
		}
		l.backend.err.Store(nil)
		l.ask(c, "orders", 3)
		l.note("the server", 0, c.ServerErrors()[0])
	}, []string{
		`503 "busy"`, "retry 7s", "is exhausted", `409 "moved"`, `409 "detached"`, `410 "destroyed"`, `500 "time-over"`, "is time over", `503 "no-grant"`,
		`503 "nodes-exhausted"`, `503 "store-unavailable"`, `503 "clock-ahead"`, `500 "bad-record"`, `503 "recreated"`, `400 "batch-too-large"`, "is too large", `500 "internal"`, "orders 3: 3 IDs, <nil>", "the server: 0 IDs, <nil>",
	}},
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
				said[i] = l.said.String() + l.plain(l.log.String())
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
