package load

import (
	"math/rand/v2"
	"testing"
)

func TestCountDuplicates(t *testing.T) {
	for _, test := range []struct {
		intervals []interval
		want      uint64
	}{
		{nil, 0},
		{[]interval{{0, 1, 5}, {0, 6, 9}, {1, 1, 5}}, 0},
		{[]interval{{0, 1, 5}, {0, 5, 9}}, 1},
		{[]interval{{0, 1, 100}, {0, 10, 19}, {0, 50, 50}}, 11},
		{[]interval{{7, 3, 3}, {7, 3, 3}, {7, 3, 3}}, 2},
	} {
		rand.Shuffle(len(test.intervals), func(i, j int) { test.intervals[i], test.intervals[j] = test.intervals[j], test.intervals[i] })
		if got := countDuplicates(test.intervals); got != test.want {
			t.Errorf("%v: %d duplicates, want %d", test.intervals, got, test.want)
		}
	}
}
