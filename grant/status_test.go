package grant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

// TestHolds: a node ID is held up to the end of its window, exclusive, whatever
// the phase of its member and its record say.
func TestHolds(t *testing.T) {
	for phase := grant.Idle; phase <= grant.Leaving; phase++ {
		for _, left := range []time.Duration{-1, 0, 1} {
			s := grant.Status{Phase: phase, Until: now.Add(left)}
			want := left > 0 && (phase == grant.Holding || phase == grant.Losing)
			if got := s.Holds(now); got != want {
				t.Errorf("%v with a window that ends in %v: holds %t, want %t", phase, left, got, want)
			}
		}
	}
	s := new(memstore.Store)
	create(t, s, "s", config("default"), now)
	for _, tt := range []struct {
		record string
		at     time.Time
		want   bool
	}{
		{node("held", "o", now, now), now.Add(-1), true}, {node("closing", "o", now, now), now.Add(-1), true},
		{node("held", "o", now, now), now, false}, {node("closing", "o", now, now), now.Add(time.Hour), false},
		{node("free", "o", now, now), now.Add(-1), false}, {node("free", "", now, now), now.Add(-1), false},
	} {
		faultstore.Put(t, s, "v1/s/n/0007", tt.record)
		n := must.Get(grant.LookupNode(t.Context(), s, must.Get(grant.Lookup(t.Context(), s, "s"))(t), 7))(t)
		if got := n.HeldAt(tt.at); got != tt.want {
			t.Errorf("%s: held at %v: %t, want %t", tt.record, tt.at, got, tt.want)
		}
	}
}

// TestAlarmCounts: the counts of all kinds of alarms, and of nothing else.
func TestAlarmCounts(t *testing.T) {
	var counts grant.AlarmCounts
	for i := range counts {
		counts[i] = uint64(i) * 10
	}
	next := grant.AlarmCloned
	for kind, n := range counts.All() {
		if kind != next || n != 10*uint64(kind) || strings.HasPrefix(kind.String(), "Alarm(") {
			t.Errorf("%v: %d, want %v: %d", kind, n, next, 10*uint64(next))
		}
		next++
	}
	if int(next) != len(counts) {
		t.Errorf("the last is %v, want %v", next-1, grant.Alarm(len(counts)-1))
	}
	for range counts.All() {
		break
	}
}
