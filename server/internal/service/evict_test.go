package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/auth"
)

// inStoreBackend runs a test with a StoreBackend in a synctest bubble.
func inStoreBackend(t *testing.T, c StoreBackendConfig, store grant.Store, run func(t *testing.T, b *StoreBackend)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
		c.Admin = NewStoreAdmin(store, nil)
		b := NewStoreBackend(c)
		defer b.Close(context.WithoutCancel(t.Context()))
		run(t, b)
	})
}

func takeOne(t *testing.T, b *StoreBackend, name string) uint64 {
	t.Helper()
	s, err := b.Sequencer(t.Context(), name, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return takeFrom(t, s)
}

func takeFrom(t *testing.T, s *Sequencer) uint64 {
	t.Helper()
	b := must.Get(s.Take(t.Context(), 1))(t)
	return b.At(0).Uint64()
}

// heldNodes counts the held node IDs of a sequencer.
func heldNodes(t *testing.T, s grant.Store, name string) (n int) {
	t.Helper()
	must.Do(t, grant.Nodes(t.Context(), s, name, func(i grant.NodeInfo, err error) bool {
		if err == nil && i.Held {
			n++
		}
		return true
	}))
	return n
}

// TestIdleCloses: the sequencer that was unused the longest makes room for
// another one and gives its node ID back, and one in use keeps it. A client
// that still has the closed one gets new IDs of it all the same.
func TestIdleCloses(t *testing.T) {
	store := new(memstore.Store)
	// One node ID: it must be given back before it is taken again.
	inStoreBackend(t, StoreBackendConfig{MaxSequencers: 2, Options: sequencer.Options{Nodes: &grant.NodeRange{}}}, store, func(t *testing.T, b *StoreBackend) {
		takeOne(t, b, "other")
		idle := must.Get(b.Sequencer(t.Context(), "idle", nil))(t)
		last := takeFrom(t, idle)
		time.Sleep(2 * minUnused)
		takeFrom(t, idle)
		takeOne(t, b, "busy") // closes other
		for range 4 {
			time.Sleep(minUnused / 2)
			takeOne(t, b, "busy")
		}
		takeOne(t, b, "other")
		synctest.Wait()
		if open := b.Opened("idle") != nil; open || heldNodes(t, store, "idle") != 0 {
			t.Errorf("a sequencer that is not used is open: %t, and holds %d node IDs", open, heldNodes(t, store, "idle"))
		}
		if open := b.Opened("busy") != nil; !open || heldNodes(t, store, "busy") != 1 {
			t.Errorf("a sequencer that is used is open: %t, and holds %d node IDs", open, heldNodes(t, store, "busy"))
		}
		if id := takeFrom(t, idle); id <= last {
			t.Errorf("after it was closed it gives %d, not more than %d", id, last)
		}
		if id, next := takeOne(t, b, "idle"), takeFrom(t, idle); next <= id {
			t.Errorf("a source of before gives %d, not more than %d", next, id)
		}
	})
}

// TestNamesOfOthers: a client that uses as many names as there is room for does
// not keep an existing sequencer from another client, and delays the creation
// of one only for a while.
func TestNamesOfOthers(t *testing.T) {
	const room = 8
	store := new(memstore.Store)
	inStoreBackend(t, StoreBackendConfig{MaxSequencers: room}, store, func(t *testing.T, b *StoreBackend) {
		takeOne(t, b, "theirs")
		fill := func() {
			for i := range room {
				takeOne(t, b, fmt.Sprint("mine-", i))
			}
		}
		for i := range room - 1 {
			takeOne(t, b, fmt.Sprint("mine-", i))
		}
		if _, err := b.Sequencer(t.Context(), "new", nil); !errors.Is(err, ErrTooManyNames) {
			t.Errorf("a new one beside %d that are in use: %v", room, err)
		}
		time.Sleep(2 * minUnused)
		takeOne(t, b, fmt.Sprint("mine-", room-1)) // closes one that is idle
		for range 3 {
			fill()
			takeOne(t, b, "theirs")
		}
		if n := len(b.opened()); n > room {
			t.Errorf("%d sequencers are open, want %d at most", n, room)
		}
		time.Sleep(2 * minUnused)
		takeOne(t, b, "new")
	})
}

// creators allows creation to clients with a token for it.
type creators struct{ asked atomic.Int64 }

func (a *creators) Allow(c *auth.Credentials, do auth.Action, _ string) error {
	if do == auth.Create {
		a.asked.Add(1)
		if c.Token != "create" {
			return auth.ErrForbidden
		}
	}
	return nil
}

// TestRateLimitsOfTenants: what one client of the token file creates or does
// not find delays no other, and not those without an entry.
func TestRateLimitsOfTenants(t *testing.T) {
	a, hashA := auth.NewToken()
	b, hashB := auth.NewToken()
	set := must.Get(auth.Parse([]byte("tokens:\n- {name: a, role: generate, sha256: "+hashA+"}\n"+
		"- {name: b, role: generate, sha256: "+hashB+"}\n"), "f"))(t)
	guard := auth.NewGuard(func() *auth.Set { return set }, nil)
	store := new(memstore.Store)
	for i := range 3 {
		must.Get(grant.Create(t.Context(), store, fmt.Sprint("there-", i), grant.DefaultConfig(store, firn.Default(), nil), nil))(t)
	}
	inStoreBackend(t, StoreBackendConfig{MaxSequencers: 10_000}, store, func(t *testing.T, backend *StoreBackend) {
		front := Front{Backend: backend, Auth: guard, RequestTimeout: time.Minute}
		find := func(token, name string) error {
			creds := &auth.Credentials{Token: token, Given: true}
			must.Do(t, guard.Allow(creds, auth.Take, name))
			_, err := front.open(t.Context(), creds, name, new(Request))
			return err
		}
		limited := func(err error) bool { return err != nil && ProblemOf(err, time.Second, false).Kind == Busy }
		n := 0
		for ; !limited(find(a, fmt.Sprint("a-", n))); n++ {
		}
		if err := find(b, "b"); n != backend.creations.rate.Burst || err != nil {
			t.Errorf("after %d sequencers of a, b creates one: %v", n, err)
		}
		backend.config.Options.MustExist = true
		for n = 0; !limited(find(a, fmt.Sprint("no-", n))); n++ {
		}
		if !limited(find(a, "there-0")) || n > backend.missed.rate.Burst {
			t.Errorf("after %d unknown names, a is not limited", n)
		}
		if err := find(b, "there-1"); err != nil {
			t.Errorf("after %d unknown names of a, b finds one that exists: %v", n, err)
		}
		if _, err := backend.Sequencer(t.Context(), "there-2", nil); err != nil {
			t.Errorf("and the server itself: %v", err)
		}
	})
}

// takeAs takes an ID with a token.
func takeAs(t *testing.T, b Backend, a auth.Authorizer, name, token string) error {
	front := Front{Backend: b, Auth: a, RequestTimeout: DefaultRequestTimeout}
	p := front.Take(t.Context(), &auth.Credentials{Token: token, Given: true}, name, &Request{Count: 1}, new(Batch))
	if p == nil {
		return nil
	}
	return p
}

// TestCreateIsARight: a client without the right creates nothing, whatever it
// uses, and takes IDs of existing sequencers.
func TestCreateIsARight(t *testing.T) {
	static := must.Get(NewStaticBackend(StaticBackendConfig{}))(t)
	store := new(memstore.Store)
	inStoreBackend(t, StoreBackendConfig{}, store, func(t *testing.T, b *StoreBackend) {
		for what, b := range map[string]Backend{"store": b, "static": static} {
			a := new(creators)
			find := func(token, name string) error {
				return takeAs(t, b, a, name, token)
			}
			if err := find("x", "a-1"); ProblemOf(err, time.Second, false).Kind != Forbidden {
				t.Errorf("%s: %v, want forbidden", what, err)
			}
			if err := find("create", "a-1"); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			asked := a.asked.Load()
			if err := find("x", "a-1"); err != nil || a.asked.Load() != asked {
				t.Errorf("%s: one that exists: %v, asked %d times more", what, err, a.asked.Load()-asked)
			}
		}
		n := 0
		_ = grant.Sequencers(t.Context(), store, func(grant.Info, error) bool { n++; return true })
		if n != 1 {
			t.Errorf("the store has %d sequencers, want 1", n)
		}
	})
}

// TestRefusedBesideOthers: a client without the right to create begins to open
// a sequencer that another one waits for. The refusal is the first one's only.
func TestRefusedBesideOthers(t *testing.T) {
	store := &faultstore.Store{Store: new(memstore.Store), Delay: 100 * time.Millisecond}
	inStoreBackend(t, StoreBackendConfig{}, store, func(t *testing.T, b *StoreBackend) {
		refused := make(chan error, 1)
		go func() {
			refused <- takeAs(t, b, new(creators), "orders", "x")
		}()
		time.Sleep(store.Delay / 2)
		if err := takeAs(t, b, new(creators), "orders", "create"); err != nil {
			t.Errorf("a client that may create it: %v", err)
		}
		if err := <-refused; ProblemOf(err, time.Second, false).Kind != Forbidden {
			t.Errorf("one that may not: %v, want forbidden", err)
		}
	})
}

// TestAttemptOfAnother: a call that finds an attempt to open the sequencer
// under way does not fail or panic with it, but tries itself.
func TestAttemptOfAnother(t *testing.T) {
	for _, row := range []struct {
		fail   func() error
		err    error
		panics any
	}{
		{func() error { return errors.New("not readable now") }, ErrTemplate, nil},
		{func() error { panic("template") }, nil, "template"},
	} {
		used := 0
		template := func(string, *sequencer.Options) error {
			if used++; used == 1 {
				time.Sleep(time.Second)
				return row.fail()
			}
			return nil
		}
		inStoreBackend(t, StoreBackendConfig{Template: template}, new(memstore.Store), func(t *testing.T, b *StoreBackend) {
			var err error
			panicked := make(chan any, 1)
			go func() {
				defer func() { panicked <- recover() }()
				_, err = b.Sequencer(t.Context(), "orders", nil)
			}()
			time.Sleep(time.Second / 2)
			takeOne(t, b, "orders")
			if got := <-panicked; got != row.panics || !errors.Is(err, row.err) {
				t.Errorf("the first call panics with %v, %v, want %v, %v", got, err, row.panics, row.err)
			}
		})
	}
}

// asked are Peers that count how often they are asked, and give nothing.
type asked struct{ n int }

func (a *asked) Take(_ context.Context, _ string, _ firn.Layout, _ int, lacks error) (Batch, error) {
	a.n++
	return Batch{}, lacks
}

func (*asked) CanHelp() bool { return true }

// TestLostNodeID: a server whose node ID another one has taken over asks other
// servers, but not for a request that was forwarded to it.
func TestLostNodeID(t *testing.T) {
	store, peers := &faultstore.Store{Store: new(memstore.Store)}, new(asked)
	config := StoreBackendConfig{Options: sequencer.Options{Window: 30 * time.Second, Nodes: &grant.NodeRange{}, AllowClockAhead: true}, Peers: peers}
	inStoreBackend(t, config, store, func(t *testing.T, b *StoreBackend) {
		takeOne(t, b, "orders")
		store.Cut.Store(true)
		time.Sleep(time.Minute)
		config.Admin = NewStoreAdmin(store.Store, nil)
		other := NewStoreBackend(config)
		defer other.Close(context.WithoutCancel(t.Context()))
		takeOne(t, other, "orders")
		store.Cut.Store(false)
		for want, ctx := range []context.Context{WithForwarded(t.Context()), t.Context()} {
			limited, cancel := context.WithTimeout(ctx, DefaultRequestTimeout)
			_, err := b.Opened("orders").Take(limited, 1)
			cancel()
			if !errors.Is(err, grant.ErrNodesExhausted) || peers.n != want {
				t.Errorf("%v, and others were asked %d times, want %d", err, peers.n, want)
			}
		}
	})
}
