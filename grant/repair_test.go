package grant_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

// TestRepair: a repair gives back exactly the node IDs that are blocked and
// remember a span that no window covered, never writes other records, and keeps
// everything that windows may have covered.
func TestRepair(t *testing.T) {
	const now, day = int64(1_800_000_000_000), int64(24 * 3600 * 1000)
	// The window was once 10 min, so no mark of a correct clock is further
	// ahead than 20 min plus MaxAhead.
	limit := now + 1200_000 + config("default").MaxAhead.Milliseconds()
	const year = now + 365*day
	text := func(state string, until int64, spans string) string {
		return fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o","until":%d,"wall":%d,"state":%q,"host":"ids-9"%s}`,
			until, year-30_000, state, spans)
	}
	span := func(name string, from, to int64) string { return fmt.Sprintf(`,%q:[%d,%d]`, name, from, to) }
	claimed := text("held", year, span("gap", now-1000, year-30_000))
	for _, tt := range []struct {
		name    string
		before  string
		until   int64   // afterwards; 0 means that it is not touched
		spoiled []int64 // afterwards
		left    bool
		at      int64 // the clock; 0 means now
	}{
		{name: "claimed by a wrong clock", before: claimed, until: now - 1000, spoiled: []int64{year - 30_000, year}},
		{
			name: "and given back by it", before: text("free", year, span("gap", now-1000, year-30_000)),
			until: now - 1000, spoiled: []int64{year - 30_000, year},
		},
		{
			name:   "claimed twice, with a repair in between",
			before: text("held", now+9*day, span("gap", now-1000, now+8*day)+span("spoiled", now+300*day, now+301*day)),
			until:  now - 1000, spoiled: []int64{now + 8*day, now + 301*day},
		},
		{name: "of a right clock", before: text("held", limit, span("gap", now-9*day, now+1))},
		{
			name: "one millisecond further", before: text("held", limit+1, span("gap", now-9*day, now+1)),
			until: now - 9*day, spoiled: []int64{now + 1, limit + 1},
		},
		{name: "nothing of the gap is left", before: text("held", year, span("gap", now-9*day, now)), left: true},
		{name: "without a gap", before: text("held", year, ""), left: true},
		// 0 does not mean a gap, whatever the clock shows.
		{name: "without a gap, to a clock before 1970", before: text("held", year, ""), left: true, at: -day},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(memstore.Store)
			c := config("default")
			c.Window = 10 * time.Minute
			create(t, s, "s", c, time.UnixMilli(now-100*day))
			must.Get(grant.Destroy(t.Context(), s, "s", nil))(t)
			create(t, s, "s", config("default"), time.UnixMilli(now-100*day))
			faultstore.Put(t, s, "v1/s/n/0007", tt.before)
			faultstore.Put(t, s, "v1/s/n/7", tt.before) // belongs to a layout before a purge
			faultstore.Put(t, s, "v1/s/n/x", tt.before) // belongs to no node ID
			faultstore.Put(t, s, "v1/s/n/0008", `{"v":3,`)
			before := keys(t, s)

			o := &grant.RepairOptions{Now: at(time.UnixMilli(cmp.Or(tt.at, now))).Now, DryRun: true}
			dry, err := grant.Repair(t.Context(), s, "s", o)
			if err != nil || fmt.Sprint(keys(t, s)) != fmt.Sprint(before) {
				t.Fatalf("a dry run = %v, and the store has %v, before %v", err, keys(t, s), before)
			}
			o.DryRun = false
			report, err := grant.Repair(t.Context(), s, "s", o)
			if err != nil || fmt.Sprint(report) != fmt.Sprint(dry) {
				t.Fatalf("Repair = %+v, %v; the dry run said %+v", report, err, dry)
			}
			given := 0
			if tt.until != 0 {
				given = 1
			}
			if len(report.Nodes) != given || (len(report.Left) == 1) != tt.left || len(report.Damaged) != 1 {
				t.Fatalf("Repair = %+v, want %d given back, left %t, 1 damaged", report, given, tt.left)
			}
			if tt.left && (report.Left[0].Node != 7 || report.Left[0].Host != "ids-9") {
				t.Errorf("left %+v", report.Left[0])
			}
			after := keys(t, s)
			if given == 0 {
				if fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the store has %v, before %v", after, before)
				}
				return
			}
			got := parse(t, after["v1/s/n/0007"])
			if got.Until != tt.until || !slices.Equal(got.Spoiled, tt.spoiled) || got.Gap != nil ||
				got.State != "free" || got.Owner != "" || got.Host != "ids-9" || got.Wall != now || len(got.Nonce) != 32 || got.V != 3 {
				t.Errorf("the record is %+v, want it until %d, spoiled %v, free, without a gap", got, tt.until, tt.spoiled)
			}
			n := report.Nodes[0]
			if n.Node != 7 || n.Until.UnixMilli() != parse(t, tt.before).Until || n.Owner != "o" || n.From.UnixMilli() != got.Until ||
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
		faultstore.Put(t, s, "v1/s/n/0007", claimed)
		// A fence after a restore: windows that the backup does not contain may
		// lie anywhere below the floor.
		fence := must.Get(grant.Fence(t.Context(), s, "s", &grant.FenceOptions{LongestWindow: time.Hour, AnyClock: true, Now: clock}))(t)
		report, err := grant.Repair(t.Context(), s, "s", &grant.RepairOptions{Now: clock})
		if err != nil || len(report.Nodes) != 1 || !report.Nodes[0].From.Equal(fence.Floor) {
			t.Errorf("Repair = %+v, %v, want the node ID back from the floor %v on", report, err, fence.Floor)
		}
	})

	s := new(memstore.Store)
	if _, err := grant.Repair(t.Context(), s, "s", nil); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("Repair of no sequencer = %v, want ErrNotFound", err)
	}
}
