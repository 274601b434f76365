package forwarding

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/nettest"
	"github.com/firnid/firn/server/rpcapi"
	"github.com/firnid/firn/server/rpcapi/firnv1"
	"github.com/firnid/firn/server/service"
)

// serveAt serves gRPC at an address until the test ends.
func serveAt(t *testing.T, l net.Listener, c rpcapi.Config) {
	t.Helper()
	rpc := rpcapi.NewServer(c)
	done := make(chan struct{})
	go func() { defer close(done); _ = rpc.Serve(l) }()
	t.Cleanup(func() {
		late, cancel := context.WithTimeout(context.Background(), nettest.Patience)
		defer cancel()
		_ = rpc.Shutdown(late)
		<-done
	})
}

// made is how many IDs a server has made.
func made(b *server) (n uint64) {
	b.Stats(func(_ string, q sequencer.Stats) { n += q.IDs })
	return n
}

// TestReusedAddress: a server's record outlives it, and then another one has
// its address. It is not asked for IDs: not one of another store, nor one
// without a store, nor one that is older, nor one of the same store, which has
// a record of its own.
func TestReusedAddress(t *testing.T) {
	for _, who := range []string{"another store", "a copy of the store", "static", "older", "the same store", "nobody"} {
		t.Run(who, func(t *testing.T) {
			store := new(memstore.Store)
			a := start(t, store, "default")
			mustTake(t, a, 10)
			b := start(t, store, "default") // cannot have the node ID
			copied := copyOf(t, store)
			at := a.address
			a.kill()
			l := listener(t, at)
			var other *server
			want := map[result]uint64{refused: 1}
			switch who {
			case "another store":
				other = setup{store: new(memstore.Store), at: l}.start(t)
				mustTake(t, other, 10)
			case "a copy of the store":
				other = setup{store: copied, at: l, nodes: sequencer.Range{Lo: 1, Hi: 1}}.start(t)
				mustTake(t, other, 10)
			case "static":
				s, err := service.NewStatic(service.StaticConfig{Layout: firn.Default()})
				if err != nil {
					t.Fatal(err)
				}
				serveAt(t, l, rpcapi.Config{Backend: s})
			case "older":
				older := grpc.NewServer()
				s, _ := service.NewStatic(service.StaticConfig{Layout: firn.Default()})
				firnv1.RegisterIDsServer(older, rpcapi.NewServer(rpcapi.Config{Backend: s}))
				go older.Serve(l)
				t.Cleanup(older.Stop)
			case "the same store":
				// It is listed too, so it is asked as itself, and has the IDs that it
				// makes.
				other = setup{store: store, at: l, nodes: sequencer.Range{Lo: 1, Hi: 1}}.start(t)
				mustTake(t, other, 10)
				want = nil
			case "nobody":
				_ = l.Close()
				want = map[result]uint64{unreachable: 1}
			}
			if want == nil {
				ids, err := take(t, t.Context(), b, 10)
				if err != nil || len(ids) != 10 || made(other) != 20 {
					t.Errorf("%d IDs, %v; the new server has made %d, want 10 and 20", len(ids), err, made(other))
				}
				if f := b.Forwards(); f["ok"] != 1 || f["refused"] > 1 {
					t.Errorf("%v", f)
				}
				return
			}
			wantNone(t, b)
			wantForwards(t, b, want)
			wantNone(t, b)
			wantForwards(t, b, want) // which is not asked again so soon
			if other != nil && made(other) != 10 {
				t.Errorf("the other server has made %d IDs, want 10", made(other))
			}
		})
	}
}

// copyOf is a store with what another one has at this moment.
func copyOf(t *testing.T, s grant.Store) grant.Store {
	t.Helper()
	c := new(memstore.Store)
	if err := s.List(t.Context(), "", func(key string, value []byte) bool {
		ok, err := c.CAS(t.Context(), key, nil, value)
		return ok && err == nil
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCopiedStore: a server on a copy of a store finds the records of the
// servers of the original, which live. Each is where its record says, and says
// no.
func TestCopiedStore(t *testing.T) {
	store := new(memstore.Store)
	a := start(t, store, "default")
	mustTake(t, a, 10)
	copied := copyOf(t, store)
	b := start(t, copied, "default")
	wantNone(t, b)
	wantForwards(t, b, map[result]uint64{refused: 1})
	if made(a) != 10 {
		t.Errorf("the server of the original has made %d IDs, want 10", made(a))
	}
}

// TestProxy: behind an address that all servers share, such as that of a load
// balancer, a call reaches any of them. Only the right one answers.
func TestProxy(t *testing.T) {
	store := new(memstore.Store)
	a := start(t, store, "default")
	mustTake(t, a, 10)
	l := listener(t, "127.0.0.1:0")
	var conns sync.WaitGroup
	defer func() { _ = l.Close(); conns.Wait() }()
	to := a.address // where the balancer leads
	var mu sync.Mutex
	conns.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			out, err := net.Dial("tcp", to)
			mu.Unlock()
			if err != nil {
				_ = in.Close()
				continue
			}
			conns.Go(func() { pipe(out, in) })
			conns.Go(func() { pipe(in, out) })
		}
	})
	behind := func(b *server) {
		b.peers.mu.Lock()
		defer b.peers.mu.Unlock()
		for i := range b.peers.list {
			b.peers.list[i].Address = l.Addr().String()
		}
		b.peers.read = time.Now().Add(time.Hour)
	}
	for _, row := range []struct {
		leads string
		want  map[result]uint64
	}{
		{"to the one that is meant", map[result]uint64{gave: 1}},
		{"back to the caller", map[result]uint64{refused: 1}},
	} {
		b := start(t, store, "default")
		if _, err := b.peers.all(t.Context()); err != nil {
			t.Fatal(err)
		}
		behind(b)
		for id := range b.peers.list { // only a has a node ID, and it is the only one asked
			if b.peers.list[id].ID != a.id {
				b.peers.shun(b.peers.list[id].ID, "orders", refused)
			}
		}
		mu.Lock()
		to = a.address
		if row.leads == "back to the caller" {
			to = b.address
		}
		mu.Unlock()
		ids, _ := take(t, t.Context(), b, 10)
		if (len(ids) == 10) != (row.want[gave] == 1) {
			t.Errorf("%s: %d IDs", row.leads, len(ids))
		}
		wantForwards(t, b, row.want)
		b.stop()
	}
}

func pipe(to, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if _, e := to.Write(b[:n]); err != nil || e != nil {
			_, _ = to.Close(), from.Close()
			return
		}
	}
}

// TestReceiver: a server answers hops for itself that come from servers of its
// store.
func TestReceiver(t *testing.T) {
	store := new(memstore.Store)
	a, b := start(t, store, "default"), start(t, store, "default")
	elsewhere := start(t, new(memstore.Store), "default")
	proof, err := b.self.Proof(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := elsewhere.self.Proof(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := NewReceiver(a.Cluster, a.self)
	for _, row := range []struct {
		what string
		hop  service.Hop
		want error
	}{
		{"its own", service.Hop{Member: a.id, Proof: proof}, nil},
		{"another server's", service.Hop{Member: b.id, Proof: proof}, service.ErrOtherMember},
		{"nobody's", service.Hop{Proof: proof}, service.ErrOtherMember},
		{"of another store", service.Hop{Member: a.id, Proof: other}, members.ErrOtherStore},
		{"without a proof", service.Hop{Member: a.id}, members.ErrOtherStore},
	} {
		if err := r.Admit(t.Context(), row.hop); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.what, err, row.want)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Admit(gone, service.Hop{Member: a.id, Proof: members.Proof{Member: "b", Nonce: "n"}}); !errors.Is(err, sequencer.ErrUnavailable) {
		t.Errorf("with a store that does not answer: %v, want %v", err, sequencer.ErrUnavailable)
	}
	if owner := r.Owner("orders"); owner != "" {
		t.Errorf("without a node ID the owner is %q", owner)
	}
	mustTake(t, a, 1)
	if owner := r.Owner("orders"); owner == "" || owner != a.ownerOf(t, 0) {
		t.Errorf("the owner is %q, and in the store %q", owner, a.ownerOf(t, 0))
	}
}

// A credulous peer answers every hop, as one would that compares nothing.
type credulous struct{ *Receiver }

func (credulous) Admit(context.Context, service.Hop) error { return nil }

// An impostor answers every hop, for an owner of its choice.
type impostor struct {
	credulous
	owner string
}

func (i impostor) Owner(string) string { return i.owner }

// TestCredulousServer: also a server that answers what it should refuse cannot
// have another one give IDs that are not of a window of that one's store.
func TestCredulousServer(t *testing.T) {
	for _, who := range []string{"another store", "another store, with the right owner", "the same store"} {
		t.Run(who, func(t *testing.T) {
			store := new(memstore.Store)
			a := setup{store: store, peer: func(r *Receiver) service.Receiver { return credulous{r} }}.start(t)
			mustTake(t, a, 10)
			owner := a.ownerOf(t, 0)
			if who == "the same store" {
				b := start(t, store, "default")
				mustTake(t, b, 10)
				return
			}
			at := a.address
			b := start(t, store, "default")
			a.kill()
			other := setup{store: new(memstore.Store), at: listener(t, at), peer: func(r *Receiver) service.Receiver {
				if who == "another store" {
					return credulous{r}
				}
				// Its node ID has no holder in b's store.
				return impostor{credulous{r}, owner}
			}}
			if who != "another store" {
				other.nodes = sequencer.Range{Lo: 7, Hi: 7}
			}
			o := other.start(t)
			wantNone(t, b)
			wantForwards(t, b, map[result]uint64{rejected: 1})
			if made(o) == 0 {
				t.Error("the other server has made no ID: this test shows nothing")
			}
		})
	}
}

// ownerOf is the owner of a node ID.
func (s *server) ownerOf(t *testing.T, node uint64) string {
	t.Helper()
	i, err := s.Lookup(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	n, err := grant.LookupNode(t.Context(), s.store, i, node)
	if err != nil {
		t.Fatal(err)
	}
	return n.Owner
}

// TestWindows: which IDs another server may have made.
func TestWindows(t *testing.T) {
	const owner = "d41f0a6738be52c99e07ab135c64f820"
	l := firn.Default()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	config := grant.NewConfig(l, 0)
	config.MaxAhead = time.Second
	at := func(d time.Duration) span { return span{42, now.Add(d), now.Add(d)} }
	held := heldWindow{config, owner, now.Add(time.Minute)}
	for _, row := range []struct {
		what  string
		c     heldWindow
		owner string
		l     firn.Layout
		s     span
		want  bool
	}{
		{"now", held, owner, l, at(0), true},
		{"another owner", held, "another", l, at(0), false},
		{"no owner", held, "", l, at(0), false},
		{"given back", heldWindow{config, "", time.Time{}}, "", l, at(0), false},
		{"another layout", held, owner, firn.MustParseLayout("twitter"), at(0), false},
		{"the clock of the other is a little behind", held, owner, l, at(-10 * time.Second), true},
		{"far behind", held, owner, l, at(-11 * time.Second), false},
		{"a little ahead", held, owner, l, at(11 * time.Second), true},
		{"far ahead", held, owner, l, at(12 * time.Second), false},
		{"the last tick of the window", heldWindow{config, owner, now.Add(time.Second)}, owner, l, at(time.Second - time.Millisecond), true},
		{"after the window", heldWindow{config, owner, now.Add(time.Second)}, owner, l, at(time.Second), false},
		{"the end of the batch is after it", heldWindow{config, owner, now.Add(time.Second)}, owner, l, span{42, now, now.Add(time.Second)}, false},
		{"the beginning is far behind", held, owner, l, span{42, now.Add(-time.Minute), now}, false},
	} {
		if err := row.c.judge(row.l, row.owner, row.s, now, now); (err == nil) != row.want || err != nil && !errors.Is(err, errRejected) {
			t.Errorf("%s: %v, want that it is used: %t", row.what, err, row.want)
		}
	}
}

// TestWindowsAreReadAgain: a window that was renewed, or a node ID with another
// owner, is looked up again, and one that is known is not.
func TestWindowsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour) // after the layout's epoch
		store := &nettest.Store{Store: new(memstore.Store)}
		l := firn.Default()
		c := newWindows(store, service.NewFleet(store, nil).Lookup)
		open := func() *sequencer.Sequencer {
			q, err := sequencer.Open(t.Context(), store, "orders", &sequencer.Config{Layout: l, Window: 30 * time.Second, Nodes: &sequencer.Range{}})
			if err != nil {
				t.Fatal(err)
			}
			return q
		}
		check := func(q *sequencer.Sequencer) error {
			t.Helper()
			sent := time.Now()
			b, err := q.NextBatch(t.Context(), 100)
			if err != nil {
				t.Fatal(err)
			}
			s, err := spanOf(b, l.Decompose)
			if err != nil {
				t.Fatal(err)
			}
			return c.check(t.Context(), "orders", l, q.State().Owner, s, sent, time.Now())
		}
		want := func(what string, q *sequencer.Sequencer) {
			t.Helper()
			if err := check(q); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		a := open()
		want("the first", a)
		store.Cut.Store(true)
		want("the second, without the store", a)
		store.Cut.Store(false)
		time.Sleep(time.Minute)
		want("in a window that was renewed", a)
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := open()
		want("of another owner", b)
		time.Sleep(time.Minute)
		if _, err := b.Next(t.Context()); err != nil { // the window is renewed, and not known here
			t.Fatal(err)
		}
		store.Cut.Store(true)
		if err := check(b); !errors.Is(err, errUnchecked) || !errors.Is(err, sequencer.ErrUnavailable) || errors.Is(err, errRejected) {
			t.Errorf("without the store: %v, want %v", err, errUnchecked)
		}
		store.Cut.Store(false)
		want("with the store", b)
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A batches backend gives a batch that it did not make.
type batches struct{ b firn.Batch }

func (b batches) Sequencer(context.Context, string) (service.Sequencer, error) {
	return service.Sequencer{Layout: firn.Default(), Source: b}, nil
}

func (batches) Ready(context.Context) error             { return nil }
func (batches) Admin() service.Administrator            { return nil }
func (batches) Opened(string) (service.Sequencer, bool) { return service.Sequencer{}, false }

func (b batches) NextBatch(context.Context, int) (firn.Batch, error) { return b.b, nil }

// TestLyingServer: whatever a server answers, the caller returns no ID twice,
// and none that the server cannot have made.
func TestLyingServer(t *testing.T) {
	l := firn.Default()
	for _, row := range []struct {
		what string
		at   [2]time.Duration // of two IDs, from now
		node [2]uint64
		seq  [2]uint64
		want result
	}{
		{"good", [2]time.Duration{}, [2]uint64{}, [2]uint64{1, 2}, gave},
		{"twice", [2]time.Duration{}, [2]uint64{}, [2]uint64{1, 1}, rejected},
		{"two node IDs", [2]time.Duration{}, [2]uint64{0, 1}, [2]uint64{1, 2}, rejected},
		{"another node ID", [2]time.Duration{}, [2]uint64{1, 1}, [2]uint64{1, 2}, rejected},
		{"long ago", [2]time.Duration{-time.Hour, 0}, [2]uint64{}, [2]uint64{1, 2}, rejected},
		{"in the future", [2]time.Duration{0, 25 * time.Second}, [2]uint64{}, [2]uint64{1, 2}, rejected},
		{"after the window", [2]time.Duration{time.Hour, time.Hour}, [2]uint64{}, [2]uint64{1, 2}, rejected},
	} {
		t.Run(row.what, func(t *testing.T) {
			store := new(memstore.Store)
			a := start(t, store, "default")
			mustTake(t, a, 1)
			b := start(t, store, "default")
			now := time.Now()
			var runs []firn.Run
			for i := range 2 {
				id, err := l.Compose(firn.Parts{Time: now.Add(row.at[i]), Node: row.node[i], Seq: row.seq[i]})
				if err != nil {
					t.Fatal(err)
				}
				runs = append(runs, firn.Run{First: id, Step: 1, Count: 1})
			}
			liar := listener(t, "127.0.0.1:0")
			serveAt(t, liar, rpcapi.Config{
				Backend: batches{firn.BatchFromRuns(runs...)},
				Peer:    impostor{credulous{NewReceiver(a.Cluster, a.self)}, a.ownerOf(t, 0)},
			})
			if _, err := b.peers.all(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.peers.mu.Lock()
			for i, m := range b.peers.list {
				if m.ID == a.id {
					b.peers.list[i].Address = liar.Addr().String()
				}
			}
			b.peers.read = time.Now().Add(time.Hour)
			b.peers.mu.Unlock()
			ids, err := take(t, t.Context(), b, 2)
			if (len(ids) == 2) != (row.want == gave) {
				t.Errorf("%v, %v", ids, err)
			}
			wantForwards(t, b, map[result]uint64{row.want: 1})
		})
	}
}

// TestSpan: the IDs of an answer have one node ID, and none is repeated.
func TestSpan(t *testing.T) {
	l := firn.MustParseLayout("hazelcast")
	id := func(ms, node, seq uint64) firn.ID {
		id, err := l.Compose(firn.Parts{Time: time.UnixMilli(1795132800000 + int64(ms)), Node: node, Seq: seq})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, row := range []struct {
		what string
		ids  []firn.ID
		want bool
	}{
		{"one", []firn.ID{id(0, 5, 0)}, true},
		{"in order", []firn.ID{id(0, 5, 0), id(0, 5, 1), id(1, 5, 0), id(9, 5, 0)}, true},
		{"another node ID", []firn.ID{id(0, 5, 0), id(0, 6, 1)}, false},
		{"twice", []firn.ID{id(0, 5, 0), id(0, 5, 0)}, false},
		{"back", []firn.ID{id(1, 5, 0), id(0, 5, 1)}, false},
		{"not of this layout", []firn.ID{1 << 63}, false},
	} {
		var runs []firn.Run
		for _, id := range row.ids {
			runs = append(runs, firn.Run{First: id, Step: 1, Count: 1})
		}
		s, err := spanOf(firn.BatchFromRuns(runs...), l.Decompose)
		if (err == nil) != row.want || err != nil && !errors.Is(err, errRejected) {
			t.Errorf("%s: %v, want that it is used: %t", row.what, err, row.want)
		}
		if first, _ := l.Decompose(row.ids[0]); err == nil && (s.node != 5 || !s.first.Equal(first.Time)) {
			t.Errorf("%s: %+v", row.what, s)
		}
	}
}

// TestDeadServers: servers that are gone are said to be that, and not to be a
// store that does not answer. They are not asked again and again, and those
// that live are asked.
func TestDeadServers(t *testing.T) {
	store := new(memstore.Store)
	a := start(t, store, "default")
	mustTake(t, a, 10)
	var dead []*server
	for range 4 {
		dead = append(dead, start(t, store, "default"))
	}
	b := start(t, store, "default")
	for _, d := range dead {
		d.kill()
	}
	for range 20 {
		mustTake(t, b, 10)
	}
	f := b.Forwards()
	if f["ok"] != 20 || f["unreachable"] > uint64(len(dead)) || f["failed"]+f["refused"] != 0 {
		t.Errorf("%v", f)
	}
	a.kill()
	err := wantNone(t, b)
	for range 100 {
		err = wantNone(t, b)
	}
	fault := service.FaultOf(err, 10*time.Second, false)
	if fault.Kind != service.NodesExhausted || fault.Cause != nil {
		t.Errorf("%+v, want nodes-exhausted", fault)
	}
}

// TestSilentServer: one that accepts connections and says nothing does not use
// up the time in which another one can be asked.
func TestSilentServer(t *testing.T) {
	store := new(memstore.Store)
	a := start(t, store, "default")
	mustTake(t, a, 10)
	l := listener(t, "127.0.0.1:0")
	defer l.Close()
	silent := members.New(store, members.Options{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		silent.Run(ctx, func() members.Member {
			return members.Member{Host: "h", Address: l.Addr().String(), Holds: []members.Held{{Sequencer: "orders"}}}
		})
	}()
	defer func() { stop(); <-done }()
	if _, err := silent.Proof(ctx); err != nil {
		t.Fatal(err)
	}
	b := start(t, store, "default")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for b.Forwards()["slow"] == 0 { // which of the two is asked first is chance
		ids, err := take(t, ctx, b, 10)
		if err != nil || len(ids) != 10 {
			t.Fatalf("%d IDs, %v; %v", len(ids), err, b.Forwards())
		}
		if b.Forwards()["slow"] == 0 {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
		}
	}
}

// TestWithoutStore: knowledge about other servers remains valid for a while
// when the store does not answer, like the window of the other server.
func TestWithoutStore(t *testing.T) {
	store := new(memstore.Store)
	a, b := start(t, store, "default"), start(t, store, "default")
	mustTake(t, a, 10)
	mustTake(t, b, 10)
	s, err := b.Sequencer(t.Context(), "orders") // that of others, which lasts
	if err != nil {
		t.Fatal(err)
	}
	a.store.Cut.Store(true)
	b.store.Cut.Store(true)
	b.peers.mu.Lock()
	b.peers.read = time.Now().Add(-time.Minute)
	b.peers.mu.Unlock()
	if _, err := s.Source.NextBatch(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	a.store.Cut.Store(false)
	b.windows.mu.Lock()
	clear(b.windows.known)
	b.windows.mu.Unlock()
	if got, err := s.Source.NextBatch(t.Context(), 10); got.Len() != 0 || !errors.Is(err, sequencer.ErrUnavailable) {
		t.Errorf("%d IDs that cannot be checked, and %v, want none and %v", got.Len(), err, sequencer.ErrUnavailable)
	}
}
