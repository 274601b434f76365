package sequencer

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/must"
)

// A notingGenerator records its calls, and returns prepared answers.
type notingGenerator struct {
	generator[firn.ID]
	err        error
	sealed     time.Time
	used       time.Time
	stats      firn.Stats
	did        []string
	grants     []firn.Grant
	extendedTo time.Time
}

func (g *notingGenerator) Extend(until time.Time) error {
	g.did, g.extendedTo = append(g.did, "extend"), until
	return g.err
}

func (g *notingGenerator) Switch(to firn.Grant) error {
	g.did, g.grants = append(g.did, "switch"), append(g.grants, to)
	return g.err
}

func (g *notingGenerator) Seal() time.Time   { g.did = append(g.did, "seal"); return g.sealed }
func (g *notingGenerator) Used() time.Time   { return g.used }
func (g *notingGenerator) Stats() firn.Stats { return g.stats }

var errUnusable = errors.New("of no use")

var someLayout = firn.MustParseLayout("default,epoch=0")

func someTime(seconds int) time.Time { return time.Unix(1_795_132_800+int64(seconds), 0) }

// TestHolder: what a member does with each grant. It makes a generator for the
// first, above everything used, and switches it for the next. A grant that it
// cannot use ends the use of the previous one.
func TestHolder(t *testing.T) {
	made := &notingGenerator{}
	var grants []firn.Grant
	var createErr error
	m := &Sequencer{config: grant.Config{Layout: someLayout}, options: firn.Options{MaxAhead: 7}}
	m.create = func(l firn.Layout, g firn.Grant, o *firn.Options) (generator[firn.ID], error) {
		if l != someLayout || o.MaxAhead != 7 {
			t.Errorf("it is made of %v with %+v", l, o)
		}
		grants = append(grants, g)
		return made, createErr
	}
	h := holder[firn.ID]{m}
	if err := h.Extend(someTime(1)); err != nil || len(made.did) > 0 {
		t.Errorf("extended without a generator: %v", err)
	}
	h.Seal() // nothing

	createErr = errUnusable
	if err := h.Begin(firn.Grant{Node: 1}); err != errUnusable || m.unusable != errUnusable || m.current.Load() != nil {
		t.Errorf("a grant of no use: %v, %v", err, m.unusable)
	}
	createErr = nil
	for i, mark := range []int{-1, 0, 1} { // relative to the beginning of the grant
		m.current.Store(nil)
		m.mark = someTime(mark)
		g := firn.Grant{Node: 2, From: someTime(0), Until: someTime(60)}
		if err := h.Begin(g); err != nil || m.unusable != nil || m.current.Load() == nil {
			t.Errorf("begin: %v, %v", err, m.unusable)
		}
		g.From = someTime(max(mark, 0))
		if got := grants[1+i]; got != g {
			t.Errorf("%d s were used: %+v, want %+v", mark, got, g)
		}
	}
	next := firn.Grant{Node: 3, From: someTime(30), Until: someTime(90)}
	if err := h.Begin(next); err != nil || !slices.Equal(made.did, []string{"switch"}) || made.grants[0] != next || len(grants) != 4 {
		t.Errorf("the next grant: %v, %v, %+v", err, made.did, made.grants)
	}
	if err := h.Extend(someTime(95)); err != nil || !made.extendedTo.Equal(someTime(95)) {
		t.Errorf("extend: %v to %v", err, made.extendedTo)
	}
	made.err = errUnusable
	if err := h.Extend(someTime(99)); err != errUnusable {
		t.Errorf("extend that fails: %v", err)
	}
	made.did = nil
	if err := h.Begin(next); err != errUnusable || m.unusable != errUnusable || !slices.Equal(made.did, []string{"switch", "seal"}) || m.current.Load() != nil {
		t.Errorf("a switch that fails: %v, %v, %v", err, m.unusable, made.did)
	}
}

// TestUsedAndCounted: what was used never goes back, and IDs of sealed
// generators stay counted, whatever follows.
func TestUsedAndCounted(t *testing.T) {
	m := &Sequencer{}
	if !m.used().IsZero() {
		t.Errorf("used %v at first", m.used())
	}
	var want firn.Stats
	mark := time.Time{}
	for i, s := range []int{5, 3, 9, 9, 0} {
		g := &notingGenerator{sealed: someTime(s), stats: firn.Stats{IDs: uint64(1 + i), Batches: 10, Waits: 100, TotalWait: 7 * time.Second, Lead: time.Hour}}
		var current generator[firn.ID] = g
		m.current.Store(&current)
		for _, used := range []int{s - 9, 7, 8} {
			if g.used = someTime(used); used < 0 {
				g.used = time.Time{}
			}
			want := mark
			if g.used.After(want) {
				want = g.used
			}
			if got := m.used(); !got.Equal(want) {
				t.Errorf("generator %d: used %v, want %v", i, got, want)
			}
		}
		m.seal()
		if someTime(s).After(mark) {
			mark = someTime(s)
		}
		want = firn.Stats{IDs: want.IDs + uint64(1+i), Batches: want.Batches + 10, Waits: want.Waits + 100, TotalWait: want.TotalWait + 7*time.Second}
		if m.before != want || m.current.Load() != nil || !m.used().Equal(mark) || !slices.Equal(g.did, []string{"seal"}) {
			t.Errorf("generator %d sealed: %+v, want %+v; used %v, want %v", i, m.before, want, m.used(), mark)
		}
	}
}

// A deadlineStore records how long a write may take.
type deadlineStore struct {
	grant.Store
	limit time.Duration
}

func (s *deadlineStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if end, ok := ctx.Deadline(); ok {
		s.limit = time.Until(end)
	}
	return s.Store.CAS(ctx, key, old, next)
}

// TestOptions: how Open uses its Options: for generators, for the Keeper, and in
// the store.
func TestOptions(t *testing.T) { synctest.Test(t, testOptions) }

func testOptions(t *testing.T) {
	s := &deadlineStore{Store: new(memstore.Store)}
	now := func() time.Time { return time.Now().Add(-time.Second) }
	ahead := 300 * time.Millisecond
	q, err := Open(t.Context(), s, "s", &Options{Layout: someLayout, MaxAhead: &ahead, Window: 7 * time.Second, Member: grant.Member{Now: now}})
	if err != nil {
		t.Fatal(err)
	}
	if o := q.options; o.MaxAhead != ahead || o.Now == nil || time.Since(o.Now()) < time.Second {
		t.Errorf("%+v", o)
	}
	if s.limit != 7*time.Second/6 {
		t.Errorf("a write has %v, want a sixth of the window", s.limit)
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
	if stats := q.Stats(); stats.Status.Phase != grant.Holding || stats.Status.Node != n.Node || stats.Keeper.Acquired != 1 {
		t.Errorf("%+v", stats)
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
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = Open128(t.Context(), s, "s", nil)
	if err == nil || !strings.Contains(err.Error(), "use Open") {
		t.Errorf("Open128 of 64 bits: %v", err)
	}
	if _, err := grant.Create(t.Context(), s, "wide", grant.Config{Layout: firn.MustParseLayout("boundary"), Window: time.Minute}, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Options{nil, {Layout: firn.MustParseLayout("boundary")}} {
		if q, err := Open(t.Context(), s, "wide", c); err == nil || q != nil || !strings.Contains(err.Error(), "use Open128") {
			t.Errorf("Open of 128 bits: %v", err)
		}
	}
}
