package grant_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// TestFenceUnsure: a fence reports if it cannot know the longest window, and
// only the operator's value makes it sure.
func TestFenceUnsure(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name     string
		created  time.Duration // before now
		written  time.Duration // before now: the only record; 0 means no record
		restored time.Duration // before now; 0 means unknown
		longest  time.Duration
		want     bool
	}{
		{name: "as old as the store", created: 100 * day, written: day},
		{name: "no record", created: 100 * day, want: true},
		{name: "no record, and the restore is known", created: 100 * day, restored: time.Hour, want: true},
		{name: "unused since it was created", created: 2 * day, written: 3 * day, want: true},
		{name: "unused since it was created, and the restore is known", created: 2 * day, written: 3 * day, restored: day, want: true},
		{name: "created today", created: 23 * time.Hour, written: time.Hour, want: true},
		{name: "created yesterday", created: day + time.Second, written: time.Hour},
		{name: "created today, before the restore", created: 23 * time.Hour, written: 2 * time.Hour, restored: time.Hour},
		{name: "created within the skew before the restore", created: time.Hour + 9*time.Second, written: time.Minute, restored: time.Hour, want: true},
		{name: "created after a restore of last week", created: 5 * day, written: day, restored: 6 * day, want: true},
		{name: "created by a clock that was ahead", created: -day, written: -2 * day, want: true},
		{name: "no record, and the window is given", created: time.Hour, longest: time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(memstore.Store)
			if _, err := grant.Create(t.Context(), s, "s", config("default"), now.Add(-tt.created)); err != nil {
				t.Fatal(err)
			}
			if tt.written != 0 {
				text := fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o","until":%d,"wall":%d,"state":"free","host":"h"}`, now.UnixMilli(), now.Add(-tt.written).UnixMilli())
				if ok, err := s.CAS(t.Context(), "v1/s/n/0001", nil, []byte(text)); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			o := &grant.FenceOptions{DryRun: true, LongestWindow: tt.longest, Now: func() time.Time { return now }, AnyClock: true}
			if tt.restored != 0 {
				o.Restored = now.Add(-tt.restored)
			}
			if r, err := grant.Fence(t.Context(), s, "s", o); err != nil || r.Unsure != tt.want {
				t.Errorf("Fence = %+v, %v, want unsure %t", r, err, tt.want)
			}
		})
	}
}

// TestFenceLeast: however short windows are, members learn of a fence before
// the first new window begins, even that of a clock that is ahead.
func TestFenceLeast(t *testing.T) {
	s, now := new(memstore.Store), time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	c := config("default")
	c.MaxAhead, c.Window = 0, 100*time.Millisecond
	if _, err := grant.Create(t.Context(), s, "s", c, now); err != nil {
		t.Fatal(err)
	}
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
	if _, err := grant.Create(t.Context(), s, "s", config("default"), now); err != nil {
		t.Fatal(err)
	}
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
