package load

import (
	"math/rand/v2"
	"testing"
)

func TestCountDuplicates(t *testing.T) {
	for _, test := range []struct {
		spans []span
		want  uint64
	}{
		{nil, 0},
		{[]span{{0, 1, 5}, {0, 6, 9}, {1, 1, 5}}, 0},
		{[]span{{0, 1, 5}, {0, 5, 9}}, 1},
		{[]span{{0, 1, 100}, {0, 10, 19}, {0, 50, 50}}, 11},
		{[]span{{7, 3, 3}, {7, 3, 3}, {7, 3, 3}}, 2},
	} {
		rand.Shuffle(len(test.spans), func(i, j int) { test.spans[i], test.spans[j] = test.spans[j], test.spans[i] })
		if got := countDuplicates(test.spans); got != test.want {
			t.Errorf("%v: %d duplicates, want %d", test.spans, got, test.want)
		}
	}
}
