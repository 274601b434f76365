package grant

import (
	"math/rand/v2"
	"testing"
)

// TestMerge compares merge with sets of points of time.
func TestMerge(t *testing.T) {
	const most = 24
	r := rand.New(rand.NewPCG(1, 2))
	below := func(n int64) int64 { return r.Int64N(n + 1) }
	record := func() (v nodeRecord) {
		v.Until = below(most - 6)
		if v.Until > 1 && below(1) == 0 {
			v.Gap[0] = below(v.Until - 1)
			v.Gap[1] = v.Gap[0] + 1 + below(v.Until-v.Gap[0]-1)
		}
		if below(1) == 0 {
			v.Spoiled[0] = v.Until + below(3)
			v.Spoiled[1] = v.Spoiled[0] + 1 + below(2)
		}
		return v
	}
	for range 100_000 {
		a, b := record(), record()
		m := merge(a, b)
		var free, longest int64
		for at := range int64(most) {
			used := a.covered(at) || b.covered(at)
			if used && !m.covered(at) {
				t.Fatalf("%+v and %+v give %+v, where %d is not covered", a, b, m, at)
			}
			if used || at >= m.Until {
				free = 0
			} else {
				free++
			}
			longest = max(longest, free)
		}
		switch {
		case m.Until != max(a.Until, b.Until):
			t.Fatalf("%+v and %+v give the mark %d", a, b, m.Until)
		case m.Gap.length() != longest:
			t.Fatalf("%+v and %+v give the gap %v, and the longest unused span has %d", a, b, m.Gap, longest)
		case m.Gap[1] > m.Until, m.Spoiled.length() > 0 && m.Spoiled[0] < m.Until:
			t.Fatalf("%+v and %+v give %+v, which is no valid record", a, b, m)
		}
		if again := merge(b, m); again.Until != m.Until || again.Gap != m.Gap || again.Spoiled != m.Spoiled {
			t.Fatalf("%+v and %+v give %+v, and again %+v", a, b, m, again)
		}
	}
}
