package forwarding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/distinct"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A server is a Cluster with its Peers and its HTTP.
type server struct {
	*service.StoreBackend
	*Peers
	url   string
	store *faultstore.Store
	web   *httptest.Server
}

// A setup says how a server is started. Only the store is needed.
type setup struct {
	store  grant.Store
	layout string
	nodes  grant.NodeRange // the node ID 0 by default
	at     net.Listener
	guard  auth.Authorizer
	to     []string // URLs
	log    *slog.Logger
	most   int // IDs in a request; 0 means the default
}

func (o setup) start(t *testing.T) *server {
	t.Helper()
	v := &server{store: &faultstore.Store{Store: o.store}}
	fleet := service.NewStoreAdmin(v.store, nil)
	c := service.StoreBackendConfig{Admin: fleet, Options: sequencer.Options{
		Layout: firn.MustParseLayout(cmp.Or(o.layout, "default")),
		Nodes:  &o.nodes,
		Logger: o.log,
	}}
	if o.to != nil {
		v.Peers = New(fleet, Config{URLs: o.to, Logger: o.log})
		c.Peers = v.Peers
	}
	v.StoreBackend = service.NewStoreBackend(c)
	v.web = httptest.NewUnstartedServer(httpapi.NewHandler(httpapi.Config{Front: service.Front{Backend: v.StoreBackend, Auth: o.guard, Limits: service.Limits{Count: o.most}}, Owner: v.StoreBackend.Owner}))
	if o.at != nil {
		v.web.Listener = o.at
	}
	v.web.Start()
	v.url = v.web.URL
	t.Cleanup(func() {
		v.web.Close()
		late, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if v.store.Cut.Load() {
			cancel() // nothing can be given back
		}
		_ = v.Close(late)
		if v.Peers != nil {
			v.Peers.Close()
		}
	})
	return v
}

// Close resolves the ambiguity of the embedded fields.
func (s *server) Close(ctx context.Context) error { return s.StoreBackend.Close(ctx) }

// kill ends a server so that its node IDs stay as they are.
func (s *server) kill() {
	s.store.Cut.Store(true)
	s.web.CloseClientConnections()
	s.web.Close()
}

// take takes IDs of orders, as text.
func (s *server) take(ctx context.Context, n int) (ids []string, err error) {
	q, err := s.Sequencer(ctx, "orders", nil)
	if err != nil {
		return nil, err
	}
	b, err := q.Take(ctx, n)
	f := form.Of(q.Layout.Format())
	for id := range b.All {
		ids = append(ids, string(id.Append(nil, &f)))
	}
	return ids, err
}

// mustTake takes IDs from a server that must have them.
func (s *server) mustTake(t *testing.T, n int) []string {
	t.Helper()
	ids, err := s.take(t.Context(), n)
	if err != nil || len(ids) != n {
		t.Fatalf("%d IDs, want %d: %v", len(ids), n, err)
	}
	return ids
}

// wantNone asks a server that has no node ID and cannot be helped, and returns
// its error.
func (s *server) wantNone(t *testing.T) error {
	t.Helper()
	ids, err := s.take(t.Context(), 10)
	if len(ids) != 0 || !errors.Is(err, grant.ErrNodesExhausted) || errors.Is(err, firn.ErrUnavailable) {
		t.Errorf("%d IDs and %v, want none and %v", len(ids), err, grant.ErrNodesExhausted)
	}
	return err
}

// wantForwards compares how often other servers were asked, by result.
func (s *server) wantForwards(t *testing.T, want map[result]uint64) {
	t.Helper()
	got := s.Forwards()
	for r := range numResults {
		if n := got[results[r].name]; n != want[r] {
			t.Errorf("%d times %s, want %d", n, results[r].name, want[r])
		}
	}
}

// made returns how many IDs a server has made.
func (s *server) made() (n uint64) {
	s.Usage(func(_ string, q *service.Usage) { n += q.IDs })
	return n
}

// TestForwarding: a server without a node ID answers with IDs of another one.
// When that has given its node ID back, it acquires the node ID itself.
func TestForwarding(t *testing.T) {
	for _, layout := range []string{"default", "boundary", "uuidv7"} {
		t.Run(layout, func(t *testing.T) {
			store := new(memstore.Store)
			a := setup{store: store, layout: layout}.start(t)
			var all distinct.IDs[string]
			note := func(ids []string) { all.Add(t, "a server", ids...) }
			note(a.mustTake(t, 10))
			b := setup{store: store, layout: layout, to: []string{a.url + "/"}}.start(t)
			note(b.mustTake(t, 5000))
			note(b.mustTake(t, 1))
			b.wantForwards(t, map[result]uint64{gave: 2})
			done, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := b.take(done, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want %v", err, context.Canceled)
			}
			b.wantForwards(t, map[result]uint64{gave: 2})
			must.Do(t, a.Close(t.Context()))
			for b.made() == 0 {
				ids, _ := b.take(t.Context(), 100)
				note(ids)
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// A denying guard denies all access.
type denying struct{}

func (denying) Allow(*auth.Credentials, auth.Action, string) error { return auth.ErrUnauthorized }

// TestDenied: if another server denies this one access, that is not the fault
// of the client. The error is that of this server.
func TestDenied(t *testing.T) {
	store := new(memstore.Store)
	a := setup{store: store, guard: denying{}}.start(t)
	a.mustTake(t, 1)
	b := setup{store: store, to: []string{a.url}}.start(t)
	err := b.wantNone(t)
	b.wantForwards(t, map[result]uint64{unauthorized: 1})
	if problem := service.ProblemOf(err, time.Second, false); problem.Kind != service.NodesExhausted || !strings.Contains(problem.Detail, "1 denied this server access") || strings.Contains(problem.Detail, a.url) {
		t.Errorf("%+v", problem)
	}
}

// TestSmallerLimit: if another server gives fewer IDs at a time than this one,
// the answer is batch-too-large, and this server stays ready.
func TestSmallerLimit(t *testing.T) {
	store := new(memstore.Store)
	a := setup{store: store, most: 100}.start(t)
	a.mustTake(t, 1)
	b := setup{store: store, to: []string{a.url}}.start(t)
	_, err := b.take(t.Context(), 101)
	if problem := service.ProblemOf(err, time.Second, false); err == nil || problem.Kind != service.BatchTooLarge || !b.CanHelp() {
		t.Errorf("101 IDs: %v, ready %t, want batch-too-large from a ready server", err, b.CanHelp())
	}
	b.mustTake(t, 100)
	b.wantForwards(t, map[result]uint64{tooLarge: 1, gave: 1})
}

// TestNoLoop: a request is forwarded once, though the URL is that of the server
// itself, of a balancer with the server behind it, or of a server that names
// this one.
func TestNoLoop(t *testing.T) {
	for _, who := range []string{"itself", "a balancer", "each other"} {
		t.Run(who, func(t *testing.T) {
			store := new(memstore.Store)
			holder := setup{store: store}.start(t)
			holder.mustTake(t, 1)
			l := nettest.Listen(t)
			self := "http://" + l.Addr().String()
			to := self
			var through atomic.Int64
			var b *server
			switch who {
			case "a balancer":
				target, _ := url.Parse(self)
				proxy := httputil.NewSingleHostReverseProxy(target)
				balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					through.Add(1)
					proxy.ServeHTTP(w, r)
				}))
				t.Cleanup(balancer.Close)
				to = balancer.URL
			case "each other":
				other := setup{store: store, to: []string{self}}.start(t)
				to = other.url
				defer func() { other.wantForwards(t, nil) }()
			}
			b = setup{store: store, at: l, to: []string{to}}.start(t)
			b.wantNone(t)
			b.wantForwards(t, map[result]uint64{exhausted: 1})
			if n := through.Load(); n > 1 {
				t.Errorf("%d requests through the balancer, want 1", n)
			}
		})
	}
}

// TestReusedAddress: another program, or a server of another store, answers at
// the URL of a server. This server passes on none of its IDs.
func TestReusedAddress(t *testing.T) {
	for _, who := range []string{"another store", "a copy of the store", "another node ID of a copy", "static", "another program"} {
		t.Run(who, func(t *testing.T) {
			store := new(memstore.Store)
			a := setup{store: store}.start(t)
			a.mustTake(t, 10)
			copied := faultstore.Copy(t, store)
			a.kill()
			o := setup{store: new(memstore.Store)}
			to := ""
			switch who {
			case "a copy of the store":
				_ = a.Close(t.Context())
				o.store, o.nodes = copied, grant.NodeRange{Lo: 0, Hi: 1} // 0 is still held
			case "another node ID of a copy":
				o.store, o.nodes = copied, grant.NodeRange{Lo: 1, Hi: 1}
			case "static":
				s := must.Get(service.NewStaticBackend(service.StaticBackendConfig{Layout: firn.Default()}))(t)
				web := httptest.NewServer(httpapi.NewHandler(httpapi.Config{Front: service.Front{Backend: s}}))
				t.Cleanup(web.Close)
				to = web.URL
			case "another program":
				web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") }))
				t.Cleanup(web.Close)
				to = web.URL
			}
			if to == "" {
				other := o.start(t)
				other.mustTake(t, 10)
				to = other.url
			}
			b := setup{store: store, to: []string{to}}.start(t) // 0 is held by a, which was killed
			b.wantNone(t)
			b.wantForwards(t, map[result]uint64{rejected: 1})
		})
	}
}

// TestCopiedStore: a server on a copy of a store that names a server of the
// original takes no ID of it, and the server of the original none of the copy.
func TestCopiedStore(t *testing.T) {
	store := new(memstore.Store)
	a := setup{store: store}.start(t)
	a.mustTake(t, 10)
	copied := faultstore.Copy(t, store)
	late := setup{store: copied, to: []string{a.url}}.start(t)
	late.mustTake(t, 10) // in a window that both stores have
	must.Do(t, a.Close(t.Context()))
	again := setup{store: store}.start(t) // another owner of the node ID
	again.mustTake(t, 10)
	late = setup{store: copied, to: []string{again.url}}.start(t)
	late.wantNone(t)
	late.wantForwards(t, map[result]uint64{rejected: 1})
}

// ownerOf returns the owner of a node ID.
func (s *server) ownerOf(t *testing.T, node uint64) string {
	t.Helper()
	i := must.Get(s.Lookup(t.Context(), "orders"))(t)
	n := must.Get(grant.LookupNode(t.Context(), s.store, i, node))(t)
	return n.Owner
}

// TestLyingServer: whatever a server answers, no ID is passed on twice, and
// none that the server cannot have made.
func TestLyingServer(t *testing.T) {
	l := firn.Default()
	owner := func(is string) string { return is }
	for _, row := range []struct {
		what  string
		at    [2]time.Duration // of two IDs, from now
		node  [2]uint64
		seq   [2]uint64
		owner func(is string) string
		extra string // bytes after the IDs
		media string
		bit   byte // set on top of the first ID
		want  result
	}{
		{what: "good", seq: [2]uint64{1, 2}, want: gave},
		{what: "twice", seq: [2]uint64{1, 1}, want: rejected},
		{what: "back", at: [2]time.Duration{time.Millisecond, 0}, seq: [2]uint64{1, 2}, want: rejected},
		{what: "back in a tick", seq: [2]uint64{2, 1}, want: rejected},
		{what: "not of this layout", seq: [2]uint64{1, 2}, bit: 1 << 7, want: rejected},
		{what: "two node IDs", node: [2]uint64{0, 1}, seq: [2]uint64{1, 2}, want: rejected},
		{what: "another node ID", node: [2]uint64{1, 1}, seq: [2]uint64{1, 2}, want: rejected},
		{what: "long ago", at: [2]time.Duration{-time.Hour, 0}, seq: [2]uint64{1, 2}, want: rejected},
		{what: "in the future", at: [2]time.Duration{0, 25 * time.Second}, seq: [2]uint64{1, 2}, want: rejected},
		{what: "after the window", at: [2]time.Duration{time.Hour, time.Hour}, seq: [2]uint64{1, 2}, want: rejected},
		{what: "another owner", seq: [2]uint64{1, 2}, owner: func(string) string { return "d41f0a6738be52c99e07ab135c64f820" }, want: rejected},
		{what: "no owner", seq: [2]uint64{1, 2}, owner: func(string) string { return "" }, want: rejected},
		{what: "too much", seq: [2]uint64{1, 2}, extra: "12345678", want: rejected},
		{what: "text", seq: [2]uint64{1, 2}, media: "text/plain", want: rejected},
	} {
		t.Run(row.what, func(t *testing.T) {
			store := new(memstore.Store)
			a := setup{store: store}.start(t)
			a.mustTake(t, 1)
			if row.owner == nil {
				row.owner = owner
			}
			now := time.Now()
			var packed []byte
			for i := range 2 {
				id := must.Get(l.Compose(firn.Parts{Time: now.Add(row.at[i]), Node: row.node[i], Seq: row.seq[i]}))(t)
				packed = firn.Raw.Append(packed, id)
			}
			packed[0] |= row.bit
			is := a.ownerOf(t, 0)
			liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", cmp.Or(row.media, "application/octet-stream"))
				w.Header().Set(service.OwnerHeader, row.owner(is))
				_, _ = w.Write(append(packed, row.extra...))
			}))
			t.Cleanup(liar.Close)
			b := setup{store: store, to: []string{liar.URL}}.start(t)
			ids, err := b.take(t.Context(), 2)
			if (len(ids) == 2) != (row.want == gave) {
				t.Errorf("%v, %v", ids, err)
			}
			b.wantForwards(t, map[result]uint64{row.want: 1})
		})
	}
}

// TestServersThatDoNotAnswer: a server that is gone, or accepts requests and
// never answers, costs one request, and the others are asked.
func TestServersThatDoNotAnswer(t *testing.T) {
	store := new(memstore.Store)
	a := setup{store: store}.start(t)
	a.mustTake(t, 10)
	silent, gone := nettest.Listen(t), nettest.Listen(t)
	defer silent.Close()
	gone.Close()
	b := setup{store: store, to: []string{"http://" + silent.Addr().String(), "http://" + gone.Addr().String(), a.url}}.start(t)
	for range 20 {
		b.mustTake(t, 10)
	}
	f := b.Forwards()
	if f["ok"] != 20 || f["unreachable"] < 1 || f["failed"]+f["rejected"] != 0 {
		t.Errorf("%v", f)
	}
	if !b.CanHelp() {
		t.Error("a server that answered the last call cannot help")
	}
	a.web.Close()
	b.wantNone(t)
	if b.CanHelp() {
		t.Error("servers that do not answer can help")
	}
	asked := b.Forwards()["unreachable"]
	for range 100 {
		b.wantNone(t)
	}
	if n := b.Forwards()["unreachable"] - asked; n > 50 {
		t.Errorf("100 calls asked %d times, want that servers which do not answer are not asked for a while", n)
	}
}

// TestWithoutStore: what the store said of another server's window remains
// valid when the store does not answer. IDs that cannot be checked are not
// passed on.
func TestWithoutStore(t *testing.T) {
	store := new(memstore.Store)
	a := setup{store: store}.start(t)
	a.mustTake(t, 10)
	b := setup{store: store, to: []string{a.url}}.start(t)
	b.mustTake(t, 10)
	s := must.Get(b.Sequencer(t.Context(), "orders", nil))(t)
	b.store.Cut.Store(true)
	must.Get(s.Take(t.Context(), 10))(t)
	b.windows.mu.Lock()
	clear(b.windows.known)
	b.windows.mu.Unlock()
	if got, err := s.Take(t.Context(), 10); got.Len() != 0 || !errors.Is(err, firn.ErrUnavailable) {
		t.Errorf("%d IDs that cannot be checked, and %v, want none and %v", got.Len(), err, firn.ErrUnavailable)
	}
}
