package e2e

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/console"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/operate/metrics"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/service"
)

// A server is one of a fleet, with its console.
type server struct {
	t       *testing.T
	cluster *service.StoreBackend
	handler http.Handler
	pages   *console.Console
	web     *http.Server
	address string
	stop    []func()
	leave   func() // says that the server ends, to the others
}

// options are what a server of a test is.
type options struct {
	store  grant.Store
	host   string
	tokens string
}

// start starts a server, which ends with the test.
func start(t *testing.T, o options) *server {
	t.Helper()
	if o.store == nil {
		o.store = new(memstore.Store)
	}
	s := &server{t: t}
	s.cluster = service.NewStoreBackend(service.StoreBackendConfig{Admin: service.NewStoreAdmin(o.store, nil), Options: sequencer.Options{Layout: firn.Default()}})
	figures := func() (all []metrics.Sequencer) {
		s.cluster.Usage(func(name string, q *service.Usage) {
			now := time.Now()
			all = append(all, metrics.Sequencer{
				Name: name, Stats: q.Stats.Stats, Stored: true, KeeperStats: q.Keeper,
				Attached: q.Status.Holds(now), Node: q.Status.Node, WindowLeft: q.Status.Until.Sub(now),
			})
		})
		return all
	}
	started := time.Now()
	announcer := members.New(o.store, members.Options{Every: time.Second})
	describe := func() members.Server {
		m := members.Server{Host: o.host, Address: s.address, Version: "v0.9.0", Started: started, Holds: []members.Held{}}
		s.cluster.Usage(func(name string, q *service.Usage) {
			m.IDs += q.IDs
			if q.Status.Phase == grant.Holding {
				m.Holds = append(m.Holds, members.Held{Sequencer: name, Node: q.Status.Node, Until: q.Status.Until, IDs: q.IDs})
			}
		})
		return m
	}
	c := console.Config{Front: service.Front{Backend: s.cluster, RequestTimeout: 5 * time.Second}, Figures: figures, Self: announcer.ID, Version: "v0.9.0", Every: 250 * time.Millisecond}
	if o.tokens != "" {
		set := must.Get(auth.Parse([]byte(o.tokens), "tokens.yaml"))(t)
		c.Guard = auth.NewGuard(func() *auth.Set { return set }, nil)
	}
	s.pages = console.New(c)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s.address = l.Addr().String()
	s.handler = httpapi.NewHandler(httpapi.Config{Front: service.Front{Backend: s.cluster}, Console: s.pages, Metrics: http.NotFoundHandler()})
	announced := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { defer close(announced); announcer.Run(ctx, describe) }()
	s.leave = func() { cancel(); <-announced }
	s.serve(l)
	t.Cleanup(func() {
		s.die()
		s.leave()
		s.pages.Close()
		late, cancel := context.WithTimeout(context.Background(), must.Patience)
		defer cancel()
		_ = s.cluster.Close(late)
	})
	return s
}

// serve answers at a listener until die.
func (s *server) serve(l net.Listener) {
	s.web = httpapi.NewServer(s.handler.(*httpapi.Handler))
	s.web.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/axe.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(axe))
			return
		}
		s.handler.ServeHTTP(w, r)
	})
	done := make(chan struct{})
	web := s.web
	go func() { defer close(done); _ = web.Serve(l) }()
	s.stop = append(s.stop, func() { _ = web.Close(); <-done })
}

// die stops to answer, as a server does that has crashed.
func (s *server) die() {
	for _, f := range s.stop {
		f()
	}
	s.stop = nil
}

// rise answers again, at the same address.
func (s *server) rise() {
	s.t.Helper()
	l := must.Get(net.Listen("tcp", s.address))(s.t)
	s.serve(l)
}

func (s *server) url() string { return "http://" + s.address }

// take makes IDs of a sequencer, as a client of this server.
func (s *server) take(name string, n int) (ids []string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), must.Patience)
	defer cancel()
	q := must.Get(s.cluster.Sequencer(ctx, name, nil))(s.t)
	batch := must.Get(q.Take(ctx, n))(s.t)
	f := form.Of(q.Layout.Format())
	for id := range batch.All {
		ids = append(ids, string(id.Append(nil, &f)))
	}
	return ids
}
