package sequencer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// TestOpenEnded: no member opens a sequencer whose layout has no time left, and
// none claims a node ID of it.
func TestOpenEnded(t *testing.T) {
	s := new(memstore.Store)
	layout := firn.MustParseLayout("bits=time:31.node:10.seq:12,unit=1ms,epoch=2014-01-01T00:00:00Z")
	at := layout.Last()
	open := func(c *sequencer.Options) error {
		c.Now = func() time.Time { return at }
		q, err := sequencer.Open(t.Context(), s, "orders", c)
		if err == nil {
			closeIt(t, q)
		}
		return err
	}
	if err := open(&sequencer.Options{Layout: layout}); err != nil {
		t.Errorf("in the last millisecond: %v", err)
	}
	at = at.Add(layout.Unit())
	for what, c := range map[string]*sequencer.Options{"its own": {}, "the same": {Layout: layout}} {
		if err := open(c); !errors.Is(err, firn.ErrTimeOver) {
			t.Errorf("with %s settings, after the last millisecond: %v, want firn.ErrTimeOver", what, err)
		}
	}
	s = new(memstore.Store)
	if err := open(&sequencer.Options{Layout: layout}); !errors.Is(err, firn.ErrTimeOver) {
		t.Errorf("a new one: %v, want firn.ErrTimeOver", err)
	}
	_ = s.List(t.Context(), "", func(key string, _ []byte) bool {
		t.Errorf("it has written %s", key)
		return true
	})
}

// TestOpenRetried opens with contexts that are too short for the store, more
// often than there are node IDs. None may stay claimed.
func TestOpenRetried(t *testing.T) {
	for _, patience := range []time.Duration{50, 250, 350, 450, 650, 950} {
		in2026(t, func(t *testing.T) {
			s := &faultstore.Store{Store: new(memstore.Store), Delay: 100 * time.Millisecond}
			nodes := &grant.NodeRange{Lo: 0, Hi: 3}
			create(t, s.Store, sixteen, time.Minute)
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), patience*time.Millisecond)
				began := time.Now()
				q, err := sequencer.Open(ctx, s, "orders", &sequencer.Options{Nodes: nodes})
				if took := time.Since(began); took > patience*time.Millisecond {
					t.Errorf("Open took %v under a context of %v", took, patience*time.Millisecond)
				}
				cancel()
				switch {
				case err == nil:
					closeIt(t, q)
				case errors.Is(err, grant.ErrNodesExhausted):
					t.Fatalf("contexts of %v have used up the node IDs: %v", patience*time.Millisecond, err)
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// A prefix and a layout are those of a new sequencer. An existing one must have
// them, except for how many low bits are even, which is its own.
func TestOpenForms(t *testing.T) {
	in2026(t, func(t *testing.T) {
		s := new(memstore.Store)
		for _, row := range []struct {
			config sequencer.Options
			ok     bool
		}{
			{sequencer.Options{Layout: firn.Default(), Prefix: "Order"}, false},
			{sequencer.Options{Layout: firn.MustParseLayout("default,even=7"), Prefix: "order"}, true},
			{sequencer.Options{Layout: firn.Default()}, true},
			{sequencer.Options{Layout: firn.MustParseLayout("default,even=0")}, true},
			{sequencer.Options{Layout: firn.MustParseLayout("default,epoch=0")}, false},
			{sequencer.Options{}, true},
			{sequencer.Options{Prefix: "purchase"}, false},
		} {
			q, err := sequencer.Open(t.Context(), s, "orders", &row.config)
			if (err == nil) != row.ok {
				t.Errorf("Open with prefix %q and layout %v: %v", row.config.Prefix, row.config.Layout, err)
			}
			if err != nil {
				continue
			}
			if c := q.Config(); c.Prefix != "order" || !strings.HasSuffix(c.Layout.String(), ",even=7") {
				t.Errorf("prefix %q and layout %v, want order and default,even=7", c.Prefix, c.Layout)
			}
			must.Do(t, q.Close(t.Context()))
		}
	})
}

// TestNilStore: a nil store is a mistake of the program, and Open says which.
func TestNilStore(t *testing.T) {
	defer func() {
		if got, want := recover(), "sequencer: Open needs a store"; got != want {
			t.Errorf("Open panics with %v, want %q", got, want)
		}
	}()
	_, err := sequencer.Open(t.Context(), nil, "orders", &sequencer.Options{Layout: layout})
	t.Errorf("Open = %v, want a panic", err)
}

// TestNilOptions: nil Options are the zero Options, for Open and for Config.
func TestNilOptions(t *testing.T) {
	var o *sequencer.Options
	c := o.Config(nil)
	if want := new(sequencer.Options).Config(nil); c != want || c.Check() == nil {
		t.Errorf("configuration %+v, check %v, want %+v, which has no layout", c, c.Check(), want)
	}
	if _, err := sequencer.Open(t.Context(), new(memstore.Store), "orders", o); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("Open = %v, want ErrNotFound: without a layout the sequencer must exist", err)
	}
}
