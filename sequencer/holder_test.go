package sequencer

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
)

var errUnusable = errors.New("of no use")

var someLayout = firn.MustParseLayout("default,epoch=0")

func someTime(seconds int) time.Time { return time.Unix(1_795_132_800+int64(seconds), 0) }

// aMember returns a member without a Keeper, whose clock shows someTime(0).
func aMember() *Sequencer {
	return &Sequencer{
		config:       grant.Config{Layout: someLayout},
		options:      firn.Options{Now: func() time.Time { return someTime(0) }, MaxAhead: time.Minute},
		newGenerator: firn.NewGenerator,
	}
}

// take returns the node ID and the time, in seconds, of the next ID of a
// member.
func take(t *testing.T, m *Sequencer) (node uint64, at time.Duration) {
	t.Helper()
	p := must.Get(someLayout.Decompose(must.Get(m.current.Load().TryNext())(t)))(t)
	return p.Node, p.Time.Sub(someTime(0))
}

// TestHolder: what a member does with each grant. It makes a generator for the
// first, above everything used, and switches it for the next. A grant that it
// cannot use ends the use of the previous one.
func TestHolder(t *testing.T) {
	m := aMember()
	h := holder[firn.ID]{m}
	if err := h.Extend(someTime(1)); err != nil {
		t.Errorf("extended without a generator: %v", err)
	}
	h.Stop() // nothing
	useless := firn.Grant{Node: 1 << 40}
	if err := h.Begin(useless); err == nil || m.unusable != err || m.current.Load() != nil {
		t.Errorf("a grant of no use: %v, %v", err, m.unusable)
	}
	for _, mark := range []int{-1, 0, 1} { // relative to the beginning of the grant
		m.current.Store(nil)
		m.sealedUntil = someTime(mark)
		if err := h.Begin(firn.Grant{Node: 2, From: someTime(0), Until: someTime(60)}); err != nil || m.unusable != nil {
			t.Errorf("begin: %v, %v", err, m.unusable)
		}
		if node, at := take(t, m); node != 2 || at != time.Duration(max(mark, 0))*time.Second {
			t.Errorf("%d s were used: an ID of node %d at %v", mark, node, at)
		}
	}
	first := m.current.Load()
	if err := h.Begin(firn.Grant{Node: 3, From: someTime(30), Until: someTime(90)}); err != nil || m.current.Load() != first {
		t.Errorf("the next grant: %v, or it is another generator", err)
	}
	if node, at := take(t, m); node != 3 || at != 30*time.Second {
		t.Errorf("the next grant: an ID of node %d at %v", node, at)
	}
	if err := h.Extend(someTime(95)); err != nil {
		t.Errorf("extend: %v", err)
	}
	if err := h.Extend(someTime(94)); err == nil {
		t.Error("the window shrinks, so it was not extended")
	}
	if err := h.Begin(useless); err == nil || m.unusable != err || m.current.Load() != nil {
		t.Errorf("a switch that fails: %v, %v", err, m.unusable)
	}
	if _, err := first.TryNext(); !errors.Is(err, firn.ErrSealed) {
		t.Errorf("the previous generator: %v, want ErrSealed", err)
	}
}

// TestUsedAndCounted: what was used never goes back, and IDs of sealed
// generators stay counted, whatever follows.
func TestUsedAndCounted(t *testing.T) {
	m := aMember()
	h := holder[firn.ID]{m}
	if !h.Used().IsZero() {
		t.Errorf("used %v at first", h.Used())
	}
	made := uint64(0)
	for i, used := range []int{5, 9, 9, 20} { // seconds; the third generator makes no ID
		must.Do(t, h.Begin(firn.Grant{Node: 2, From: someTime([]int{5, 9, 7, 20}[i])}))
		if mark := h.Used(); i > 0 && !mark.Equal(m.sealedUntil) {
			t.Errorf("generator %d: used %v before its first ID, want %v", i, mark, m.sealedUntil)
		}
		if i != 2 {
			take(t, m)
			made++
		}
		want := someTime(used).Add(time.Millisecond)
		for _, sealed := range []bool{false, true} {
			if sealed {
				h.Stop()
			}
			if got := h.Used(); !got.Equal(want) {
				t.Errorf("generator %d, sealed: %t: used %v, want %v", i, sealed, got, want)
			}
		}
		if m.sealedStats != (firn.Stats{IDs: made}) || m.current.Load() != nil {
			t.Errorf("generator %d sealed: %+v, want %d IDs", i, m.sealedStats, made)
		}
	}
}

// TestOptions: how Open uses its Options: for generators, for the Keeper, and
// in the store.
func TestOptions(t *testing.T) { synctest.Test(t, testOptions) }

func testOptions(t *testing.T) {
	var limit time.Duration // of a write
	s := grant.Observe(new(memstore.Store), func(ctx context.Context, request grant.Request, _ string) (context.Context, func(bool, error)) {
		if end, ok := ctx.Deadline(); ok && request == grant.RequestCAS {
			limit = time.Until(end)
		}
		return ctx, func(bool, error) {}
	})
	now := func() time.Time { return time.Now().Add(-time.Second) }
	ahead := 300 * time.Millisecond
	q, err := Open(t.Context(), s, "s", &Options{Layout: someLayout, MaxAhead: &ahead, Window: 7 * time.Second, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if o := q.options; o.MaxAhead != ahead || o.Now == nil || time.Since(o.Now()) < time.Second {
		t.Errorf("%+v", o)
	}
	if limit != 7*time.Second/6 {
		t.Errorf("a write has %v, want a sixth of the window", limit)
	}
	info, err := grant.Lookup(t.Context(), s, "s")
	if since := time.Since(info.Created); err != nil || since < time.Second || since > time.Minute || info.Config != q.Config() {
		t.Errorf("%+v, %v, created %v ago, want by the clock that was given", info, err, since)
	}
	host := must.Get(os.Hostname())(t)
	n, err := grant.LookupNode(t.Context(), s, info, q.Status().Node)
	if err != nil || n.Host != host || !n.Until.Equal(q.Status().Until) || n.Owner != q.Status().Owner {
		t.Errorf("%+v, %v; it is %+v", n, err, q.Status())
	}
	if stats, status := q.Stats(), q.Status(); status.Phase != grant.Holding || status.Node != n.Node || stats.Keeper.Acquired != 1 {
		t.Errorf("%+v, %+v", stats, status)
	}
	must.Get(q.NextBatch(t.Context(), 600_000))(t)
	if lead := q.Stats().Lead; lead < 50*time.Millisecond {
		t.Errorf("it leads the clock by %v after a large batch", lead)
	}
	// A grant that could not be used.
	q.mu.Lock()
	q.unusable = errUnusable
	q.mu.Unlock()
	kept := q.current.Swap(nil)
	brief, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := q.Next(brief); !errors.Is(err, errUnusable) || !errors.Is(q.Status().Err, errUnusable) {
		t.Errorf("without a grant of use: %v, %+v", err, q.Status())
	}
	q.current.Store(kept)
	must.Do(t, q.Close(t.Context()))
	_, err = Open128(t.Context(), s, "s", nil)
	if err == nil || !strings.Contains(err.Error(), "use Open") {
		t.Errorf("Open128 of 64 bits: %v", err)
	}
	must.Get(grant.Create(t.Context(), s, "wide", grant.Config{Layout: firn.MustParseLayout("boundary"), Window: time.Minute}, nil))(t)
	for _, c := range []*Options{nil, {Layout: firn.MustParseLayout("boundary")}} {
		if q, err := Open(t.Context(), s, "wide", c); err == nil || q != nil || !strings.Contains(err.Error(), "use Open128") {
			t.Errorf("Open of 128 bits: %v", err)
		}
	}
}
