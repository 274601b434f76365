package grant

import (
	"math/rand/v2"
	"testing"
)

// TestMerge compares mergeRecords with sets of points of time.
func TestMerge(t *testing.T) {
	const most = 24
	r := rand.New(rand.NewPCG(1, 2))
	below := func(n int64) int64 { return r.Int64N(n + 1) }
	record := func() (v nodeRecord) {
		v.Until = below(most - 6)
		if v.Until > 1 && below(1) == 0 {
			v.Gap.from = below(v.Until - 1)
			v.Gap.until = v.Gap.from + 1 + below(v.Until-v.Gap.from-1)
		}
		if below(1) == 0 {
			v.Spoiled.from = v.Until + below(3)
			v.Spoiled.until = v.Spoiled.from + 1 + below(2)
		}
		return v
	}
	for range 100_000 {
		a, b := record(), record()
		m := mergeRecords(a, b)
		for at := range int64(most) {
			if (a.covered(at) || b.covered(at)) && !m.covered(at) {
				t.Fatalf("%+v and %+v give %+v, where %d is not covered", a, b, m, at)
			}
		}
		switch {
		case m.Until != max(a.Until, b.Until):
			t.Fatalf("%+v and %+v give the mark %d", a, b, m.Until)
		case a.Gap.from >= b.windowsEnd() && m.Gap.length() != a.Gap.length():
			t.Fatalf("%+v and %+v give the gap %v, and the other knows nothing of that of the first", a, b, m.Gap)
		case m.Gap.until > m.Until, m.Spoiled.length() > 0 && m.Spoiled.from < m.Until:
			t.Fatalf("%+v and %+v give %+v, which is no valid record", a, b, m)
		}
		if again := mergeRecords(b, m); again.Until != m.Until || again.Gap.length() != m.Gap.length() || again.Spoiled != m.Spoiled {
			t.Fatalf("%+v and %+v give %+v, and again %+v", a, b, m, again)
		}
	}
}

// covered reports whether a window may have reached over a time.
func (r nodeRecord) covered(at int64) bool {
	in := func(s span) bool { return s.from <= at && at < s.until }
	return at < r.Until && !in(r.Gap) || in(r.Spoiled)
}
