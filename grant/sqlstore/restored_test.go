package sqlstore

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// A member is a Keeper and a Holder that uses all times of its windows.
type member struct {
	*grant.Keeper
	mu    sync.Mutex
	grant firn.Grant
	used  time.Time
}

func (m *member) Begin(g firn.Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grant = g
	return nil
}

func (m *member) Extend(until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grant.Until = until
	return nil
}

func (m *member) Stop() { _ = m.Begin(firn.Grant{}) }

func (m *member) Used() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Before(m.grant.Until) && now.After(m.used) {
		m.used = now
	}
	return m.used
}

// works reports whether the member can use the current time.
func (m *member) works() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.grant.Until) && !m.grant.From.After(time.Now())
}

func create(t *testing.T, s *store, name string) {
	t.Helper()
	must.Get(grant.Create(t.Context(), s, name, grant.DefaultConfig(s, firn.MustParseLayout("default,epoch=0"), nil), nil))(t)
}

// fence fences a sequencer in another process.
func fence(t *testing.T, f *fake, name string) {
	t.Helper()
	must.Get(grant.Fence(t.Context(), f.store(t), name, &grant.FenceOptions{LongestWindow: time.Minute}))(t)
}

// look looks a sequencer up, which must succeed or fail with an error.
func look(t *testing.T, s *store, step, name string, want error) {
	t.Helper()
	if _, err := grant.Lookup(t.Context(), s, name); !errors.Is(err, want) {
		t.Errorf("%s: Lookup(%s) = %v, want %v", step, name, err, want)
	}
}

// TestRestored: a server with a lower timeline is refused as long as it may be
// the one that was replaced: no member writes to it, or freezes, and all
// continue when the promoted one answers again. If it was restored, a fence
// since the promoted one answered last clears the sequencer that was fenced, for
// members that used it before and for those that did not, and no other.
func TestRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := f.store(t)
		f.timeline = 2
		writes := 0
		f.on(func(what string, _ func()) error {
			if what == "UPDATE" || what == "INSERT" {
				f.set(func() { writes++ })
			}
			return nil
		})
		serve := func(timeline int64, rows map[string]fakeRow) (before map[string]fakeRow) {
			f.set(func() { before, f.rows, f.timeline = f.rows, maps.Clone(rows), timeline })
			return before
		}
		members := make(map[string]*member)
		for _, name := range []string{"a", "b", "left", "idle", "unfenced"} {
			create(t, s, name)
		}
		fence(t, f, "idle")
		for _, name := range []string{"a", "b", "left"} {
			m := new(member)
			m.Keeper = grant.NewKeeper(s, name, nil, m, nil)
			members[name] = m
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				_ = m.Close(ctx)
			})
			must.Do(t, m.Join(t.Context()))
		}
		time.Sleep(5 * time.Minute)
		must.Do(t, members["left"].Leave(t.Context()))
		time.Sleep(time.Second)
		backup := maps.Clone(serve(2, f.rows))
		want := func(step, name string, works bool, why error, wentBack uint64) {
			t.Helper()
			m := members[name]
			status, _ := m.Status()
			alarms := uint64(0)
			for _, n := range m.Stats().Alarms {
				alarms += n
			}
			if m.works() != works || !errors.Is(status.Err, why) || alarms != wentBack {
				t.Errorf("%s: %s works: %t, %v, alarms %v; want %t, %v and %d alarms", step, name, m.works(), status.Err, m.Stats().Alarms, works, why, wentBack)
			}
		}
		time.Sleep(5 * time.Minute)
		for _, name := range []string{"a", "b"} {
			want("before", name, true, nil, 0)
		}

		newer := serve(1, backup)
		writes = 0
		time.Sleep(10 * time.Minute)
		for _, name := range []string{"a", "b"} {
			want("replaced", name, false, ErrReplica, 0)
			look(t, s, "replaced", name, ErrReplica)
		}
		look(t, s, "replaced", "idle", ErrReplica) // fenced, but before
		if writes > 0 {
			t.Errorf("%d writes to a server that was replaced", writes)
		}
		serve(2, newer)
		time.Sleep(time.Minute)
		for _, name := range []string{"a", "b"} {
			want("promoted", name, true, nil, 0)
		}

		// Others have written so often since that the revision is not lower.
		key := "v1/unfenced/config"
		backup[key] = fakeRow{backup[key].value, backup[key].n + 1<<20}
		serve(1, backup)
		time.Sleep(5 * time.Minute)
		fence(t, f, "a")
		time.Sleep(5 * time.Minute)
		want("a fenced", "a", true, nil, 0)
		want("a fenced", "b", false, grant.ErrStoreWentBack, 1)
		// No record of its own shows this one that the store went back.
		must.Do(t, members["left"].Join(t.Context()))
		time.Sleep(time.Minute)
		want("a fenced", "left", false, grant.ErrStoreWentBack, 1)
		for key, r := range backup {
			if f.mu.Lock(); key[:4] == "v1/b" && f.rows[key].n != r.n {
				t.Errorf("%s was written before its fence", key)
			}
			f.mu.Unlock()
		}
		fence(t, f, "b")
		time.Sleep(5 * time.Minute)
		want("b fenced", "b", true, nil, 1)
	})
}

// TestRestoredUnused: a process that has used no sequencer of a restored server
// uses it when the first one that it reads was fenced since.
func TestRestoredUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := f.store(t)
		for _, name := range []string{"a", "b"} {
			create(t, s, name)
		}
		serve := func(timeline int64) { f.set(func() { f.timeline = timeline }) }
		serve(2)
		look(t, s, "promoted", "a", nil)
		serve(1)
		time.Sleep(time.Minute)
		look(t, s, "restored", "a", ErrReplica)
		fence(t, f, "a")
		look(t, s, "a fenced", "b", ErrReplica)
		look(t, s, "a fenced", "a", nil)
		look(t, s, "a fenced and used", "b", nil)
	})
}
