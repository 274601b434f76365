package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/form"
)

// orderSlowly counts, for each key, the keys that sort before it.
func orderSlowly(keys []key) Report {
	r := Report{Count: uint64(len(keys)), Increasing: true}
	var high, farthest key
	for place, k := range keys {
		position, run := uint64(0), Duplicate{}
		for p, other := range keys {
			if other.less(k) || other == k && p < place {
				position++
			}
			if other == k {
				run.Times++
				if len(run.Places) < maxPlaces {
					run.Places = append(run.Places, uint64(p))
				}
			}
		}
		if distance := max(position, uint64(place)) - min(position, uint64(place)); distance > r.K || distance == r.K && r.K > 0 && k.less(farthest) {
			r.K, r.Place, farthest = distance, uint64(place), k
		}
		if run.Places[0] == uint64(place) {
			r.Duplicates += run.Times - 1
			r.keep(run, k.id(16))
		}
		if k.less(high) {
			r.Inversions++
		} else {
			high = k
		}
		r.Increasing = r.Increasing && (place == 0 || keys[place-1].less(k))
	}
	if len(keys) > 0 {
		r.Min, r.Max, r.Furthest = slices.MinFunc(keys, key.compare).id(16), high.id(16), keys[r.Place].id(16)
	}
	return r
}

// TestOrder compares a Checker with a slow and simple algorithm, for streams of all
// kinds.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	increasing := func(n int, step func() key) []key {
		keys := make([]key, n)
		at := key{0, 100}
		for i := range keys {
			keys[i] = at
			by := step()
			at = key{at.hi + by.hi, at.lo + by.lo}
			if at.lo < by.lo {
				at.hi++
			}
		}
		return keys
	}
	jitter := func(keys []key, by int) []key {
		for i := range keys {
			j := min(len(keys)-1, i+r.IntN(by+1))
			keys[i], keys[j] = keys[j], keys[i]
		}
		return keys
	}
	ones := func() key { return key{0, 1} }
	some := func() key { return key{0, 1 + r.Uint64N(1<<30)} }
	wide := func() key { return key{r.Uint64N(1 << 40), r.Uint64()} }
	repeats := make([]key, 1000)
	for i := range repeats {
		repeats[i] = key{r.Uint64N(3), r.Uint64N(500)}
	}
	for name, keys := range map[string][]key{
		"nothing":         nil,
		"one":             {{0, 5}},
		"zeros":           {{0, 0}, {0, 0}, {0, 0}},
		"twice":           {{0, 5}, {0, 5}},
		"down":            {{0, 5}, {0, 4}, {0, 3}},
		"increasing":      increasing(1000, wide),
		"jitter":          jitter(increasing(1000, some), 50),
		"wide jitter":     jitter(increasing(1000, wide), 1000),
		"late":            append(increasing(500, some), key{0, 150}, key{0, 100}, key{0, 100}),
		"the same twice":  append(increasing(700, ones), increasing(700, ones)...),
		"high ones first": append(increasing(10, wide), increasing(10, ones)...),
		"high ones last":  append(jitter(increasing(10, ones), 3), increasing(10, wide)...),
		"repeats":         repeats,
	} {
		c := Checker{Max: 1 << 20}
		for _, k := range keys {
			must.Do(t, c.Add(k.id(16)))
		}
		if got, want := c.Report(firn.Layout{}, noon), orderSlowly(keys); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s, %d keys:\n got %+v\nwant %+v", name, len(keys), got, want)
		}
	}
}

// TestChunks: keys of several chunks are found, and a Checker takes Max IDs.
func TestChunks(t *testing.T) {
	c := Checker{Max: 2*chunkKeys + 3}
	for n := range c.Max {
		must.Do(t, c.Add((key{n / chunkKeys, 1<<40 - n}).id(16)))
	}
	if err := c.Add(make(form.ID, 8)); err != ErrMemory {
		t.Errorf("after Max IDs: %v, want %v", err, ErrMemory)
	}
	if r := c.Report(firn.Layout{}, noon); r.Duplicates != 0 || r.K != chunkKeys-1 || r.Count != c.Max {
		t.Errorf("%+v", r)
	}
}
