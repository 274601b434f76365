package grant_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// TestFenceLeast: however short windows are, members learn of a fence before
// the first new window begins, even that of a clock that is ahead.
func TestFenceLeast(t *testing.T) {
	s, now := new(memstore.Store), time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	c := config("default")
	c.MaxAhead, c.Window = 0, 100*time.Millisecond
	create(t, s, "s", c, now)
	for _, skew := range []time.Duration{time.Millisecond, 10 * time.Second, time.Minute} {
		r, err := grant.Fence(t.Context(), s, "s", &grant.FenceOptions{Now: func() time.Time { return now }, Skew: skew})
		if err != nil || r.Floor.Sub(now)-skew < 30*time.Second {
			t.Errorf("Fence = a floor %v after now, %v, want 30s or more by a clock that is %v ahead", r.Floor.Sub(now), err, skew)
		}
	}
}

// TestFenceLongestWindow: a fence rejects a window that a configuration cannot
// contain, and rounds none down.
func TestFenceLongestWindow(t *testing.T) {
	s := new(memstore.Store)
	now := time.UnixMilli(1_800_000_000_000)
	create(t, s, "s", config("default"), now)
	fence := func(longest time.Duration) (grant.FenceReport, error) {
		return grant.Fence(t.Context(), s, "s", &grant.FenceOptions{LongestWindow: longest, Now: func() time.Time { return now }})
	}
	const most = 366 * 24 * time.Hour
	before := keys(t, s)
	for _, longest := range []time.Duration{-1, most + 1, 1 << 62} {
		if _, err := fence(longest); err == nil {
			t.Errorf("Fence with a longest window of %v is fine, want an error", longest)
		}
	}
	if after := keys(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("refused fences wrote %v, before %v", after, before)
	}
	for longest, want := range map[time.Duration]time.Duration{time.Minute + 1: time.Minute + time.Millisecond, most: most} {
		r, err := fence(longest)
		info, lookup := grant.Lookup(t.Context(), s, "s")
		if err != nil || lookup != nil || r.LongestWindow < want || info.LongestWindow < want || r.Unsure {
			t.Errorf("Fence with %v = %+v, %v, and the configuration %+v, %v; want %v in both", longest, r, err, info, lookup, want)
		}
	}
}
