package grant_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/replicated"
)

func config(layout string) grant.Config {
	c := grant.DefaultConfig(nil, firn.MustParseLayout(layout), nil)
	c.Window = 30 * time.Second
	return c
}

// keys returns all keys and values of a store.
func keys(t *testing.T, s grant.Store) map[string]string {
	t.Helper()
	m := make(map[string]string)
	must.Do(t, s.List(t.Context(), "", func(key string, value []byte) bool {
		m[key] = string(value)
		return true
	}))
	return m
}

// create creates a sequencer.
func create(t *testing.T, s grant.Store, name string, c grant.Config, now time.Time) {
	t.Helper()
	must.Get(grant.Create(t.Context(), s, name, c, createdAt(now)))(t)
}

// TestCreate: which creations succeed, in this order, and which are refused and
// write nothing.
func TestCreate(t *testing.T) {
	const (
		ending = "bits=time:31.node:10.seq:12,epoch=2014-01-01T00:00:00Z"
		narrow = "bits=time:42.node:5.seq:16"
	)
	end := time.UnixMilli(1<<31 + 1_388_534_400_000)
	later, over := now.Add(time.Hour), time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC)
	with := func(layout string, maxAhead, window time.Duration, nodes *grant.NodeRange) grant.Config {
		c := config(layout)
		c.MaxAhead, c.Window, c.Nodes = cmp.Or(maxAhead, c.MaxAhead), cmp.Or(window, c.Window), nodes
		return c
	}
	usual := config("hazelcast")
	s := new(memstore.Store)
	for i, tt := range []struct {
		name, before string // before it is created: what is run
		config       grant.Config
		at, floor    time.Time
		incarnation  uint64 // afterwards
		want         time.Time
		is           error
		says         string
	}{
		{name: "a b", config: usual, at: now, says: "name"},
		{name: "none", at: now, says: "no layout"},
		{name: "short", config: with("hazelcast", 0, time.Second, nil), at: now, says: "at least"},
		{name: "read", config: config("xid"), at: now, says: "can be read but not made"},
		{name: "large", config: config("bits=time~:53.seq:11"), at: now, says: "cannot be generated"},
		{name: "begins", config: config("default,epoch=2030-01-01T00:00:00Z"), at: now, is: firn.ErrBeforeEpoch},
		{name: "over", config: usual, at: over, says: "2120-01-01"},
		{name: "over", config: usual, at: now, floor: over, says: "2120-01-01"},

		{name: "s", config: usual, at: now, floor: later, incarnation: 1, want: later},
		{name: "s", config: usual, at: later, floor: later, incarnation: 1, want: later},
		{name: "s", config: usual, at: later, floor: now, incarnation: 1, want: later},
		{name: "s", config: usual, at: later, incarnation: 1, want: later},
		{name: "s", config: usual, at: now, floor: later.Add(1), is: grant.ErrMismatch, says: "floor 2026-11-20T01:00:00.000Z"},
		{name: "s", config: config("snowcast"), at: now, is: grant.ErrMismatch,
			says: fmt.Sprintf("has layout %s, not %s: ", usual.Layout, firn.MustParseLayout("snowcast"))},
		{name: "s", config: with("hazelcast", 7*time.Second, 0, nil), at: now, is: grant.ErrMismatch, says: "has max-ahead 15s, not 7s: "},
		{name: "s", config: with("hazelcast", 0, 77*time.Second, nil), at: now, is: grant.ErrMismatch, says: "has window 30s, not 1m17s: "},
		{name: "s", config: with("hazelcast", 0, 0, &grant.NodeRange{Lo: 1, Hi: 2}), at: now, is: grant.ErrMismatch, says: "1..2"},
		{name: "s", before: "destroy", config: config("snowcast"), at: now, is: grant.ErrMismatch, says: "layout"},
		{name: "s", config: usual, at: now, floor: now, incarnation: 2, want: later},
		{name: "s", before: "destroy", config: usual, at: now, floor: later.Add(time.Second), incarnation: 3, want: later.Add(time.Second)},

		{name: "ending", config: config(ending), at: end, is: firn.ErrTimeOver},
		{name: "ending", config: config(ending), at: end.Add(-time.Millisecond), incarnation: 1},
		{name: "ending", config: config(ending), at: end, incarnation: 1},
		{name: "ending", before: "destroy", config: config(ending), at: end, is: firn.ErrTimeOver},
		{name: "ending", before: "purge", config: config(ending), at: end, is: firn.ErrTimeOver},

		// A sequencer keeps its range of node IDs, also with another layout,
		// which must have them.
		{name: "few", config: with("default", 0, 0, &grant.NodeRange{Lo: 40, Hi: 50}), at: now, incarnation: 1},
		{name: "few", config: config("default"), at: now, incarnation: 1},
		{name: "few", before: "destroy purge", config: config(narrow), at: now, is: grant.ErrMismatch,
			says: "grant: sequencer few keeps the node IDs 40..50, and layout bits=time:42.node:5.seq:16,unit=1ms," +
				"epoch=1970-01-01T00:00:00Z only has 0..31: give it others (firn sequencer create few --nodes LO..HI)"},
		{name: "few", config: with(narrow, 0, 0, &grant.NodeRange{Lo: 8, Hi: 15}), at: now, incarnation: 2},
	} {
		for op := range strings.FieldsSeq(tt.before) {
			must.Get(run(t.Context(), s, op, tt.name, now))(t)
		}
		before := keys(t, s)
		o := createdAt(tt.at)
		o.Floor = tt.floor
		info, err := grant.Create(t.Context(), s, tt.name, tt.config, o)
		if tt.incarnation == 0 {
			if err == nil || !errors.Is(err, tt.is) && tt.is != nil || !strings.Contains(err.Error(), tt.says) || !maps.Equal(keys(t, s), before) {
				t.Errorf("%d, %s: %+v, %v, want an error with %v, %q", i, tt.name, info, err, tt.is, tt.says)
			}
			continue
		}
		found, lookup := grant.Lookup(t.Context(), s, tt.name)
		c := info.Config
		if tt.config.Nodes == nil {
			c.Nodes = nil
		}
		if err != nil || lookup != nil || info.State != grant.Attached || info.Incarnation != tt.incarnation ||
			!info.Floor.Equal(tt.want) || c.Nodes.String() != tt.config.Nodes.String() || c.Layout != tt.config.Layout ||
			c.Window != tt.config.Window || c.MaxAhead != tt.config.MaxAhead || !reflect.DeepEqual(found, info) {
			t.Errorf("%d, %s: %+v, %v; found %+v, %v; want the floor %v", i, tt.name, info, err, found, lookup, tt.want)
		}
	}
	if _, err := grant.Lookup(t.Context(), s, "order"); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("Lookup of another = %v, want ErrNotFound", err)
	}
}

// TestUngenerated: a sequencer in the store whose layout no generator can use is
// not opened, and can be destroyed, purged and created again.
func TestUngenerated(t *testing.T) {
	s := populate(t, operations[:1])
	text := strings.Replace(keys(t, s)["v1/s/config"], `"layout":"default"`, `"layout":"bits=time~:53.seq:11"`, 1)
	faultstore.Put(t, s, "v1/s/config", text)
	info := must.Get(grant.Lookup(t.Context(), s, "s"))(t)
	if err := info.CheckAgainst(info.Config, now); !errors.Is(err, grant.ErrDamaged) || !strings.Contains(err.Error(), "cannot be generated") {
		t.Errorf("CheckAgainst: %v", err)
	}
	for _, what := range []string{"destroy", "purge", "create"} {
		must.Get(run(t.Context(), s, what, "s", now))(t)
	}
}

// TestRecordsOfOthers: records that cannot be read are reported by name, and
// left alone.
func TestRecordsOfOthers(t *testing.T) {
	s := populate(t, operations[:1])
	ctx := t.Context()
	faultstore.Put(t, s, "v1/newer/config", `{"v":4,"state":"perfect"}`)
	faultstore.Put(t, s, "v1/old/config", strings.Replace(keys(t, s)["v1/s/config"], `"v":3`, `"v":2`, 1))
	faultstore.Put(t, s, "v1/worn/config", `{"v":3,`)
	faultstore.Put(t, s, "v1/s/n/0001", `{"v":3,`)
	faultstore.Put(t, s, "v1/s/n/x", node("held", "o", now, now)) // of no node ID
	before := keys(t, s)

	got := make(map[string]error)
	must.Do(t, grant.Sequencers(ctx, s, func(i grant.Info, err error) bool {
		got[i.Name] = err
		return true
	}))
	if len(got) != 4 || got["s"] != nil || !errors.Is(got["newer"], grant.ErrNewerVersion) ||
		!errors.Is(got["old"], grant.ErrDamaged) || !errors.Is(got["worn"], grant.ErrDamaged) {
		t.Errorf("Sequencers: %v", got)
	}
	for _, name := range []string{"newer", "old", "worn"} {
		for _, op := range []string{"create", "lookup", "attach", "window", "nodes", "detach", "destroy", "purge", "fence", "repair"} {
			if _, err := run(ctx, s, op, name, now); err == nil || err.Error() != got[name].Error() {
				t.Errorf("%s %s: %v, want %v", op, name, err, got[name])
			}
		}
	}
	info := must.Get(grant.Lookup(ctx, s, "s"))(t)
	found := nodes(t, s, "s")
	for number := range uint64(6) {
		n, err := grant.LookupNode(ctx, s, info, number)
		want := found[number]
		want.Node = number // also without a record, or with a damaged one
		if n != want || errors.Is(err, grant.ErrDamaged) != (number == 1) || (err == nil) == (number == 1) {
			t.Errorf("LookupNode(%d) = %+v, %v, want %+v", number, n, err, want)
		}
	}
	report, err := grant.Fence(ctx, s, "s", &grant.FenceOptions{DryRun: true, AnyClock: true})
	if err != nil || report.Records != len(found) || len(report.Damaged) != 2 {
		t.Errorf("Fence = %+v, %v", report, err)
	}
	if after := keys(t, s); !maps.Equal(after, before) {
		t.Errorf("something was written: %v, before %v", after, before)
	}

	// No owner of a newer record can be told to stop.
	faultstore.Put(t, s, "v1/s/n/0009", `{"v":99}`)
	for _, op := range []string{"fence", "repair", "detach", "destroy"} {
		if _, err := run(ctx, s, op, "s", now); !errors.Is(err, grant.ErrNewerVersion) {
			t.Errorf("%s: %v, want ErrNewerVersion", op, err)
		}
	}
	if info, err := grant.Lookup(ctx, s, "s"); err != nil || info.State != grant.Destroying || keys(t, s)["v1/s/n/0009"] != `{"v":99}` {
		t.Errorf("it is %+v, %v", info, err)
	}
}

// A member is a Keeper with a real generator.
type member struct {
	*grant.Keeper
	layout firn.Layout
	g      *firn.Generator
	from   time.Time // of the last grant
	mark   time.Time
}

func (m *member) Begin(g firn.Grant) (err error) {
	m.from = g.From
	if m.g != nil {
		return m.g.Switch(g)
	}
	if g.From.Before(m.mark) {
		g.From = m.mark
	}
	m.g, err = firn.NewGenerator(m.layout, g, nil)
	return err
}

func (m *member) Extend(until time.Time) error { return m.g.Extend(until) }

func (m *member) Stop() {
	if m.g != nil {
		m.mark, m.g = m.g.Seal(), nil
	}
}

func (m *member) Used() time.Time {
	if m.g != nil {
		return m.g.Used()
	}
	return m.mark
}

func newMember(s grant.Store, name string) *member {
	m := &member{layout: firn.MustParseLayout("default,epoch=0")}
	m.Keeper = grant.NewKeeper(s, name, nil, m, nil)
	return m
}

// hold makes a Keeper acquire a node ID.
func hold(t *testing.T, k *grant.Keeper) {
	t.Helper()
	must.Do(t, errors.Join(k.Join(t.Context()), k.Wait(t.Context(), phase(grant.Holding))))
}

func phase(p grant.Phase) func(grant.Status) bool {
	return func(s grant.Status) bool { return s.Phase == p }
}

// TestDestroy: a Destroy that waits tells the members, and those that can hear
// it give their node IDs back, and return by themselves when the sequencer is
// created again. A Destroy that was interrupted continues.
func TestDestroy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), new(memstore.Store)
		c := config("default,epoch=0")
		create(t, s, "s", c, time.Now())
		lost := &faultstore.Store{Store: s}
		a, b := newMember(s, "s"), newMember(lost, "s")
		hold(t, a.Keeper)
		hold(t, b.Keeper)
		lost.Reads.Store(true)
		status, _ := b.Status()
		b.Abandon()
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var told [][]grant.Wait
		_, err := grant.Destroy(brief, s, "s", &grant.WaitOptions{Waiting: func(w []grant.Wait) { told = append(told, w) }})
		if last := told[len(told)-1]; !errors.Is(err, context.DeadlineExceeded) || len(told) > 2 || len(last) != 1 || last[0].Node != status.Node {
			t.Errorf("%v: it waited for %+v, want node %d alone, once: a was told", err, told, status.Node)
		}
		must.Get(grant.Destroy(ctx, s, "s", nil))(t)
		if left := time.Until(status.Until); left > 0 || left < -time.Second {
			t.Errorf("Destroy returned %v before the window of the one that is gone ends", left)
		}
		must.Get(grant.Create(ctx, s, "s", c, nil))(t)
		must.Do(t, errors.Join(a.Wait(ctx, phase(grant.Holding)), a.Close(ctx)))
	})
}

// TestDestroyAfterFailover: a node ID that was first claimed after a failover
// is missing in a list of the replaced server. Another operator has begun to
// destroy the sequencer and stopped, so its state is already right.
func TestDestroyAfterFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(memstore.Store)
		create(t, s, "s", config("default,epoch=0"), time.Now())
		until := time.Now().Add(20 * time.Second)
		faultstore.Put(t, s, "v1/s/n/0007", node("held", "o", until, time.Now()))
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := grant.Destroy(brief, s, "s", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Destroy, stopped = %v, want %v", err, context.DeadlineExceeded)
		}
		// Lists come from a replaced server until this client has written
		// something: the worst case that the contract of Store allows.
		b, old := &faultstore.Store{Store: s}, new(memstore.Store)
		b.Fault = func(_ context.Context, r faultstore.Request) error {
			if r.Kind == grant.RequestList && b.Writes.Load() == 0 {
				return r.DoIn(old)
			}
			return r.Do()
		}
		must.Get(grant.Destroy(t.Context(), b, "s", nil))(t)
		if left := time.Until(until); left > 0 {
			t.Errorf("Destroy returned %v before the window ends", left)
		}
	})
}

// TestUndone: a sequencer that is attached again while it is being detached
// stays attached.
func TestUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(replicated.Store)
		create(t, s, "s", config("default,epoch=0"), time.Now())
		faultstore.Put(t, s, "v1/s/n/0007", node("held", "o", time.Now().Add(20*time.Second), time.Now()))
		d := disturbance{after: func() { _, _ = grant.Attach(t.Context(), s, "s") }}.in(s)
		if info, err := grant.Detach(t.Context(), d, "s", nil); err == nil || !strings.Contains(err.Error(), "attached again") {
			t.Errorf("Detach = %+v, %v", info, err)
		}
	})
}

// A disturbance is what others do around an operator's first list, and after
// its first write of a record.
type disturbance struct{ before, after, closed func() }

// in returns a store with it.
func (d disturbance) in(s grant.Store) grant.Store {
	return &faultstore.Store{Store: s, Fault: func(_ context.Context, r faultstore.Request) error {
		switch {
		case r.Kind == grant.RequestList:
			once(&d.before)
			defer once(&d.after)
		case r.Kind == grant.RequestCAS && strings.Contains(r.Key, "/n/"):
			defer once(&d.closed)
		}
		return r.Do()
	}}
}

func once(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}

// TestDestroyProves: when a sequencer is emptied, no record is held, not even
// on a standby that is then promoted. Its owner could extend a window that has
// ended.
func TestDestroyProves(t *testing.T) {
	const key = "v1/s/n/0007"
	for _, tt := range []struct {
		name    string
		disturb func(s *replicated.Store, put func(state string)) disturbance
	}{
		{"a window that is over", func(*replicated.Store, func(string)) disturbance { return disturbance{} }},
		{"closed by another operator, and lost", func(s *replicated.Store, put func(string)) disturbance {
			return disturbance{before: func() { s.StopStandby(); put("closing") }, after: s.Failover}
		}},
		{"given back by a repair, and lost", func(s *replicated.Store, put func(string)) disturbance {
			return disturbance{before: func() { s.StopStandby(); put("free") }, after: s.Failover}
		}},
		{"attached and detached meanwhile", func(s *replicated.Store, put func(string)) disturbance {
			return disturbance{closed: func() {
				if _, err := grant.Attach(context.Background(), s, "s"); err != nil {
					panic(err)
				}
				put("held")
				gone, cancel := context.WithCancel(context.Background())
				other := disturbance{before: cancel}.in(s) // it stops before it closes any record
				if _, err := grant.Detach(gone, other, "s", nil); err == nil {
					panic("it did not stop")
				}
			}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				s := new(replicated.Store)
				create(t, s, "s", config("default,epoch=0"), time.Now())
				writes := 0
				put := func(state string) {
					brief, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					old := must.Get(s.Get(brief, key))(t)
					writes++
					until := time.Now().Add(-time.Minute).UnixMilli()
					_, _ = s.CAS(brief, key, old, fmt.Appendf(nil, `{"v":3,"nonce":"%d","owner":"o","until":%d,"wall":%[2]d,"state":%q,"host":"h"}`, writes, until, state))
				}
				put("held")
				info, err := grant.Detach(ctx, tt.disturb(s, put).in(s), "s", nil)
				if err != nil || info.State != grant.Detached {
					t.Fatalf("Detach = %+v, %v", info, err)
				}
				s.StopStandby()
				s.Failover()
				if info, err := grant.Lookup(ctx, s, "s"); err != nil || info.State != grant.Detached {
					t.Errorf("the sequencer is %+v, %v", info, err)
				}
				if value, err := s.Get(ctx, key); err != nil || strings.Contains(string(value), "held") {
					t.Errorf("its record is %s, %v", value, err)
				}
			})
		})
	}
}

// TestWaits: what an operation waits for, why, and until when: it returns at
// the next look after that.
func TestWaits(t *testing.T) {
	type records map[string]string
	detach := func(ctx context.Context, s grant.Store, o *grant.WaitOptions) error {
		_, err := grant.Detach(ctx, s, "s", o)
		return err
	}
	for name, tt := range map[string]struct {
		records func(now time.Time) records
		do      func(context.Context, grant.Store, *grant.WaitOptions) error
		want    []grant.Wait // with the time from now on
		text    string       // of the first
	}{
		"held": {func(now time.Time) records {
			return records{"0007": node("held", "o", now.Add(9*time.Second), now), "0008": node("closing", "o", now.Add(7*time.Second), now)}
		}, detach, []grant.Wait{
			{Why: grant.WaitHeld, Node: 7, Host: "h", Until: time.Unix(9, 0)}, {Why: grant.WaitHeld, Node: 8, Host: "h", Until: time.Unix(7, 0)},
		}, "node ID 7, held by h until 2026-11-20T12:00:09.000Z at the latest"},
		"damaged": {func(time.Time) records { return records{"0007": "no record", "x": "of nobody"} }, detach, []grant.Wait{
			{Why: grant.WaitDamaged, Node: 7, Until: time.Unix(32, 0)}, // MaxAhead and a window after the second call found it
			{Why: grant.WaitDamaged, Until: time.Unix(32, 0)},          // its key has no node ID
		}, "node ID 7, whose record is damaged: a process may use it until 2026-11-20T12:00:32.000Z"},
		"fenced": {func(now time.Time) records {
			return records{"0007": node("free", "", now.Add(time.Hour), now.Add(-10*time.Second)), "0008": node("free", "o", now, now)}
		}, detach, []grant.Wait{
			{Why: grant.WaitFenced, Node: 7, Until: time.Unix(21, 0)}, // it was 10 s ago
		}, "node ID 7, which was fenced or repaired: a process may use it until 2026-11-20T12:00:21.000Z"},
		"handed over": {func(now time.Time) records {
			return records{"0007": node("free", "o", now.Add(time.Second), now)}
		}, func(ctx context.Context, s grant.Store, o *grant.WaitOptions) error {
			_, err := grant.SetNodes(ctx, s, "s", &grant.NodeRange{Lo: 512, Hi: 1023}, o)
			return err
		}, []grant.Wait{
			{Why: grant.WaitHandOver, Until: time.Unix(11, 0)},
		}, "the hand-over at 2026-11-20T12:00:11.000Z, when all clocks have passed the times used under the node IDs that are given away"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
				now := time.Now()
				s := new(memstore.Store)
				create(t, s, "s", config("default,epoch=0"), now)
				for key, value := range tt.records(now) {
					faultstore.Put(t, s, "v1/s/n/"+key, value)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := tt.do(ctx, s, nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), ", waiting for node ID 7, ") && !strings.Contains(err.Error(), ", waiting for the hand-over at ") {
					t.Errorf("interrupted: %v", err)
				}
				var waits [][]grant.Wait
				if err := tt.do(t.Context(), s, &grant.WaitOptions{Waiting: func(w []grant.Wait) { waits = append(waits, w) }}); err != nil {
					t.Fatal(err)
				}
				var want []grant.Wait
				var last time.Duration
				for _, w := range tt.want {
					after := time.Duration(w.Until.UnixNano())
					last = max(last, after)
					w.Until = now.Add(after).UTC()
					want = append(want, w)
				}
				if len(waits) == 0 || !slices.Equal(waits[0], want) {
					t.Fatalf("it waits for %v, want %v first", waits, want)
				}
				if got := fmt.Sprint(waits[0][0]); got != tt.text {
					t.Errorf("text %q, want %q", got, tt.text)
				}
				if after, foreign := keys(t, s), "v1/s/n/x"; after[foreign] != tt.records(now)["x"] {
					t.Errorf("%s was closed", foreign)
				}
				if took := time.Since(now); took < last || took == last && name == "held" || took > last+time.Second/4+time.Millisecond {
					t.Errorf("it took %v, want %v", took, last)
				}
			})
		})
	}
}
