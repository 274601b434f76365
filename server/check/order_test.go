package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// orderSlowly computes the same as order, by sorting places.
func orderSlowly(keys []key) finding {
	places := make([]int, len(keys))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return keys[a].compare(keys[b]) })
	var f finding
	var run repeat
	for position, place := range places {
		distance := uint64(max(position-place, place-position))
		if distance > f.k {
			f.k, f.kKey, f.kFrom = distance, keys[place], uint64(place)
		}
		if position > 0 && keys[place] == keys[places[position-1]] {
			f.repeats++
			run.times++
			if len(run.places) < maxPlaces {
				run.places = append(run.places, uint64(place))
			}
			continue
		}
		f.note(run)
		run = repeat{keys[place], []uint64{uint64(place)}, 1}
	}
	f.note(run)
	f.increases = slices.IsSortedFunc(keys, key.compare) && f.repeats == 0
	return f
}

func orderOf(t *testing.T, keys []key, most int) finding {
	t.Helper()
	o := order{limit: 1 << 30, steps: steps{most: most}}
	defer func() {
		if err := o.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, k := range keys {
		if err := o.add(k); err != nil {
			t.Fatal(err)
		}
	}
	f, err := o.find(t.Context(), func(uint64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestOrder compares order with a slow and simple algorithm, for streams of all
// kinds: with one chunk and several, with the steps in memory and in a file.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	jitter := func(keys []key, by int) []key {
		for i := range keys {
			j := min(len(keys)-1, i+r.IntN(by+1))
			keys[i], keys[j] = keys[j], keys[i]
		}
		return keys
	}
	increasing := func(n int, step func() key) []key {
		keys := make([]key, n)
		at := key{0, 100}
		for i := range keys {
			keys[i] = at
			at = at.plus(step())
		}
		return keys
	}
	ones := func() key { return key{0, 1} }
	some := func() key { return key{0, 1 + r.Uint64N(1<<30)} }
	wide := func() key { return key{r.Uint64N(1 << 40), r.Uint64()} }
	huge := func() key { return key{0, 1<<63 + r.Uint64N(1<<62)} }
	streams := map[string][]key{
		"nothing":         nil,
		"one":             {{0, 5}},
		"zero":            {{0, 0}},
		"zeros":           {{0, 0}, {0, 0}, {0, 0}},
		"zero and one":    {{0, 0}, {0, 1}},
		"twice":           {{0, 5}, {0, 5}},
		"down":            {{0, 5}, {0, 4}, {0, 3}},
		"ones":            increasing(1000, ones),
		"some":            increasing(1000, some),
		"wide":            increasing(1000, wide),
		"huge":            increasing(100, huge),
		"jitter":          jitter(increasing(140_000, some), 1000),
		"jitter of ones":  jitter(increasing(140_000, ones), 3),
		"wide jitter":     jitter(increasing(150_000, wide), 100_000),
		"late":            append(increasing(100_000, some), key{0, 150}, key{0, 100}, key{0, 100}),
		"chunks exactly":  append([]key{{1, 0}}, increasing(2*chunkKeys, ones)...),
		"long order":      append(increasing(100_000, wide), increasing(70_000, some)...),
		"the same twice":  append(increasing(70_000, ones), increasing(70_000, ones)...),
		"high ones first": append(increasing(10, wide), increasing(10, ones)...),
	}
	shuffled := increasing(140_000, some)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	streams["shuffled"] = shuffled
	backwards := increasing(140_000, some)
	slices.Reverse(backwards)
	streams["backwards"] = backwards
	repeats := make([]key, 100_000)
	for i := range repeats {
		repeats[i] = key{r.Uint64N(3), r.Uint64N(50_000)}
	}
	streams["repeats"] = repeats
	for name, keys := range streams {
		want := orderSlowly(keys)
		for _, most := range []int{0, 100} {
			got := orderOf(t, keys, most)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %d keys:\n got %+v\nwant %+v", name, len(keys), got, want)
			}
		}
	}
}

// TestOrderMemory: exceeding the limit is an error, and takes no more memory.
func TestOrderMemory(t *testing.T) {
	for _, wide := range []uint64{0, 1} {
		o := order{limit: 32 << 20}
		var err error
		n := uint64(0)
		for ; err == nil; n++ {
			err = o.add(key{wide, 1<<40 - n})
		}
		var m *MemoryError
		if !errors.As(err, &m) || o.used < 32<<20 || o.used > 34<<20 {
			t.Errorf("after %d keys: %v, used %d", n, err, o.used)
		}
		if per := o.limit / n; per < 7 || per > 20 {
			t.Errorf("%d keys in %d bytes", n, o.limit)
		}
		if err := o.close(); err != nil {
			t.Error(err)
		}
	}

	// An ordered stream is unlimited.
	o := order{}
	for n := range uint64(1_000_000) {
		if err := o.add(key{0, n * n}); err != nil {
			t.Fatal(err)
		}
	}
	if o.used != 0 || len(o.chunks) != 0 {
		t.Errorf("keys in order use %d bytes and %d chunks", o.used, len(o.chunks))
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
}

// TestOrderCancelled: tick can end the merge.
func TestOrderCancelled(t *testing.T) {
	o := order{limit: 1 << 30}
	for _, n := range []uint64{3, 1, 2} {
		if err := o.add(key{0, n}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.find(ctx, func(uint64) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("find = %v, want context.Canceled", err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkOrder(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	keys := make([]key, 1<<20)
	for i := range keys {
		keys[i] = key{0, uint64(i)<<12 + 1<<60}
	}
	jittered := slices.Clone(keys)
	for i := range jittered {
		j := min(len(keys)-1, i+r.IntN(1000))
		jittered[i], jittered[j] = jittered[j], jittered[i]
	}
	shuffled := slices.Clone(keys)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, bb := range []struct {
		name string
		keys []key
	}{{"increasing", keys}, {"k-ordered", jittered}, {"shuffled", shuffled}} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				o := order{limit: 1 << 30}
				for _, k := range bb.keys {
					if err := o.add(k); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := o.find(b.Context(), func(uint64) error { return nil }); err != nil {
					b.Fatal(err)
				}
				if err := o.close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(bb.keys)), "ns/key")
		})
	}
}
