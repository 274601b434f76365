package forwarding

import (
	"context"
	"errors"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// TestLackOfOne: that another server has no node ID of one sequencer says nothing of
// another one that it holds. It is not asked for the first again and again.
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
