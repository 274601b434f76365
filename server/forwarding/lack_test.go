package forwarding

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/members"
)

// TestLackOfOne: that another server has no node ID of one sequencer says
// nothing of another one that it holds. It is not asked for the first again and
// again.
func TestLackOfOne(t *testing.T) {
	store := new(memstore.Store)
	q, err := sequencer.Open(t.Context(), store, "users", &sequencer.Config{Layout: firn.Default(), Nodes: &sequencer.Range{Lo: 0, Hi: 0}})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close(context.Background())
	a, b := start(t, store, "default"), start(t, store, "default")
	mustTake(t, a, 10)
	for range 10 {
		s, err := b.Sequencer(t.Context(), "users")
		if err == nil {
			_, err = s.Source.NextBatch(t.Context(), 1)
		}
		if !errors.Is(err, grant.ErrNodesExhausted) {
			t.Errorf("users: %v, want %v", err, grant.ErrNodesExhausted)
		}
		mustTake(t, b, 1) // of orders
	}
	if f := b.Forwards(); f["ok"] != 10 || f["exhausted"] == 0 || f["exhausted"] >= 10 {
		t.Errorf("%v", f)
	}
}

// A slowFor guard blocks calls for one sequencer until it is released.
type slowFor struct {
	name string
	end  chan struct{}
}

func (g slowFor) Allow(_ *auth.Credentials, _ auth.Action, name string) error {
	if name == g.name {
		<-g.end
	}
	return nil
}

// TestSlowWithOne: another server that does not answer in time for one
// sequencer, because it waits for its next tick, is still asked for other
// sequencers.
func TestSlowWithOne(t *testing.T) {
	store := new(memstore.Store)
	guard := slowFor{"slow", make(chan struct{})}
	a := setup{store: store, guard: guard}.start(t)
	mustTake(t, a, 10)
	if _, err := a.Sequencer(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	b := start(t, store, "default")
	t.Cleanup(func() { close(guard.end) })
	s, err := b.Sequencer(t.Context(), "slow")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Source.NextBatch(t.Context(), 1); !errors.Is(err, grant.ErrNodesExhausted) || !strings.Contains(err.Error(), "1 did not answer in time") {
		t.Errorf("%v, want that the other server did not answer", err)
	}
	mustTake(t, b, 10)
	if f := b.Forwards(); f["slow"] != 1 || f["ok"] != 1 || f["unreachable"] != 0 {
		t.Errorf("%v", f)
	}
}

// TestManySequencers: servers that hold more node IDs than they can list are
// all asked.
func TestManySequencers(t *testing.T) {
	store := new(memstore.Store)
	full := make([]members.Held, members.MaxHeld)
	for i := range full {
		full[i].Sequencer = fmt.Sprint("another-", i)
	}
	a := setup{store: store, holds: full}.start(t)
	mustTake(t, a, 10)
	for i := range 12 {
		o := setup{store: store}
		if i < 6 {
			o.holds = full
		}
		o.start(t)
	}
	b := start(t, store, "default")
	for range 20 {
		mustTake(t, b, 10)
	}
}
