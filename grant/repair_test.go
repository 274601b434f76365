package grant_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// TestRepair: a repair gives back exactly the node IDs that are blocked and
// remember a span that no window covered, never writes other records, and keeps
// everything that windows may have covered.
func TestRepair(t *testing.T) {
	const now, day = int64(1_800_000_000_000), int64(24 * 3600 * 1000)
	type record struct {
		Version int     `json:"v"`
		Nonce   string  `json:"nonce"`
		Owner   string  `json:"owner"`
		Until   int64   `json:"until"`
		Wall    int64   `json:"wall"`
		State   string  `json:"state"`
		Host    string  `json:"host"`
		Gap     []int64 `json:"gap,omitempty"`
		Spoiled []int64 `json:"spoiled,omitempty"`
	}
	// The window was once 10 min, so no mark of a correct clock is further
	// ahead than 20 min plus MaxAhead.
	limit := now + 1200_000 + config("default").MaxAhead.Milliseconds()
	claimed := record{3, "n", "o", now + 365*day, now + 365*day - 30_000, "held", "ids-9", []int64{now - 1000, now + 365*day - 30_000}, nil}
	with := func(change func(*record)) record {
		r := claimed
		change(&r)
		return r
	}
	for _, tt := range []struct {
		name   string
		before record
		after  *record // nil: untouched
		left   bool
		at     int64 // the clock; 0 means now
	}{
		{name: "claimed by a wrong clock", before: claimed, after: &record{Until: now - 1000, Spoiled: []int64{now + 365*day - 30_000, now + 365*day}}},
		{
			name:   "and given back by it",
			before: with(func(r *record) { r.State = "free" }),
			after:  &record{Until: now - 1000, Spoiled: []int64{now + 365*day - 30_000, now + 365*day}},
		},
		{
			name: "claimed twice, with a repair in between",
			before: with(func(r *record) {
				r.Until, r.Gap, r.Spoiled = now+9*day, []int64{now - 1000, now + 8*day}, []int64{now + 300*day, now + 301*day}
			}),
			after: &record{Until: now - 1000, Spoiled: []int64{now + 8*day, now + 301*day}},
		},
		{name: "of a right clock", before: with(func(r *record) { r.Until, r.Gap = limit, []int64{now - 9*day, now + 1} })},
		{name: "one millisecond further", before: with(func(r *record) { r.Until, r.Gap = limit+1, []int64{now - 9*day, now + 1} }), after: &record{Until: now - 9*day, Spoiled: []int64{now + 1, limit + 1}}},
		{name: "nothing of the gap is left", before: with(func(r *record) { r.Gap = []int64{now - 9*day, now} }), left: true},
		{name: "without a gap", before: with(func(r *record) { r.Gap = nil }), left: true},
		// 0 does not mean a gap, whatever the clock shows.
		{name: "without a gap, to a clock before 1970", before: with(func(r *record) { r.Gap = nil }), left: true, at: -day},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(memstore.Store)
			c := config("default")
			c.Window = 10 * time.Minute
			create := func(c grant.Config) {
				create(t, s, "s", c, time.UnixMilli(now-100*day))
			}
			create(c)
			if _, err := grant.Destroy(t.Context(), s, "s", nil); err != nil {
				t.Fatal(err)
			}
			create(config("default"))
			text, err := json.Marshal(tt.before)
			if err != nil {
				t.Fatal(err)
			}
			put := func(key, value string) {
				put(t, s, key, value)
			}
			put("v1/s/n/0007", string(text))
			put("v1/s/n/7", string(text)) // belongs to a layout before a purge
			put("v1/s/n/0008", `{"v":3,`)
			before := keys(t, s)

			at := now
			if tt.at != 0 {
				at = tt.at
			}
			o := &grant.AdminOptions{DryRun: true, Now: func() time.Time { return time.UnixMilli(at) }}
			dry, err := grant.Repair(t.Context(), s, "s", o)
			if err != nil || fmt.Sprint(keys(t, s)) != fmt.Sprint(before) {
				t.Fatalf("a dry run = %v, and the store has %v, before %v", err, keys(t, s), before)
			}
			o.DryRun = false
			report, err := grant.Repair(t.Context(), s, "s", o)
			if err != nil || fmt.Sprint(report) != fmt.Sprint(dry) {
				t.Fatalf("Repair = %+v, %v; the dry run said %+v", report, err, dry)
			}
			given, left := 0, 0
			if tt.after != nil {
				given = 1
			}
			if tt.left {
				left = 1
			}
			if len(report.Nodes) != given || len(report.Left) != left || len(report.Damaged) != 1 {
				t.Fatalf("Repair = %+v, want %d given back, %d left, 1 damaged", report, given, left)
			}
			if left == 1 && (report.Left[0].Node != 7 || report.Left[0].Host != "ids-9" || !report.Left[0].Kept.IsZero()) {
				t.Errorf("left %+v", report.Left[0])
			}
			after := keys(t, s)
			if tt.after == nil {
				if fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the store has %v, before %v", after, before)
				}
				return
			}
			var got record
			if err := json.Unmarshal([]byte(after["v1/s/n/0007"]), &got); err != nil {
				t.Fatal(err)
			}
			if got.Until != tt.after.Until || !slices.Equal(got.Spoiled, tt.after.Spoiled) || got.Gap != nil ||
				got.State != "free" || got.Owner != "" || got.Host != "ids-9" || got.Wall != now || len(got.Nonce) != 32 || got.Version != 3 {
				t.Errorf("the record is %+v, want %+v, free, without a gap", got, tt.after)
			}
			n := report.Nodes[0]
			if n.Node != 7 || n.Until.UnixMilli() != tt.before.Until || n.Owner != "o" || n.From.UnixMilli() != got.Until ||
				n.To.UnixMilli() != got.Spoiled[0] || n.Kept.UnixMilli() != got.Spoiled[1] {
				t.Errorf("the report says %+v, and the record is %+v", n, got)
			}
			for _, key := range []string{"v1/s/n/0007", "v1/s/config"} { // the latter: see TestLastChange
				delete(before, key)
				delete(after, key)
			}
			if fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("it wrote more than the one record: %v, before %v", after, before)
			}
			if again, err := grant.Repair(t.Context(), s, "s", o); err != nil || len(again.Nodes)+len(again.Left) > 0 {
				t.Errorf("again: %+v, %v, want nothing to repair", again, err)
			}
		})
	}

	t.Run("fenced", func(t *testing.T) {
		s := new(memstore.Store)
		clock := func() time.Time { return time.UnixMilli(now) }
		create(t, s, "s", config("default"), clock().AddDate(0, 0, -9))
		text, _ := json.Marshal(claimed)
		if ok, err := s.CAS(t.Context(), "v1/s/n/0007", nil, text); !ok || err != nil {
			t.Fatal(ok, err)
		}
		// A fence after a restore: windows that the backup does not contain may
		// lie anywhere below the floor.
		fence, err := grant.Fence(t.Context(), s, "s", &grant.AdminOptions{LongestWindow: time.Hour, AnyClock: true, Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		report, err := grant.Repair(t.Context(), s, "s", &grant.AdminOptions{Now: clock})
		if err != nil || len(report.Nodes) != 1 || !report.Nodes[0].From.Equal(fence.Floor) {
			t.Errorf("Repair = %+v, %v, want the node ID back from the floor %v on", report, err, fence.Floor)
		}
	})

	s := new(memstore.Store)
	if _, err := grant.Repair(t.Context(), s, "s", nil); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("Repair of no sequencer = %v, want ErrNotFound", err)
	}
}
