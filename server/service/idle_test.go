package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/auth"
)

// inCluster runs a test with a Cluster in a synctest bubble.
func inCluster(t *testing.T, c ClusterConfig, store grant.Store, run func(t *testing.T, c *Cluster)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour)
		c.Fleet = NewFleet(store, nil)
		cluster := NewCluster(c)
		defer cluster.Close(context.WithoutCancel(t.Context()))
		run(t, cluster)
	})
}

func takeOne(t *testing.T, c *Cluster, name string) firn.ID {
	t.Helper()
	s, err := c.Sequencer(t.Context(), name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return takeFrom(t, s)
}

func takeFrom(t *testing.T, s Sequencer) firn.ID {
	t.Helper()
	b, err := s.Source.NextBatch(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for id := range b.All() {
		return id
	}
	return 0
}

// heldNodes counts the held node IDs of a sequencer.
func heldNodes(t *testing.T, s grant.Store, name string) (n int) {
	t.Helper()
	if err := grant.Nodes(t.Context(), s, name, func(i grant.NodeInfo, err error) bool {
		if err == nil && i.Held {
			n++
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestIdleCloses: an unused sequencer gives its node ID back, and one in use
// keeps it. A client that still has the closed one gets new IDs of it all the
// same.
func TestIdleCloses(t *testing.T) {
	store := new(memstore.Store)
	// One node ID: it must be given back before it is taken again.
	inCluster(t, ClusterConfig{Config: sequencer.Config{Nodes: &sequencer.Range{}}}, store, func(t *testing.T, c *Cluster) {
		idle, err := c.Sequencer(t.Context(), "idle")
		if err != nil {
			t.Fatal(err)
		}
		last := takeFrom(t, idle)
		for range 16 {
			takeOne(t, c, "busy")
			time.Sleep(maxIdle / 8)
		}
		if _, open := c.Opened("idle"); open || heldNodes(t, store, "idle") != 0 {
			t.Errorf("a sequencer that is not used is open: %t, and holds %d node IDs", open, heldNodes(t, store, "idle"))
		}
		if _, open := c.Opened("busy"); !open || heldNodes(t, store, "busy") != 1 {
			t.Errorf("a sequencer that is used is open: %t, and holds %d node IDs", open, heldNodes(t, store, "busy"))
		}
		if id := takeFrom(t, idle); id <= last {
			t.Errorf("after it was closed it gives %d, not more than %d", id, last)
		}
		if id, next := takeOne(t, c, "idle"), takeFrom(t, idle); next <= id {
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
	inCluster(t, ClusterConfig{MaxNames: room}, store, func(t *testing.T, c *Cluster) {
		takeOne(t, c, "theirs")
		fill := func() {
			for i := range room {
				takeOne(t, c, fmt.Sprint("mine-", i))
			}
		}
		for i := range room - 1 {
			takeOne(t, c, fmt.Sprint("mine-", i))
		}
		if _, err := c.Sequencer(t.Context(), "new"); !errors.Is(err, ErrTooManyNames) {
			t.Errorf("a new one beside %d that are in use: %v", room, err)
		}
		time.Sleep(2 * fewIdle)
		takeOne(t, c, fmt.Sprint("mine-", room-1)) // closes one that is idle
		for range 3 {
			fill()
			takeOne(t, c, "theirs")
		}
		if n := len(c.byName); n > room {
			t.Errorf("%d sequencers are open, want %d at most", n, room)
		}
		time.Sleep(2 * fewIdle)
		takeOne(t, c, "new")
	})
}

// creators allows creation to clients with a token for it, and counts uses of
// unknown names.
type creators struct{ asked, missed atomic.Int64 }

func (a *creators) Allow(c *auth.Credentials, do auth.Action, name string) error {
	switch {
	case do == auth.Look && c.Token == "hasty":
		return &auth.PaceError{Wait: 2 * time.Second}
	case do == auth.Missed:
		a.missed.Add(1)
	case do == auth.Create:
		a.asked.Add(1)
		if c.Token == "slow" {
			return &auth.PaceError{Wait: time.Second}
		}
		if c.Token != "create" {
			return auth.ErrForbidden
		}
	case do == auth.Take && !strings.HasPrefix(name, "a-"):
		return auth.ErrForbidden
	}
	return nil
}

// TestCreateIsARight: a client without the right creates nothing, whatever it
// uses, and takes IDs of existing sequencers.
func TestCreateIsARight(t *testing.T) {
	static, err := NewStatic(StaticConfig{})
	if err != nil {
		t.Fatal(err)
	}
	store := new(memstore.Store)
	inCluster(t, ClusterConfig{}, store, func(t *testing.T, c *Cluster) {
		for what, b := range map[string]Backend{"cluster": c, "static": static} {
			a := new(creators)
			find := func(token, name string) error {
				_, err := Find(t.Context(), b, name, a, func() *auth.Credentials { return &auth.Credentials{Token: token, Given: true} })
				return err
			}
			if err := find("x", "a-1"); FaultOf(err, time.Second, false).Kind != Forbidden {
				t.Errorf("%s: %v, want forbidden", what, err)
			}
			if f := FaultOf(find("slow", "a-1"), time.Second, false); f.Kind != Busy || f.Retry != time.Second {
				t.Errorf("%s: %+v, want busy for a second", what, f)
			}
			if what == "cluster" {
				if f := FaultOf(find("hasty", "a-1"), time.Second, false); f.Kind != Busy || f.Retry != 2*time.Second || a.asked.Load() != 2 {
					t.Errorf("%s: %+v, want busy for two seconds, before the store is asked", what, f)
				}
				if n := a.missed.Load(); n != 2 {
					t.Errorf("%s: %d names that do not exist were counted, want 2", what, n)
				}
			}
			if err := find("create", "a-1"); err != nil || a.missed.Load() > 2 {
				t.Errorf("%s: %v, %d counted", what, err, a.missed.Load())
			}
			asked := a.asked.Load()
			if err := find("x", "a-1"); err != nil || a.asked.Load() != asked {
				t.Errorf("%s: one that exists: %v, asked %d times more", what, err, a.asked.Load()-asked)
			}
		}
		n := 0
		_ = grant.Sequencers(t.Context(), store, func(string, grant.Info, error) bool { n++; return true })
		if n != 1 {
			t.Errorf("the store has %d sequencers, want 1", n)
		}
	})
}

// A listed store counts how often it is listed.
type listed struct {
	memstore.Store
	lists atomic.Int64
}

func (l *listed) List(ctx context.Context, prefix string, each func(string, []byte) bool) error {
	l.lists.Add(1)
	return l.Store.List(ctx, prefix, each)
}

// TestSuggestions: the error for a name that does not exist suggests only a
// name that the client may use. Misses cost few lists of the store, however
// many there are.
func TestSuggestions(t *testing.T) {
	store := new(listed)
	exists := func(name string) (Template, error) {
		return Template{Existing: !strings.HasSuffix(name, "orders")}, nil
	}
	inCluster(t, ClusterConfig{Template: exists}, store, func(t *testing.T, c *Cluster) {
		takeOne(t, c, "a-orders")
		takeOne(t, c, "b-orders")
		miss := func(name string) string {
			time.Sleep(suggestEvery)
			_, err := Find(t.Context(), c, name, new(creators), func() *auth.Credentials { return &auth.Credentials{Token: "create"} })
			if !errors.Is(err, ErrNoSequencer) {
				t.Fatalf("%s: %v", name, err)
			}
			return err.Error()
		}
		if text := miss("a-orderz"); !strings.Contains(text, "did you mean a-orders") {
			t.Errorf("no suggestion: %s", text)
		}
		if text := miss("b-orderz"); strings.Contains(text, "b-orders") {
			t.Errorf("another tenant's name: %s", text)
		}
		before := store.lists.Load()
		for range 4 * int(namesEvery/suggestEvery) {
			miss("a-orderz")
		}
		if n := store.lists.Load() - before; n > 6 {
			t.Errorf("misses in 40 s listed the store %d times", n)
		}
	})
}
