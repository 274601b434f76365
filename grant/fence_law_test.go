package grant_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

// A record is a node's record as it was written, parsed again.
type record struct {
	V           int
	Nonce       string
	Owner       string
	Until, Wall int64
	State, Host string
	From        *int64
	Over        map[string]any
	Gap         []int64
	Spoiled     []int64
}

func parse(t *testing.T, value string) (r record) {
	t.Helper()
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return r
}

func millis(at time.Time) int64 { return at.UnixMilli() }

// randomRecords stores records of all kinds whose marks are near a time, and
// returns those that can be read.
func randomRecords(t *testing.T, s grant.Store, r *rand.Rand, near time.Time) map[uint64]grant.NodeInfo {
	t.Helper()
	about := func() time.Time { return near.Add(time.Duration(r.IntN(200_000)-100_000) * time.Millisecond) }
	for number := range uint64(1 + r.IntN(12)) {
		until, wall := about(), now.Add(-time.Duration(r.IntN(20_000))*time.Second)
		if r.IntN(8) == 0 {
			wall = now.Add(-24 * time.Hour) // for example, when it was created
		}
		if r.IntN(20) == 0 {
			until = now.Add(500 * 24 * time.Hour)
		}
		value := node([]string{"held", "closing", "free"}[r.IntN(3)], "owner", until, wall)
		if r.IntN(2) == 0 {
			spans := fmt.Sprintf(`,"from":%d,"over":{"until":5,"nonce":"m"}`, millis(until)-r.Int64N(9)) // it is gone afterwards
			if from, to := about(), about(); from.Before(to) && !to.After(until) {
				spans += fmt.Sprintf(`,"gap":[%d,%d]`, millis(from), millis(to))
			}
			if from := millis(until) + r.Int64N(100_000); r.IntN(2) == 0 {
				spans += fmt.Sprintf(`,"spoiled":[%d,%d]`, from, from+1+r.Int64N(100_000))
			}
			value = value[:len(value)-1] + spans + "}"
		}
		if r.IntN(6) == 0 {
			value = value[:40] // damaged
		}
		faultstore.Put(t, s, fmt.Sprintf("v1/s/n/%04d", number), value)
	}
	return nodes(t, s, "s")
}

// TestFenceLaw: a fence sets the floor given in docs/protocol.md, gives every
// record new bytes, no owner, and a mark at or above both its own and the
// floor, and reports exactly that. One that is unsure of the longest window
// writes nothing.
func TestFenceLaw(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := new(memstore.Store)
		c := config("default")
		if r.IntN(4) == 0 { // members learn of a fence within 30 s, however short windows are
			c.MaxAhead, c.Window = 0, 100*time.Millisecond
		}
		age := []time.Duration{0, time.Hour, 24*time.Hour - time.Millisecond, 24 * time.Hour, 100 * time.Hour}[r.IntN(5)]
		create(t, s, "s", c, now.Add(-age))
		o := &grant.FenceOptions{
			Skew: time.Duration(r.IntN(3)) * 7 * time.Second, Now: func() time.Time { return now }, // a skew of 0 means 10 s
			LongestWindow: time.Duration(r.IntN(2)*r.IntN(100)) * time.Second,
		}
		given := o.LongestWindow
		if given > 0 {
			o.LongestWindow -= time.Millisecond - 1 // it is rounded up
		}
		ahead := c.MaxAhead + o.Skew
		if o.Skew == 0 {
			ahead += 10 * time.Second
		}
		longest := max(c.Window, given)
		var earlier time.Time
		if r.IntN(2) == 0 { // an earlier fence, perhaps by a clock that was ahead, and with another window
			other := *o
			other.LongestWindow = time.Duration(1+r.IntN(100)) * time.Second
			by := time.Duration(r.IntN(60_000)-30_000) * time.Millisecond
			other.Now = func() time.Time { return now.Add(by) }
			longest = max(longest, other.LongestWindow)
			report, err := grant.Fence(t.Context(), s, "s", &other)
			earlier = now.Add(by + ahead + max(2*c.Window, 2*other.LongestWindow, 30*time.Second))
			if err != nil || !report.Floor.Equal(earlier) || report.Records != 0 || report.Unsure != "" {
				t.Fatalf("seed %d: the first fence: %+v, %v; want the floor %v", seed, report, err, earlier)
			}
		}
		near := now.Add(ahead + 2*longest)
		marks := randomRecords(t, s, r, near)
		before := keys(t, s)
		was := must.Get(grant.Lookup(t.Context(), s, "s"))(t)
		var held []grant.NodeInfo
		unsure := given == 0
		old := false // a record is older than the configuration
		for _, number := range slices.Sorted(maps.Keys(marks)) {
			n := marks[number]
			if n.HeldAt(now) {
				held = append(held, n)
			}
			if n.Held {
				longest = max(longest, min(n.Until.Sub(n.Written), 366*24*time.Hour))
			}
			old = old || n.Written.After(now.Add(-age))
		}
		unsure = unsure && (!old || age < 24*time.Hour)
		floor := now.Add(ahead + max(2*longest, 30*time.Second))
		if earlier.After(floor) {
			floor = earlier
		}
		damaged := len(before) - 1 - len(marks)
		check := func(what string, report grant.FenceReport, err error) {
			t.Helper()
			refused := unsure && !o.DryRun
			if errors.Is(err, grant.ErrUnsure) != refused || err != nil && !refused || !report.Floor.Equal(floor) ||
				report.Records != len(marks) || report.LongestWindow != longest || (report.Unsure != "") != unsure || !slices.Equal(report.Nodes, held) || len(report.Damaged) != damaged {
				t.Fatalf("seed %d: %s: %+v, %v; want floor %v, longest window %v, unsure %t, %d records, held %+v, %d damaged",
					seed, what, report, err, floor, longest, unsure, len(marks), held, damaged)
			}
		}
		o.DryRun = true
		report, err := grant.Fence(t.Context(), s, "s", o)
		check("dry run", report, err)
		if !maps.Equal(before, keys(t, s)) {
			t.Fatalf("seed %d: a dry run wrote", seed)
		}
		o.DryRun = false
		if unsure {
			report, err = grant.Fence(t.Context(), s, "s", o)
			check("unsure fence", report, err)
			if !maps.Equal(before, keys(t, s)) {
				t.Fatalf("seed %d: a fence that was refused wrote", seed)
			}
			o.LongestWindow, unsure = c.Window, false
		}
		report, err = grant.Fence(t.Context(), s, "s", o)
		check("fence", report, err)
		after := keys(t, s)
		nonces := make(map[string]bool)
		for key, value := range after {
			if key == "v1/s/config" {
				continue
			}
			if _, ok := marks[numberOf(key)]; !ok {
				if value != before[key] {
					t.Errorf("seed %d: a damaged record was written", seed)
				}
				continue
			}
			was, is := parse(t, before[key]), parse(t, value)
			if len(is.Nonce) != 32 || nonces[is.Nonce] || is.Nonce == was.Nonce {
				t.Errorf("seed %d: %s: its nonce is not new: %s", seed, key, value)
			}
			nonces[is.Nonce] = true
			want := record{V: 3, Nonce: is.Nonce, Until: max(was.Until, millis(floor)), Wall: millis(now), State: "free", Host: "h", Spoiled: was.Spoiled}
			if was.Spoiled != nil && was.Spoiled[0] < want.Until {
				want.Until, want.Spoiled = max(want.Until, was.Spoiled[1]), nil
			}
			if was.Gap != nil && was.Gap[1] > millis(floor) {
				want.Gap = []int64{max(was.Gap[0], millis(floor)), was.Gap[1]}
			}
			if fmt.Sprint(is) != fmt.Sprint(want) {
				t.Errorf("seed %d: %s is\n%+v, before\n%+v, want\n%+v", seed, key, is, was, want)
			}
		}
		info, err := grant.Lookup(t.Context(), s, "s")
		if err != nil || !info.Floor.Equal(floor) || info.Incarnation != was.Incarnation+1 || info.State != was.State ||
			info.LongestWindow != max(was.LongestWindow, given) {
			t.Errorf("seed %d: %+v, %v; before %+v", seed, info, err, was)
		}
	}
}

func numberOf(key string) (number uint64) {
	if _, err := fmt.Sscanf(key, "v1/s/n/%d", &number); err != nil {
		return 1 << 63
	}
	return number
}

// TestFenceClock: the clock at a fence may be up to a day behind the latest of
// all records and up to 366 days ahead of it, unless more is allowed.
func TestFenceClock(t *testing.T) {
	s := new(memstore.Store)
	create(t, s, "s", config("default"), now)
	const behind, ahead = -24 * time.Hour, 366 * 24 * time.Hour
	longest := 30 * time.Second
	fence := func(by time.Duration, any bool) error {
		report, err := grant.Fence(t.Context(), s, "s", &grant.FenceOptions{Now: func() time.Time { return now.Add(by) }, AnyClock: any, DryRun: true})
		if want := now.Add(by + 2*longest + 10*time.Second).Add(config("default").MaxAhead); !report.Floor.Equal(want) {
			t.Errorf("by %v: the floor is %v, want %v", by, report.Floor, want)
		}
		return err
	}
	for _, by := range []time.Duration{10 * behind, 10 * ahead} {
		if err := fence(by, false); err != nil {
			t.Errorf("without a record: %v", err)
		}
	}
	// The latest record is in the middle, and free.
	longest = 2 * time.Hour // of the third, which is held
	faultstore.Put(t, s, "v1/s/n/0001", node("held", "o", now, now.Add(-time.Hour)))
	faultstore.Put(t, s, "v1/s/n/0002", node("free", "o", now.Add(-time.Hour), now))
	faultstore.Put(t, s, "v1/s/n/0003", node("held", "o", now, now.Add(-2*time.Hour)))
	for by, says := range map[time.Duration]string{
		behind: "", ahead: "", behind - time.Millisecond: "24h0m0.001s before", ahead + time.Millisecond: "8784h0m0.001s after",
	} {
		if err := fence(by, false); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) ||
			errors.Is(err, grant.ErrClockBehind) != (by < behind) || errors.Is(err, grant.ErrClockAhead) != (by > ahead) {
			t.Errorf("by %v: %v, want %q", by, err, says)
		}
		if err := fence(by, true); err != nil {
			t.Errorf("by %v, and allowed: %v", by, err)
		}
	}
	far := func() time.Time { return time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }
	if _, err := grant.Fence(t.Context(), s, "s", &grant.FenceOptions{Now: far, AnyClock: true, LongestWindow: time.Minute}); err == nil {
		t.Error("a fence in a year that no record can have is fine")
	}
}

// TestFencesTogether: if two fences run at once, the higher floor stays.
func TestFencesTogether(t *testing.T) {
	for _, higher := range []bool{false, true} {
		s := populate(t, operations[:1])
		o := &grant.FenceOptions{Now: func() time.Time { return now }, DryRun: true, LongestWindow: config("default").Window}
		own := must.Get(grant.Fence(t.Context(), s, "s", o))(t)
		want, other := own.Floor, own.Floor.Add(-time.Second)
		if higher {
			other = own.Floor.Add(time.Hour)
			want = other
		}
		r := racing(s, "v1/s/config", 0, 1, func() {
			value := keys(t, s)["v1/s/config"]
			faultstore.Put(t, s, "v1/s/config", strings.Replace(value, `"floor":null`, fmt.Sprintf(`"floor":%d`, millis(other)), 1))
		})
		o.DryRun = false
		must.Get(grant.Fence(t.Context(), r, "s", o))(t)
		info, err := grant.Lookup(t.Context(), s, "s")
		if err != nil || !info.Floor.Equal(want) {
			t.Errorf("another fence at %v: the floor is %v, %v, want %v", other, info.Floor, err, want)
		}
	}
}

// TestFenceLongestWindow: a fence rejects a window that a configuration cannot
// contain.
func TestFenceLongestWindow(t *testing.T) {
	const most = 366 * 24 * time.Hour
	s := populate(t, operations[:1])
	before := keys(t, s)
	for longest, good := range map[time.Duration]bool{-1: false, most + 1: false, 1 << 62: false, most: true} {
		o := &grant.FenceOptions{LongestWindow: longest, Now: at(now).Now, DryRun: true}
		r, err := grant.Fence(t.Context(), s, "s", o)
		if (err == nil) != good || good && r.LongestWindow != most {
			t.Errorf("Fence with a longest window of %v = %+v, %v", longest, r, err)
		}
	}
	if after := keys(t, s); !maps.Equal(after, before) {
		t.Errorf("refused fences wrote %v, before %v", after, before)
	}
}
