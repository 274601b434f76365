package forwarding

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/nettest"
	"github.com/firnid/firn/server/rpcapi"
	"github.com/firnid/firn/server/service"
)

// A server is a Cluster with its Peers and its gRPC, announced in the store.
type server struct {
	*service.Cluster
	*Peers
	id      string
	address string
	store   *nettest.Store
	stop    func() // gives its node IDs back
}

// kill stops a server so that its record and its node IDs stay as they are.
func (s *server) kill() {
	s.store.Cut.Store(true)
	s.stop()
}

// A setup says how a server is started. Only the store is needed.
type setup struct {
	store  grant.Store
	layout string
	nodes  sequencer.Range
	at     net.Listener
	guard  auth.Authorizer
	peer   func(*Receiver) service.Receiver // in its place
	every  time.Duration                    // between its records; 0 is a minute
	holds  []members.Held                   // that it lists, in place of what it has
	log    *slog.Logger
}

// start starts a server with the node ID 0, which it takes when it is first
// asked.
func start(t *testing.T, s grant.Store, layout string) *server {
	return setup{store: s, layout: layout}.start(t)
}

func (o setup) start(t *testing.T) *server {
	t.Helper()
	if o.at == nil {
		o.at = listener(t, nettest.FreeAddress(t)) // where a test may listen again later
	}
	v := &server{address: o.at.Addr().String(), store: &nettest.Store{Store: o.store}}
	announcer := members.New(v.store, members.Options{Every: cmp.Or(o.every, time.Minute)})
	f := NewForwarder(ForwarderConfig{})
	v.id = announcer.ID()
	fleet := service.NewFleet(v.store, nil)
	v.Peers = New(fleet, f, announcer, o.log)
	v.Cluster = service.NewCluster(service.ClusterConfig{Fleet: fleet, Peers: v.Peers, Config: sequencer.Config{
		Layout: firn.MustParseLayout(cmp.Or(o.layout, "default")), Nodes: &o.nodes, Logger: o.log, Timeout: time.Second,
	}})
	receiver := NewReceiver(v.Cluster, announcer)
	config := rpcapi.Config{Backend: v.Cluster, Peer: receiver, Auth: o.guard}
	if o.peer != nil {
		config.Peer = o.peer(receiver)
	}
	rpc := rpcapi.NewServer(config)
	ctx, stop := context.WithCancel(context.Background())
	served, announced := make(chan struct{}), make(chan struct{})
	go func() { defer close(served); _ = rpc.Serve(o.at) }()
	go func() {
		defer close(announced)
		announcer.Run(ctx, func() members.Member {
			m := members.Member{Host: "h", Address: v.address}
			v.Stats(func(name string, q sequencer.Stats) {
				m.Holds = append(m.Holds, members.Held{Sequencer: name, Node: q.State.Node, Until: q.State.Until})
			})
			if o.holds != nil {
				m.Holds = o.holds
			}
			return m
		})
	}()
	v.stop = sync.OnceFunc(func() {
		late, cancel := context.WithTimeout(context.Background(), nettest.Patience)
		defer cancel()
		if v.store.Cut.Load() {
			cancel()
		}
		_ = rpc.Shutdown(late)
		<-served
		stop()
		<-announced
		_ = f.Close()
		_ = v.Close(late)
	})
	t.Cleanup(v.stop)
	if _, err := announcer.Proof(t.Context()); err != nil { // it is listed
		t.Fatal(err)
	}
	return v
}

func listener(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mustTake takes IDs, and is for a server that has them.
func mustTake(t *testing.T, b *server, n int) []string {
	t.Helper()
	ids, err := take(t, t.Context(), b, n)
	if err != nil || len(ids) != n {
		t.Fatalf("%d IDs, want %d: %v", len(ids), n, err)
	}
	return ids
}

// wantNone asks a server that has no node ID and cannot be helped, and returns
// its error.
func wantNone(t *testing.T, b *server) error {
	t.Helper()
	ids, err := take(t, t.Context(), b, 10)
	if len(ids) != 0 || !errors.Is(err, grant.ErrNodesExhausted) || errors.Is(err, sequencer.ErrUnavailable) {
		t.Errorf("%d IDs and %v, want none and %v", len(ids), err, grant.ErrNodesExhausted)
	}
	return err
}

// wantForwards compares how often other servers were asked, with what came of
// it.
func wantForwards(t *testing.T, b *server, want map[result]uint64) {
	t.Helper()
	for r := range numResults {
		if got := b.Forwards()[r.String()]; got != want[r] {
			t.Errorf("%d times %v, want %d", got, r, want[r])
		}
	}
}

func take(t *testing.T, ctx context.Context, b *server, n int) (ids []string, err error) {
	t.Helper()
	s, err := b.Sequencer(ctx, "orders")
	if err != nil {
		return nil, err
	}
	if s.Source128 != nil {
		batch, err := s.Source128.NextBatch(ctx, n)
		for id := range batch.All() {
			ids = append(ids, id.String())
		}
		return ids, err
	}
	batch, err := s.Source.NextBatch(ctx, n)
	for id := range batch.All() {
		ids = append(ids, id.String())
	}
	return ids, err
}

// TestForwarding: a server without a number answers with IDs of another one;
// when that is gone, it takes the number itself.
func TestForwarding(t *testing.T) {
	for _, layout := range []string{"default", "boundary", "uuidv7"} {
		t.Run(layout, func(t *testing.T) {
			store := new(memstore.Store)
			a, b := start(t, store, layout), start(t, store, layout)
			ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
			defer cancel()
			seen := make(map[string]bool)
			note := func(ids []string, n int) {
				t.Helper()
				if len(ids) != n {
					t.Errorf("%d IDs, want %d", len(ids), n)
				}
				for _, id := range ids {
					if seen[id] {
						t.Errorf("%s comes twice", id)
					}
					seen[id] = true
				}
			}
			ids, err := take(t, ctx, a, 10)
			if err != nil {
				t.Fatal(err)
			}
			note(ids, 10)
			if ids, err = take(t, ctx, b, 5000); err != nil {
				t.Fatal(err)
			}
			note(ids, 5000)
			wantForwards(t, b, map[result]uint64{gave: 1})
			wantForwards(t, a, nil)
			// A call that must not wait is not forwarded, and that is not a failure.
			done, cancelNow := context.WithCancel(ctx)
			cancelNow()
			if _, err := take(t, done, b, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want %v", err, context.Canceled)
			}
			wantForwards(t, b, map[result]uint64{gave: 1})
			a.stop() // gives its number back
			for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				before := b.Forwarded()
				ids, err = take(t, ctx, b, 100)
				if after := b.Forwarded(); err == nil && after == before {
					break
				}
				note(ids, len(ids))
				if time.Since(begin) > nettest.Patience {
					t.Fatalf("it never takes the number: %v", err)
				}
			}
			note(ids, 100)
		})
	}
}

// A denying guard denies all access.
type denying struct{}

func (denying) Allow(*auth.Credentials, auth.Action, string) error {
	return auth.ErrUnauthorized
}

// TestRefusedHop: if another server denies this one access, that is not the
// fault of the client. The error is that of this server.
func TestRefusedHop(t *testing.T) {
	store := new(memstore.Store)
	a, b := setup{store: store, guard: denying{}}.start(t), start(t, store, "default")
	mustTake(t, a, 1)
	wantNone(t, b)
	wantForwards(t, b, map[result]uint64{unauthorized: 1})
}

// TestNoLoop: of two servers that both have no number, neither asks the other
// again and again.
func TestNoLoop(t *testing.T) {
	store := new(memstore.Store)
	q, err := sequencer.Open(t.Context(), store, "orders", &sequencer.Config{Layout: firn.Default(), Nodes: &sequencer.Range{Lo: 0, Hi: 0}})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close(context.Background())
	a, b := start(t, store, "default"), start(t, store, "default")
	wantNone(t, a)
	wantForwards(t, a, map[result]uint64{exhausted: 1})
	wantForwards(t, b, nil)
}
