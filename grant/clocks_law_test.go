package grant

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// around returns a number at or next to one of some limits.
func around(r *rand.Rand, limits ...int64) int64 {
	return pickOne(r, limits...) + pickOne[int64](r, -1, 0, 1)
}

// storeSays gives the machine the store's time: our clock is ahead of it by
// least to most.
func (r *rig) storeSays(least, most int64) {
	r.m.clocks.asked, r.m.clocks.answered, r.m.clocks.askedAt = true, true, r.m.mono
	r.m.clocks.store, r.m.clocks.within = r.m.wall-most, most-least
}

// TestMayClaimLaw: whether a clock permits a claim, by the table of
// docs/protocol.md, from the store's clock and the clocks of members that write
// records meanwhile.
func TestMayClaimLaw(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	seen := make(map[string]int)
	for range 30_000 {
		r := newRig(t, 4, nil)
		m, c := r.m, &r.m.clocks
		known := random.IntN(2) == 0
		var store int64
		if known {
			store = around(random, 0, 10_000, 20_000, 30_000)
			r.storeSays(store, store+pickOne[int64](random, 0, 3))
		} else {
			c.store, c.askedAt = m.wall+around(random, -90_000, 0, 90_000), m.mono
		}
		m.settings.AllowClockAhead = random.IntN(10) == 0
		c.cleared, c.clearedAt = random.IntN(3) == 0, m.mono-around(random, 0, 60_000)
		clear, clearAt := c.cleared, c.clearedAt
		c.listed = random.IntN(2) == 0 // at an earlier time of watching
		var l sighting
		old := false // a held record was written long ago
		for range random.IntN(4) {
			ago := around(random, 0, 13_000)
			until := m.wall - max(store, 0) + around(random, 0)
			l.others = append(l.others, otherRecord{key: fmt.Sprint(len(l.others)), value: []byte("x"), wall: m.wall - ago, until: until})
			old = old || ago > 10_000+3000
		}
		alive := 0
		for _, o := range l.others {
			if o.until >= m.wall-store {
				alive++
			}
		}
		watched := random.IntN(2) == 0
		var median int64
		agree, leads := 0, 0
		listed := false
		since := m.mono
		if watched {
			c.comparing, c.records, c.leads = true, make(map[string][]byte), make(map[string]lead)
			c.listed = random.IntN(2) == 0
			c.comparingSince = m.mono - around(random, 0, 3000)
			c.readAt = m.mono
			listed, since = c.listed, c.comparingSince
			var all []int64
			for i := range random.IntN(4) {
				least := pickOne[int64](random, -10_000, 0, 10_000, 20_000) + pickOne[int64](random, -2, 0, 2)
				most := least + pickOne[int64](random, 0, 2, 100)
				c.leads[fmt.Sprint("lead", i)] = lead{least, most}
				all = append(all, least)
				if most <= 10_000 && least >= -10_000 {
					agree++
				}
			}
			slices.Sort(all)
			if leads = len(all); leads > 0 {
				median = all[(leads-1)/2]
			}
		}
		records := len(l.others) // because none was watched before
		m.out = nil
		got := m.mayClaim(l)
		long := m.mono-since > 3000
		want := ""
		switch {
		case m.settings.AllowClockAhead, known && store <= 10_000:
			want = "fit"
		case !known && clear && m.mono-clearAt < 60_000:
			want = "fit"
		case !known && !watched && !old:
			want = "fit"
		case leads > 0 && median > 10_000:
			want = "ahead"
		case known && agree >= 2:
			want = "the store is wrong"
		case known && !listed && records < 2:
			want = "list"
		case known:
			want = "ahead"
		case agree > 0 || long:
			want, clear, clearAt = "fit", true, m.mono
			if m.comparedKeys() != nil {
				t.Fatalf("it watches on, and knows enough: %v", m.comparedKeys())
			}
		default:
			want = "comparing"
		}
		seen[want]++
		if c.cleared != clear || c.clearedAt != clearAt {
			t.Fatalf("want %s: clear %t %d ago, want %t %d", want, c.cleared, m.mono-c.clearedAt, clear, m.mono-clearAt)
		}
		if (m.settings.AllowClockAhead || known && store <= 10_000) && c.comparing {
			t.Fatal("it watches on, and nothing depends on it")
		}
		if c.comparing && (c.comparingSince != since || c.readAt != m.mono || len(m.comparedKeys()) != len(c.records)) {
			t.Fatalf("it watches since %d, was read %d ago, %v", m.mono-c.comparingSince, m.mono-c.readAt, m.comparedKeys())
		}
		what := fmt.Sprintf("want %s: store %t %d, clear %t %d ago, watched %t for %d, listed %t, leads %v, others %d, alive %d", want, known, store,
			c.cleared, m.mono-c.clearedAt, watched, m.mono-since, listed, c.leads, len(l.others), alive)
		if got != (want == "fit" || want == "the store is wrong") {
			t.Fatalf("%s: fit %t, %v", what, got, m.status.Err)
		}
		alarm, lists := Alarm(0), false
		for _, a := range m.out {
			alarm, lists = max(alarm, a.Alarm.Kind), lists || a.Kind == actionList && a.Key == "v1/s/n/"
		}
		if lists != (want == "list") || (alarm == AlarmStoreClockOff) != (want == "the store is wrong") {
			t.Fatalf("%s: %+v", what, m.out)
		}
		text := ""
		comparing := want == "comparing"
		switch want {
		case "comparing":
			text = "grant: sequencer s: no node ID is claimed yet: the records of other members look old"
		case "ahead":
			whose, by := "the store's", store
			byOthers := leads > 0 && median > 10_000
			if byOthers {
				whose, by = "those of members that renew their node IDs", median
			}
			comparing = !byOthers && !long && alive >= 2
			text = fmt.Sprintf("grant: sequencer s: this machine's clock is %v ahead of %s (%s, not %s)", time.Duration(by)*time.Millisecond, whose,
				timeText(timeOf(m.wall)), timeText(timeOf(m.wall-by)))
		}
		switch err := m.status.Err; {
		case text == "" && err != nil, text != "" && (!errors.Is(err, ErrClockAhead) || errors.Is(err, ErrComparingClocks) != comparing || !strings.HasPrefix(err.Error(), text) || m.notBefore != m.mono+1000):
			t.Fatalf("%s: %v, and waits for %d, want %s, comparing %t", what, err, m.notBefore-m.mono, text, comparing)
		}
	}
	for _, want := range []string{"fit", "ahead", "the store is wrong", "list", "comparing"} {
		if seen[want] < 100 {
			t.Errorf("%q: %d cases", want, seen[want])
		}
	}
}
