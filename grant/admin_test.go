package grant_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// TestCreateFloor: the first record of a sequencer has its floor, and no later
// call changes it but one that creates the sequencer again.
func TestCreateFloor(t *testing.T) {
	s := new(memstore.Store)
	floor := now.Add(time.Hour)
	for _, tt := range []struct {
		name        string
		floor, want time.Time
		have        string // of an ErrMismatch
		says        string
	}{
		{name: "out of range", floor: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC), says: "2120-01-01"},
		{name: "new", floor: floor, want: floor},
		{name: "again", floor: floor, want: floor},
		{name: "earlier", floor: now, want: floor},
		{name: "none", want: floor},
		{name: "later", floor: floor.Add(1), have: floor.Format("2006-01-02T15:04:05.000Z")},
		{name: "destroyed, earlier", floor: now, want: floor},
		{name: "destroyed, later", floor: floor.Add(time.Second), want: floor.Add(time.Second)},
	} {
		if strings.HasPrefix(tt.name, "destroyed") {
			must.Get(grant.Destroy(t.Context(), s, "s", at(now)))(t)
		}
		before := fmt.Sprint(keys(t, s))
		o := createdAt(now)
		o.Floor = tt.floor
		info, err := grant.Create(t.Context(), s, "s", config("default"), o)
		if tt.have != "" || tt.says != "" {
			if err == nil || !strings.Contains(err.Error(), tt.says) || errors.Is(err, grant.ErrMismatch) != (tt.have != "") || !strings.Contains(err.Error(), tt.have) || fmt.Sprint(keys(t, s)) != before {
				t.Errorf("%s: %+v, %v", tt.name, info, err)
			}
			continue
		}
		if err != nil || !info.Floor.Equal(tt.want) {
			t.Errorf("%s: %+v, %v; want the floor %v", tt.name, info, err, tt.want)
		}
	}
}

func TestCreate(t *testing.T) {
	s := new(memstore.Store)
	now := time.UnixMilli(1_800_000_000_000)
	info := must.Get(grant.Create(t.Context(), s, "orders", config("hazelcast"), createdAt(now)))(t)
	if info.State != grant.Attached || info.Incarnation != 1 || !info.Created.Equal(now) || info.Config != config("hazelcast") {
		t.Errorf("Create = %+v", info)
	}
	before := keys(t, s)
	if again, err := grant.Create(t.Context(), s, "orders", config("hazelcast"), createdAt(now.Add(time.Hour))); err != nil || again != info {
		t.Errorf("the same again: %+v, %v; want %+v", again, err, info)
	}
	if found, err := grant.Lookup(t.Context(), s, "orders"); err != nil || found != info {
		t.Errorf("Lookup = %+v, %v; want %+v", found, err, info)
	}

	other := config("hazelcast")
	ahead, window := other, other
	ahead.MaxAhead = 7 * time.Second
	window.Window = 77 * time.Second
	for _, tt := range []struct {
		config                  grant.Config
		field, want, have, name string
	}{
		{config: config("snowcast"), field: "layout", have: info.Config.Layout.String(), want: firn.MustParseLayout("snowcast").String()},
		{config: ahead, field: "max-ahead", have: "15s", want: "7s"},
		{config: window, field: "window", have: "30s", want: "1m17s"},
	} {
		_, err := grant.Create(t.Context(), s, "orders", tt.config, createdAt(now))
		if !errors.Is(err, grant.ErrMismatch) || !strings.Contains(err.Error(), fmt.Sprintf("has %s %s, not %s: ", tt.field, tt.have, tt.want)) {
			t.Errorf("another %s: %v, want have %s, want %s", tt.field, err, tt.have, tt.want)
		}
	}

	short := config("hazelcast")
	short.Window = time.Second
	for name, c := range map[string]grant.Config{
		"a b": config("default"), "": config("default"), "good": short, "none": {}, "read": config("xid"), "large": config("bits=time~:53.seq:11"),
	} {
		if _, err := grant.Create(t.Context(), s, name, c, createdAt(now)); err == nil {
			t.Errorf("Create(%q, %+v) is fine, want an error", name, c)
		}
	}
	if _, err := grant.Create(t.Context(), s, "begins", config("default,epoch=2030-01-01T00:00:00Z"), createdAt(now)); !errors.Is(err, firn.ErrBeforeEpoch) {
		t.Errorf("a layout whose time has not begun: %v, want firn.ErrBeforeEpoch", err)
	}
	// 31 bits of milliseconds end in 2014.
	end := time.UnixMilli(1<<31 + 1_388_534_400_000)
	if _, err := grant.Create(t.Context(), s, "ended", config("bits=time:31.node:10.seq:12,unit=1ms,epoch=2014-01-01T00:00:00Z"), createdAt(end)); !errors.Is(err, firn.ErrTimeOver) {
		t.Errorf("a layout whose time has ended: %v, want firn.ErrTimeOver", err)
	}
	if after := keys(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("refused calls wrote: %v, before %v", after, before)
	}
	if _, err := grant.Create(t.Context(), s, "ending", config("bits=time:31.node:10.seq:12,unit=1ms,epoch=2014-01-01T00:00:00Z"), createdAt(end.Add(-time.Millisecond))); err != nil {
		t.Errorf("a layout in its last millisecond: %v", err)
	}
	if _, err := grant.Create(t.Context(), s, "ending", config("bits=time:31.node:10.seq:12,unit=1ms,epoch=2014-01-01T00:00:00Z"), createdAt(end)); err != nil {
		t.Errorf("the same again, after its end: %v", err)
	}
	for _, remove := range []func() (grant.Info, error){
		func() (grant.Info, error) { return grant.Destroy(t.Context(), s, "ending", nil) },
		func() (grant.Info, error) { return grant.Purge(t.Context(), s, "ending") },
	} {
		was := must.Get(remove())(t)
		if _, err := grant.Create(t.Context(), s, "ending", was.Config, createdAt(end)); !errors.Is(err, firn.ErrTimeOver) {
			t.Errorf("a %v one after its end: %v, want firn.ErrTimeOver", was.State, err)
		}
	}
	if _, err := grant.Lookup(t.Context(), s, "order"); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("Lookup of another = %v, want ErrNotFound", err)
	}
}

// TestRecordsOfOthers: records that cannot be read are reported by name, and
// left alone.
func TestRecordsOfOthers(t *testing.T) {
	s := populate(t, operations[:1])
	ctx := t.Context()
	put(t, s, "v1/newer/config", `{"v":4,"state":"perfect"}`)
	put(t, s, "v1/old/config", strings.Replace(keys(t, s)["v1/s/config"], `"v":3`, `"v":2`, 1))
	put(t, s, "v1/worn/config", `{"v":3,`)
	put(t, s, "v1/s/n/0001", `{"v":3,`)
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
	if err != nil || report.Records != len(found) || len(report.Damaged) != 1 {
		t.Errorf("Fence = %+v, %v", report, err)
	}
	if after := keys(t, s); !maps.Equal(after, before) {
		t.Errorf("something was written: %v, before %v", after, before)
	}

	// No owner of a newer record can be told to stop.
	put(t, s, "v1/s/n/0009", `{"v":99}`)
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

// abandon ends a Keeper that cannot give its node ID back.
func abandon(t *testing.T, k *grant.Keeper) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Close(ended); !errors.Is(err, context.Canceled) {
		t.Fatalf("Close with a context that is done = %v", err)
	}
}

func phase(p grant.Phase) func(grant.Status) bool {
	return func(s grant.Status) bool { return s.Phase == p }
}

// TestDestroy waits for the windows, reports for which, and continues after an
// interruption; the marks survive it.
func TestDestroy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(memstore.Store)
		ctx := t.Context()
		create(t, s, "s", config("default,epoch=0"), time.Now())
		lost := &faultstore.Store{Store: s}
		a, b := newMember(s, "s"), newMember(lost, "s")
		hold(t, a.Keeper)
		hold(t, b.Keeper)
		lost.Reads.Store(true)
		bStatus, _ := b.Status()
		abandon(t, b.Keeper)
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var told [][]grant.Wait
		began := time.Now()
		_, err := grant.Destroy(brief, s, "s", &grant.WaitOptions{Waiting: func(w []grant.Wait) { told = append(told, w) }})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), fmt.Sprint(bStatus.Node)) {
			t.Errorf("Destroy, stopped = %v, want one that names node %d", err, bStatus.Node)
		}
		if last := told[len(told)-1]; len(told) > 2 || len(last) != 1 || last[0].Node != bStatus.Node {
			t.Errorf("it waited for %+v, want node %d alone, once: a was told", told, bStatus.Node)
		}
		if _, err := grant.Create(ctx, s, "s", config("default,epoch=0"), nil); !errors.Is(err, grant.ErrDestroyed) {
			t.Errorf("Create meanwhile = %v, want ErrDestroyed", err)
		}
		info, err := grant.Destroy(ctx, s, "s", nil)
		if err != nil || info.State != grant.Destroyed {
			t.Fatalf("Destroy = %+v, %v", info, err)
		}
		if took := time.Since(began); took < 25*time.Second || took > 31*time.Second {
			t.Errorf("it took %v, want until the window of the one that is gone is over", took)
		}
		if _, err := grant.Create(ctx, s, "s", config("default,epoch=1"), nil); !errors.Is(err, grant.ErrMismatch) {
			t.Errorf("Create with another epoch = %v, want ErrMismatch", err)
		}
		marks := make(map[uint64]time.Time)
		_ = grant.Nodes(ctx, s, "s", func(n grant.NodeInfo, err error) bool { marks[n.Node] = n.Until; return err == nil })
		info, err = grant.Create(ctx, s, "s", config("default,epoch=0"), nil)
		if err != nil || info.Incarnation != 2 {
			t.Errorf("Create again = %+v, %v", info, err)
		}
		_ = grant.Nodes(ctx, s, "s", func(n grant.NodeInfo, err error) bool {
			if n.Until.Before(marks[n.Node]) { // later, if a is back already
				t.Errorf("node %d: mark %v, before %v", n.Node, n.Until, marks[n.Node])
			}
			return true
		})
		// a comes back by itself.
		must.Do(t, errors.Join(a.Wait(ctx, phase(grant.Holding)), a.Close(ctx)))
		if _, err := grant.Purge(ctx, s, "s"); err == nil {
			t.Error("Purge of one that is attached is fine, want an error")
		}
		must.Get(grant.Destroy(ctx, s, "s", nil))(t)
		if info, err := grant.Purge(ctx, s, "s"); err != nil || info.State != grant.Purged {
			t.Errorf("Purge = %+v, %v", info, err)
		}
		if info, err := grant.Create(ctx, s, "s", config("snowcast,epoch=1999-01-01T00:00:00Z"), nil); err != nil || info.Incarnation != 3 {
			t.Errorf("Create with another layout after Purge = %+v, %v", info, err)
		}
	})
}

// TestKeptRange: a sequencer that is created again keeps its range of node IDs,
// also with another layout, which must have them.
func TestKeptRange(t *testing.T) {
	ctx, s := t.Context(), new(memstore.Store)
	c := config("default")
	c.Nodes = &grant.NodeRange{Lo: 40, Hi: 50}
	must.Get(grant.Create(ctx, s, "s", c, nil))(t)
	must.Get(grant.Destroy(ctx, s, "s", nil))(t)
	must.Get(grant.Purge(ctx, s, "s"))(t)
	const want = "grant: sequencer s keeps the node IDs 40..50, and layout bits=time:42.node:5.seq:16,unit=1ms," +
		"epoch=1970-01-01T00:00:00Z only has 0..31: give it others (firn sequencer create s --nodes LO..HI)"
	_, err := grant.Create(ctx, s, "s", config("bits=time:42.node:5.seq:16"), nil)
	if !errors.Is(err, grant.ErrMismatch) || err.Error() != want {
		t.Errorf("Create with fewer node IDs = %v, want %v", err, want)
	}
	c = config("bits=time:42.node:5.seq:16")
	c.Nodes = &grant.NodeRange{Lo: 8, Hi: 15}
	if info, err := grant.Create(ctx, s, "s", c, nil); err != nil || *info.Config.Nodes != *c.Nodes {
		t.Errorf("Create with other node IDs = %+v, %v", info, err)
	}
}

// TestDestroyAfterFailover: a node ID that was first claimed after a failover
// is missing in a list of the replaced server. Another operator has begun to
// destroy the sequencer and stopped, so its state is already right.
func TestDestroyAfterFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := new(memstore.Store)
		create(t, s, "s", config("default,epoch=0"), time.Now())
		// Lists come from a replaced server until this client has written
		// something: the worst case that the contract of Store allows.
		b, old := &faultstore.Store{Store: s}, new(memstore.Store)
		b.Fault = func(_ context.Context, r faultstore.Request) error {
			if r.Kind == grant.RequestList && b.Writes.Load() == 0 {
				return r.DoIn(old)
			}
			return r.Do()
		}
		reach := &faultstore.Store{Store: s}
		m := newMember(reach, "s")
		hold(t, m.Keeper)
		reach.Reads.Store(true)
		abandon(t, m.Keeper)
		status, _ := m.Status()
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := grant.Destroy(brief, s, "s", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Destroy, stopped = %v, want %v", err, context.DeadlineExceeded)
		}
		must.Get(grant.Destroy(ctx, b, "s", nil))(t)
		if left := time.Until(status.Until); left > 0 {
			t.Errorf("Destroy returned %v before the window of node ID %d ends", left, status.Node)
		}
	})
}

// TestUndone: a sequencer that is attached again while it is being detached
// stays attached.
func TestUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(replicated.Store)
		create(t, s, "s", config("default,epoch=0"), time.Now())
		put(t, s, "v1/s/n/0007", node("held", "o", time.Now().Add(20*time.Second), time.Now()))
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
		"damaged": {func(time.Time) records { return records{"0007": "no record"} }, detach, []grant.Wait{
			{Why: grant.WaitDamaged, Node: 7, Until: time.Unix(32, 0)}, // MaxAhead and a window after the second call found it
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
					put(t, s, "v1/s/n/"+key, value)
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
				if took := time.Since(now); took < last || took > last+time.Second/4+time.Millisecond {
					t.Errorf("it took %v, want %v", took, last)
				}
			})
		})
	}
}
