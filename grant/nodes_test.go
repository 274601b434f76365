package grant_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// TestSetNodes: when it returns, no member can use a node ID outside of the
// range, although one of them is cut off; the others continue inside.
func TestSetNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := new(memstore.Store)
		c := config("default,epoch=0")
		c.Nodes = &grant.Range{Lo: 0, Hi: 7}
		create(t, s, "s", c, time.Now())
		other := c
		other.Nodes = &grant.Range{Lo: 0, Hi: 3}
		if _, err := grant.Create(ctx, s, "s", other, nil); !errors.Is(err, grant.ErrMismatch) {
			t.Errorf("created with another range: %v", err)
		}
		var all []*member
		cut := &cutStore{Store: s}
		for i := range 4 {
			m := newMember(s, "s")
			if i == 0 {
				_ = m.Close(ctx)
				m = newMember(cut, "s")
			}
			defer m.Close(ctx)
			hold(t, m.Keeper)
			all = append(all, m)
		}
		cut.cut.Store(true)
		for range 2 { // the second time, nothing is left to do
			if _, err := grant.SetNodes(ctx, s, "s", &grant.Range{Lo: 6, Hi: 7}, nil); err != nil {
				t.Fatal(err)
			}
			for number, n := range nodes(t, s, "s") {
				if number < 6 && n.Held && !n.Until.Before(time.Now()) {
					t.Errorf("node %d is held until %v", number, n.Until)
				}
			}
			for i, m := range all {
				if m.g == nil {
					continue
				}
				id, err := m.g.TryNext()
				if p, _ := m.layout.Decompose(id); err == nil && p.Node < 6 {
					t.Errorf("member %d makes IDs of node %d", i, p.Node)
				}
			}
		}
		if _, err := grant.SetNodes(ctx, s, "s", &grant.Range{Lo: 6, Hi: 1 << 20}, nil); err == nil {
			t.Error("a range beyond the layout's is taken")
		}
		if info, err := grant.SetNodes(ctx, s, "s", nil, nil); err != nil || info.Config.Nodes != nil {
			t.Errorf("all again: %+v, %v", info, err)
		}
	})
}
