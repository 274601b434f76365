package forwarding

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// TestWindows: which IDs another server may have made.
func TestWindows(t *testing.T) {
	const owner = "d41f0a6738be52c99e07ab135c64f820"
	l := firn.Default()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	config := servicetest.Config(l)
	config.MaxAhead = time.Second
	at := func(d time.Duration) origin { return origin{42, now.Add(d), now.Add(d)} }
	held := heldWindow{config, owner, now.Add(time.Minute)}
	for _, row := range []struct {
		what  string
		c     heldWindow
		owner string
		l     firn.Layout
		from  origin
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
		{"the end of the batch is after it", heldWindow{config, owner, now.Add(time.Second)}, owner, l, origin{42, now, now.Add(time.Second)}, false},
		{"the beginning is far behind", held, owner, l, origin{42, now.Add(-time.Minute), now}, false},
	} {
		if err := row.c.judge(row.l, row.owner, row.from, now, now); (err == nil) != row.want || err != nil && !errors.Is(err, errRejected) {
			t.Errorf("%s: %v, want that it is used: %t", row.what, err, row.want)
		}
	}
}

// TestWindowsAreReadAgain: a window that was renewed, or a node ID with another
// owner, is looked up again, and one that is known is not.
func TestWindowsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour) // after the layout's epoch
		store := &faultstore.Store{Store: new(memstore.Store)}
		l := firn.Default()
		c := newWindows(store, service.NewStoreAdmin(store, nil).Lookup)
		open := func() *sequencer.Sequencer {
			q := must.Get(sequencer.Open(t.Context(), store, "orders", &sequencer.Options{Layout: l, Window: 30 * time.Second, Nodes: &grant.NodeRange{}}))(t)
			return q
		}
		check := func(q *sequencer.Sequencer) error {
			t.Helper()
			sent := time.Now()
			b := must.Get(q.NextBatch(t.Context(), 100))(t)
			from := must.Get(originOf(&l, b.AppendRaw(nil, 0, b.Len())))(t)
			return c.check(t.Context(), "orders", l, q.Status().Owner, from, sent, time.Now())
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
		must.Do(t, a.Close(t.Context()))
		b := open()
		want("of another owner", b)
		time.Sleep(time.Minute)
		if _, err := b.Next(t.Context()); err != nil { // the window is renewed, and not known here
			t.Fatal(err)
		}
		store.Cut.Store(true)
		if err := check(b); !errors.Is(err, errUnchecked) || !errors.Is(err, firn.ErrUnavailable) || errors.Is(err, errRejected) {
			t.Errorf("without the store: %v, want %v", err, errUnchecked)
		}
		store.Cut.Store(false)
		want("with the store", b)
		must.Do(t, b.Close(t.Context()))
	})
}
