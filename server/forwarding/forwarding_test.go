package forwarding

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/httpapi"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/rpcapi"
)

// A server is a Backend with its gRPC, announced in the store.
type server struct {
	*Backend
	stop func()
}

func start(t *testing.T, s grant.Store, layout string, guards ...rpcapi.Guard) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var b *Backend
	announcer := members.New(s, func() members.Member {
		m := members.Member{Host: "h", Address: l.Addr().String()}
		b.Stats(func(name string, q sequencer.Stats) {
			m.Holds = append(m.Holds, members.Held{Sequencer: name, Node: q.State.Node, Until: q.State.Until})
		})
		return m
	}, members.Options{Every: 50 * time.Millisecond})
	f := rpcapi.NewForwarder(rpcapi.ForwarderConfig{})
	b = New(httpapi.ClusterConfig{Store: s, Config: sequencer.Config{
		Layout: firn.MustParseLayout(layout), Nodes: &sequencer.Range{Lo: 0, Hi: 0}, // one number for all
	}}, f, announcer.ID)
	config := rpcapi.Config{Backend: b}
	for _, g := range guards {
		config.Guard = g
	}
	rpc := rpcapi.NewServer(config)
	served, announced := make(chan struct{}), make(chan struct{})
	go func() { defer close(served); _ = rpc.Serve(l) }()
	go func() { defer close(announced); announcer.Run(ctx) }()
	done := false
	v := &server{Backend: b, stop: func() {
		if done {
			return
		}
		done = true
		late, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = rpc.Shutdown(late)
		<-served
		stop()
		<-announced
		_ = f.Close()
		_ = b.Close(late)
	}}
	t.Cleanup(v.stop)
	return v
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

// TestForwarding: a server without a number answers with IDs of another one; when that is
// gone, it takes the number itself.
func TestForwarding(t *testing.T) {
	for _, layout := range []string{"default", "boundary", "uuidv7"} {
		t.Run(layout, func(t *testing.T) {
			store := new(memstore.Store)
			a, b := start(t, store, layout), start(t, store, layout)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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
			for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) { // until a is listed
				if ids, err = take(t, ctx, b, 5000); err == nil {
					break
				}
				if !errors.Is(err, grant.ErrNodesExhausted) || time.Since(begin) > 20*time.Second {
					t.Fatal(err)
				}
			}
			note(ids, 5000)
			if answered, _ := b.Forwarded(); answered != 1 {
				t.Errorf("%d calls were forwarded, want one", answered)
			}
			if answered, _ := a.Forwarded(); answered != 0 {
				t.Errorf("the other one forwarded %d calls", answered)
			}
			// A call that must not wait asks nobody, and that is no failure.
			_, failed := b.Forwarded()
			done, cancelNow := context.WithCancel(ctx)
			cancelNow()
			if _, err := take(t, done, b, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want %v", err, context.Canceled)
			}
			if _, now := b.Forwarded(); now != failed {
				t.Errorf("%d calls failed, want %d", now, failed)
			}
			a.stop() // gives its number back
			for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				before, _ := b.Forwarded()
				ids, err = take(t, ctx, b, 100)
				if after, _ := b.Forwarded(); err == nil && after == before {
					break
				}
				note(ids, len(ids))
				if time.Since(begin) > 20*time.Second {
					t.Fatalf("it never takes the number: %v", err)
				}
			}
			note(ids, 100)
		})
	}
}

// A nobody lets nobody in.
type nobody struct{}

func (nobody) CheckToken(string, *tls.ConnectionState, httpapi.Need, string) error {
	return httpapi.ErrUnauthorized
}

// TestRefusedHop: that another server does not let this one in is not the fault of who
// asks. The answer is what this one lacks.
func TestRefusedHop(t *testing.T) {
	store := new(memstore.Store)
	a, b := start(t, store, "default", nobody{}), start(t, store, "default")
	if _, err := take(t, t.Context(), a, 1); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) { // until a is listed
		all, err := b.Members(t.Context())
		if err != nil || time.Since(begin) > 20*time.Second {
			t.Fatalf("%d members, %v", len(all), err)
		}
		if len(all) == 2 {
			break
		}
	}
	if _, err := take(t, t.Context(), b, 1); !errors.Is(err, grant.ErrNodesExhausted) {
		t.Errorf("%v, want %v", err, grant.ErrNodesExhausted)
	}
	if answered, failed := b.Forwarded(); answered != 0 || failed != 1 {
		t.Errorf("%d calls answered, %d failed, want 0 and 1", answered, failed)
	}
}

// TestNoLoop: of two servers that both have no number, neither asks the other again and
// again.
func TestNoLoop(t *testing.T) {
	store := new(memstore.Store)
	q, err := sequencer.Open(t.Context(), store, "orders", &sequencer.Config{Layout: firn.Default(), Nodes: &sequencer.Range{Lo: 0, Hi: 0}})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close(context.Background())
	a, b := start(t, store, "default"), start(t, store, "default")
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if all, err := a.Members(t.Context()); err == nil && len(all) == 2 {
			break
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatal("they do not see each other")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := take(t, ctx, a, 1); !errors.Is(err, grant.ErrNodesExhausted) {
		t.Errorf("%v, want ErrNodesExhausted", err)
	}
	if _, failed := b.Forwarded(); failed != 0 {
		t.Errorf("the second server forwarded %d calls that were forwarded to it", failed)
	}
}
