package check

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/form"
)

// key is short for firn.ID128FromUint64s.
func key(hi, lo uint64) firn.ID128 { return firn.ID128FromUint64s(hi, lo) }

// orderSlowly counts, for each key, the keys that sort before it.
func orderSlowly(keys []firn.ID128) Report {
	r := Report{Count: uint64(len(keys)), Increasing: true}
	var high, farthest firn.ID128
	for place, k := range keys {
		position, run := uint64(0), Duplicate{}
		for p, other := range keys {
			if other.Compare(k) < 0 || other == k && p < place {
				position++
			}
			if other == k {
				run.Times++
				if len(run.Places) < maxPlaces {
					run.Places = append(run.Places, uint64(p))
				}
			}
		}
		if distance := max(position, uint64(place)) - min(position, uint64(place)); distance > r.K || distance == r.K && r.K > 0 && k.Compare(farthest) < 0 {
			r.K, r.Place, farthest = distance, uint64(place), k
		}
		if run.Places[0] == uint64(place) {
			r.Duplicates += run.Times - 1
			r.keep(run, k[:])
		}
		if k.Compare(high) < 0 {
			r.Inversions++
		} else {
			high = k
		}
		r.Increasing = r.Increasing && (place == 0 || keys[place-1].Compare(k) < 0)
	}
	if len(keys) > 0 {
		r.Min, r.Max, r.Furthest = idOf(slices.MinFunc(keys, firn.ID128.Compare), 16), high[:], keys[r.Place][:]
	}
	return r
}

// TestOrder compares a Checker with a slow and simple algorithm, for streams of all
// kinds.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	increasing := func(n int, step func() firn.ID128) []firn.ID128 {
		keys := make([]firn.ID128, n)
		hi, lo, carry := uint64(0), uint64(100), uint64(0)
		for i := range keys {
			keys[i] = key(hi, lo)
			byHi, byLo := step().Uint64s()
			lo, carry = bits.Add64(lo, byLo, 0)
			hi += byHi + carry
		}
		return keys
	}
	jitter := func(keys []firn.ID128, by int) []firn.ID128 {
		for i := range keys {
			j := min(len(keys)-1, i+r.IntN(by+1))
			keys[i], keys[j] = keys[j], keys[i]
		}
		return keys
	}
	ones := func() firn.ID128 { return key(0, 1) }
	some := func() firn.ID128 { return key(0, 1+r.Uint64N(1<<30)) }
	wide := func() firn.ID128 { return key(r.Uint64N(1<<40), r.Uint64()) }
	repeats := make([]firn.ID128, 1000)
	for i := range repeats {
		repeats[i] = key(r.Uint64N(3), r.Uint64N(500))
	}
	for name, keys := range map[string][]firn.ID128{
		"nothing":         nil,
		"one":             {key(0, 5)},
		"zeros":           {key(0, 0), key(0, 0), key(0, 0)},
		"twice":           {key(0, 5), key(0, 5)},
		"down":            {key(0, 5), key(0, 4), key(0, 3)},
		"increasing":      increasing(1000, wide),
		"jitter":          jitter(increasing(1000, some), 50),
		"wide jitter":     jitter(increasing(1000, wide), 1000),
		"late":            append(increasing(500, some), key(0, 150), key(0, 100), key(0, 100)),
		"the same twice":  append(increasing(700, ones), increasing(700, ones)...),
		"high ones first": append(increasing(10, wide), increasing(10, ones)...),
		"high ones last":  append(jitter(increasing(10, ones), 3), increasing(10, wide)...),
		"repeats":         repeats,
	} {
		c := Checker{Max: 1 << 20}
		for _, k := range keys {
			must.Do(t, c.Add(k[:]))
		}
		if got, want := c.Report(firn.Layout{}, noon), orderSlowly(keys); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s, %d keys:\n got %+v\nwant %+v", name, len(keys), got, want)
		}
	}
}

// TestChunks: keys of several chunks are found, and a Checker takes Max IDs.
func TestChunks(t *testing.T) {
	c := Checker{Max: 2*chunkLen + 3}
	for n := range c.Max {
		at := key(n/chunkLen, 1<<40-n)
		must.Do(t, c.Add(form.ID(at[:])))
	}
	if err := c.Add(make(form.ID, 8)); err != ErrMemory {
		t.Errorf("after Max IDs: %v, want %v", err, ErrMemory)
	}
	if r := c.Report(firn.Layout{}, noon); r.Duplicates != 0 || r.K != chunkLen-1 || r.Count != c.Max {
		t.Errorf("%+v", r)
	}
}
