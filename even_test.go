package firn

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// chiSquare returns χ² of the low k bits of IDs against an even distribution.
func chiSquare(ids []ID, k int) float64 {
	count := make([]float64, 1<<k)
	for _, id := range ids {
		count[id&(1<<k-1)]++
	}
	sum, want := 0.0, float64(len(ids))/float64(len(count))
	for _, n := range count {
		sum += (n - want) * (n - want) / want
	}
	return sum
}

// With 15 degrees of freedom, an even distribution exceeds this once in 10^12:
// all checks of this file together fail less than once in 10^9 runs.
const mostChi15 = 90.0

// The low bits are even at one ID a tick and in bursts, however IDs are taken;
// without the option they are all 0 at one a tick. IDs increase, and none is
// counted that was skipped.
func TestEvenLowBits(t *testing.T) {
	const rounds = 4000
	calls := maps.Clone(waitingCalls)
	calls["TryNext"] = func(_ context.Context, g *Generator, n int) (ids []ID, err error) {
		for err == nil && len(ids) < n {
			var id ID
			id, err = g.TryNext()
			ids = append(ids, id)
		}
		return ids, err
	}
	for name, take := range calls {
		for _, burst := range []int{1, 3, 100} {
			for _, k := range []int{4, 0} {
				g, clock := newAtNoon(t, fmt.Sprintf("default,even=%d", k), Options{})
				var ids []ID
				for range rounds {
					clock.Add(time.Millisecond)
					some, err := take(t.Context(), g, burst)
					if err != nil || len(some) != burst {
						t.Fatalf("%s: %d IDs, %v", name, len(some), err)
					}
					ids = append(ids, some...)
				}
				for i := range ids[1:] {
					if ids[i+1] <= ids[i] {
						t.Fatalf("%s: ID %v follows %v", name, ids[i+1], ids[i])
					}
				}
				if s := g.Stats(); s.IDs != uint64(len(ids)) {
					t.Errorf("%s: %d IDs made, want %d", name, s.IDs, len(ids))
				}
				// IDs of a burst are consecutive: bursts vary, not IDs.
				switch chi := chiSquare(ids, 4) / float64(burst); {
				case k > 0 && chi > mostChi15:
					t.Errorf("%s, %d a tick: χ² is %.0f, want less than %v", name, burst, chi, mostChi15)
				case k == 0 && burst == 1 && chi != 15*rounds:
					t.Errorf("%s: χ² is %.0f without the option, want %d", name, chi, 15*rounds)
				}
			}
		}
	}
}

// A take that would not fit into the tick begins at 0, so whole ticks are
// available at MaxAhead 0, and a busy generator skips nothing.
func TestEvenLowBitsFit(t *testing.T) {
	g, clock := newAtNoon(t, "default,even=10", Options{})
	for range 100 {
		clock.Add(time.Millisecond)
		b, err := g.TryNextBatch(4096)
		if err != nil || len(b.Runs()) != 1 || b.Runs()[0].First&4095 != 0 || b.Runs()[0].Count != 4096 {
			t.Fatalf("a batch of a whole tick: %v, %v", b.Runs(), err)
		}
	}
	clock.Add(time.Millisecond)
	ids := make([]ID, 4096)
	if err := g.Fill(t.Context(), ids); err != nil || ids[0]&4095 != 0 {
		t.Errorf("Fill of a whole tick begins at %d, %v", ids[0]&4095, err)
	}
	clock.Add(time.Millisecond)
	if b, _, err := g.Reserve(5); err != nil || b.Runs()[0].First&4095 != 0 {
		t.Errorf("Reserve: %v, %v", b.Runs(), err)
	}
	ahead, _ := newAtNoon(t, "default", Options{MaxAhead: time.Second})
	first := must.Get(ahead.TryNext())(t)
	for i := range ID(100_000) {
		if id, err := ahead.TryNext(); err != nil || ahead.slotOf(t, id) != ahead.slotOf(t, first)+uint64(i)+1 {
			t.Fatalf("ID %d under load: %v, %v", i, id, err)
		}
	}
}

// The first ID of a static node ID is even too: a command makes one and ends.
func TestEvenLowBitsStatic(t *testing.T) {
	var ids []ID
	for range 4000 {
		clock := &handClock{t: noon}
		clock.hook = func() { clock.Add(time.Millisecond) }
		g := newGenerator(t, Default(), StaticGrant(1), &Options{Now: clock.Now})
		id := must.Get(g.Next(context.Background()))(t)
		ids = append(ids, id)
	}
	if chi := chiSquare(ids, 4); chi > mostChi15 {
		t.Errorf("χ² is %.0f, want less than %v", chi, mostChi15)
	}
}

// even is a part of a layout's text: the default of a preset is left out, and
// two layouts that differ in it alone have the same IDs.
func TestEvenText(t *testing.T) {
	for _, row := range []struct {
		text string
		even int
		want string // the canonical text, or the error
	}{
		{"default", 4, "default"},
		{"default,even=4", 4, "default"},
		{"default,even=0", 0, "default,even=0"},
		{"default,even=10", 10, "default,even=10"},
		{"default,even=11", 0, `even is "11", not a number from 0 to 10`},
		{"default,even=-1", 0, `even is "-1", not a number from 0 to 10`},
		{"default,even=", 0, `"even=" should be key=value`},
		{"default,even=4,even=4", 0, `"even" is given twice`},
		{"default,seq-bits=5", 3, "default,seq-bits=5"},
		{"default,seq-bits=2", 0, "default,seq-bits=2"},
		{"default,seq-bits=5,even=0,epoch=0", 0, "default,seq-bits=5,epoch=1970-01-01T00:00:00Z,even=0"},
		{"js53", 0, "js53"},
		{"js53,even=5", 5, "js53,even=5"},
		{"js53,even=6", 0, "not a number from 0 to 5"},
		{"twitter", 0, "twitter"},
		{"hazelcast,even=0", 0, "hazelcast"},
		{"hazelcast,even=4", 0, `even is "4", but the lowest bits of this layout are not those of a sequence of at least 3 bits`},
		{"sonyflake,even=4", 0, "are not those of a sequence"},
		{"lable,even=4", 0, "are not those of a sequence"},
		{"uuidv7,even=1", 0, "are not those of a sequence"},
		{"bits=time:41.node:10.seq:12", 0, "bits=time:41.node:10.seq:12,unit=1ms,epoch=1970-01-01T00:00:00Z"},
		{"bits=time:41.seq:6.node:10.seq:6,even=4", 4, "bits=time:41.seq:6.node:10.seq:6,unit=1ms,epoch=1970-01-01T00:00:00Z,even=4"},
		{"bits=time:41.seq:10.node:10.seq:2,even=4", 0, "not a number from 0 to 2"},
	} {
		l, err := ParseLayout(row.text)
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: %v, want %s", row.text, err, row.want)
			}
		case int(l.even) != row.even || l.String() != row.want:
			t.Errorf("%s: even is %d, and the text %s, want %d and %s", row.text, int(l.even), l, row.even, row.want)
		}
	}
	for _, row := range []struct {
		a, b string
		want bool
	}{
		{"default", "default,even=0", true},
		{"default", "bits=time:41.node:10.seq:12,epoch=2026-01-01T00:00:00Z", true},
		{"twitter", "bits=time:41.node:10.seq:12,epoch=1288834974657,even=3", true},
		{"default", "default,epoch=0", false},
		{"default", "default,node-bits=11,seq-bits=11", false},
		{"default", "bits=time:41.node:10.seq:12,epoch=2026-01-01T00:00:00Z,unit=2ms", false},
		{"lable,cluster=1", "lable,cluster=2", false},
	} {
		a, b := MustParseLayout(row.a), MustParseLayout(row.b)
		if got := a.SameIDs(b); got != row.want || b.SameIDs(a) != row.want || !a.SameIDs(a) {
			t.Errorf("%s and %s have the same IDs: %t, want %t", a, b, got, row.want)
		}
	}
}
