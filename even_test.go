package firn

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
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
	one := func(next func() (ID, error)) func(int) ([]ID, error) {
		return func(n int) (ids []ID, err error) {
			for range n {
				id, err := next()
				if err != nil {
					return nil, err
				}
				ids = append(ids, id)
			}
			return ids, nil
		}
	}
	batch := func(next func(n int) (Batch, error)) func(int) ([]ID, error) {
		return func(n int) (ids []ID, err error) {
			b, err := next(n)
			for id := range b.All() {
				ids = append(ids, id)
			}
			return ids, err
		}
	}
	for name, take := range map[string]func(*Generator) func(int) ([]ID, error){
		"Next": func(g *Generator) func(int) ([]ID, error) {
			return one(func() (ID, error) { return g.Next(t.Context()) })
		},
		"TryNext":      func(g *Generator) func(int) ([]ID, error) { return one(g.TryNext) },
		"TryNextBatch": func(g *Generator) func(int) ([]ID, error) { return batch(g.TryNextBatch) },
		"NextBatch": func(g *Generator) func(int) ([]ID, error) {
			return batch(func(n int) (Batch, error) { return g.NextBatch(t.Context(), n) })
		},
		"Fill": func(g *Generator) func(int) ([]ID, error) {
			return func(n int) ([]ID, error) {
				ids := make([]ID, n)
				return ids, g.Fill(t.Context(), ids)
			}
		},
	} {
		for _, burst := range []int{1, 3, 100} {
			for _, k := range []int{4, 0} {
				g, clock := newAtNoon(t, "default", Options{LowBits: k})
				var ids []ID
				for range rounds {
					clock.Add(time.Millisecond)
					some, err := take(g)(burst)
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
	g, clock := newAtNoon(t, "default", Options{LowBits: 10})
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
	ahead, _ := newAtNoon(t, "default", Options{LowBits: 4, MaxAhead: time.Second})
	first, err := ahead.TryNext()
	if err != nil {
		t.Fatal(err)
	}
	for i := range ID(100_000) {
		if id, err := ahead.TryNext(); err != nil || ahead.layout.slotOf(id) != ahead.layout.slotOf(first)+uint64(i)+1 {
			t.Fatalf("ID %d under load: %v, %v", i, id, err)
		}
	}
}

// slotOf returns the slot of an ID of the layout default.
func (l *Layout) slotOf(id ID) uint64 { return uint64(id)>>22<<12 | uint64(id)&4095 }

// The first ID of a static node ID is even too: a command makes one and ends.
func TestEvenLowBitsStatic(t *testing.T) {
	var ids []ID
	for range 4000 {
		clock := &handClock{t: noon}
		clock.hook = func() { clock.Add(time.Millisecond) }
		g := newGenerator(t, Default(), StaticGrant(1), &Options{LowBits: 4, Now: clock.Now})
		id, err := g.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if chi := chiSquare(ids, 4); chi > mostChi15 {
		t.Errorf("χ² is %.0f, want less than %v", chi, mostChi15)
	}
}

func TestEvenLowBitsErrors(t *testing.T) {
	for _, row := range []struct {
		layout string
		k      int
		want   string
	}{
		{"default", 10, ""},
		{"default", 11, "number of even low bits 11 is out of range 1..10"},
		{"default", 13, "out of range 1..10"},
		{"default", -1, "out of range"},
		{"default", math.MaxInt, ""},
		{"js53", 5, ""},
		{"js53", 6, "out of range 1..5"},
		{"hazelcast", 4, "the 4 lowest bits of layout hazelcast cannot be made even: bits 15..0 are node, and they must be those of the sequence"},
		{"sonyflake", 4, "bits 15..0 are node"},
		{"lable", 4, "bits 3..0 are const"},
		{"bits=time:41.seq:6.node:10.seq:6", 4, ""},
		{"bits=time:41.seq:10.node:10.seq:2", 4, "out of range 1..2"},
	} {
		_, err := NewGenerator(MustParseLayout(row.layout), StaticGrant(0), &Options{LowBits: row.k})
		if row.k < math.MaxInt && (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) || row.k == math.MaxInt && err == nil {
			t.Errorf("%s, %d bits: %v, want %q", row.layout, row.k, err, row.want)
		}
	}
	if _, err := NewGenerator128(MustParseLayout("uuidv7"), StaticGrant(0), &Options{LowBits: 4}); err == nil || !strings.Contains(err.Error(), "bits 45..0 are rand") {
		t.Errorf("uuidv7: %v", err)
	}
}
