package service

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
)

// TestStaticTable: a static server with the maximum number of names is small,
// serves all of them, and refuses others without counting a creation.
func TestStaticTable(t *testing.T) {
	const most = 4 << 10 // bytes per name
	s := must.Get(NewStaticBackend(StaticBackendConfig{}))(t)
	name := func(i int) string { return fmt.Sprintf("%0128d", i) }
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range DefaultMaxSequencers {
		must.Get(s.Sequencer(t.Context(), name(i), nil))(t)
	}
	if each := (heap() - before) / DefaultMaxSequencers; each > most {
		t.Errorf("a name costs %d bytes, want %d at most", each, most)
	}
	a := new(creators)
	find := func(name string) error {
		front := Front{Backend: s, Auth: a}
		_, err := front.open(t.Context(), &auth.Credentials{Token: "create"}, name, new(Request))
		return err
	}
	if err := find("a-new"); !errors.Is(err, ErrTooManyNames) || ProblemOf(err, time.Second, false).Kind != TooManyNames || a.asked.Load() != 0 {
		t.Errorf("one more: %v, want that there are too many; %d creations were counted", err, a.asked.Load())
	}
	if err := find(name(DefaultMaxSequencers - 1)); err != nil {
		t.Errorf("one of them: %v", err)
	}
}

// TestClockRefusal: a server that is not ready because of its clock reports
// what its generators report, which knows a clock before the epoch from one
// that went back.
func TestClockRefusal(t *testing.T) {
	l := firn.Default()
	epoch := l.Epoch()
	for _, row := range []struct {
		first, now  time.Time // an ID is made at the first, unless it is zero
		beforeEpoch bool
	}{
		{time.Time{}, epoch.Add(-720 * time.Hour), true},
		{epoch.Add(time.Hour), epoch.Add(-time.Millisecond), true},
		{epoch.Add(time.Hour), epoch.Add(time.Minute), false},
		{time.Time{}, l.End(), false},
	} {
		now := row.first
		o := &firn.Options{Now: func() time.Time { return now }}
		s := must.Get(NewStaticBackend(StaticBackendConfig{Layout: l, Node: 1, Options: o}))(t)
		g := must.Get(firn.NewGenerator(l, firn.StaticGrant(1), o))(t)
		if !now.IsZero() {
			q := must.Get(s.Sequencer(t.Context(), "a", nil))(t)
			_, _ = g.TryNext() // the first tick may belong to an earlier process
			_, _ = q.Try(1)
			now = now.Add(time.Second)
			must.Get(g.TryNext())(t)
			must.Get(q.Try(1))(t)
		}
		now = row.now
		_, want := g.TryNext()
		got := s.Ready(t.Context())
		if want == nil || got == nil || got.Error() != want.Error() {
			t.Errorf("first ID at %v, clock at %v:\n got %v\nwant %v", row.first, now, got, want)
		}
		if errors.Is(got, firn.ErrBeforeEpoch) != row.beforeEpoch || errors.Is(want, firn.ErrBeforeEpoch) != row.beforeEpoch {
			t.Errorf("%v is a clock before the epoch: got %t, want %t", got, !row.beforeEpoch, row.beforeEpoch)
		}
	}
}

// TestStaticUsageUnlocked: no lock is held while the caller of Usage and the
// clock run, so that neither can hold up requests.
func TestStaticUsageUnlocked(t *testing.T) {
	var s *StaticBackend
	unlocked := func(what string) {
		t.Helper()
		if s == nil {
			return
		}
		if !s.mu.TryLock() {
			t.Errorf("the lock is held while %s runs", what)
			return
		}
		s.mu.Unlock()
	}
	s = must.Get(NewStaticBackend(StaticBackendConfig{Options: &firn.Options{Now: func() time.Time {
		unlocked("the clock")
		return time.Now()
	}}}))(t)
	must.Get(s.Sequencer(t.Context(), "orders", nil))(t)
	seen := 0
	s.Usage(func(string, *Usage) {
		unlocked("yield")
		seen++
	})
	if seen != 1 {
		t.Errorf("%d names, want 1", seen)
	}
}
