package firn

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync"
	"testing"
)

// Runs across ticks for every order of the fields: the same 10 slots, starting
// with the sixth of a tick of eight.
func TestRuns(t *testing.T) {
	for layout, want := range map[string][]Run{
		"bits=time:40.node:4.seq:3":           {{5, 1, 3}, {128, 1, 7}},
		"bits=time:40.seq:3.node:4":           {{5 << 4, 16, 10}}, // time and sequence are one number
		"bits=node:4.time:40.seq:3":           {{5, 1, 10}},
		"bits=seq:3.time:40":                  {{5 << 40, 1 << 40, 3}, {1, 1 << 40, 7}},
		"bits=time~:2.seq:3":                  {{5, 1, 3}, {2 << 3, 1, 7}}, // tick 1 in two bits, reversed
		"bits=seq:1.const:1=0.seq:2.time:40":  {{1<<43 | 1<<40, 1 << 40, 3}, {1, 1 << 40, 4}, {1<<43 | 1, 1 << 40, 3}},
		"bits=time:40.const:3=5.seq:3.node:1": {{5<<4 | 5<<1, 2, 3}, {1<<7 | 5<<4, 2, 7}},
	} {
		l := MustParseLayout(layout)
		b := newBatch[ID](newComposer(&l, 0), 5, 10)
		var walked []ID
		for slot := uint64(5); slot < 15; slot++ {
			walked = append(walked, ID(newComposer(&l, 0).compose64(slot)))
		}
		if got := slices.Collect(b.All()); !slices.Equal(got, walked) {
			t.Errorf("%s: All = %v, want %v", layout, got, walked)
		}
		if got := BatchFromRuns(b.Runs()...); !slices.Equal(slices.Collect(got.All()), walked) || got.Len() != 10 {
			t.Errorf("%s: Runs = %v, want those of %v", layout, b.Runs(), walked)
		}
		if got := b.Runs(); !slices.Equal(got, want) {
			t.Errorf("%s: Runs = %v, want %v", layout, got, want)
		}
	}
	for layout, want := range map[string]bool{"uuidv7": false, "ulid": false, "boundary": true, "bits=seq:8.time:48.node:64": false} {
		l := MustParseLayout(layout)
		if b := newBatch[ID128](newComposer(&l, 0), 5, 10); (b.Runs() != nil) != want || l.HasRuns() != want || b.Len() != 10 {
			t.Errorf("%s: Runs = %v, want any: %v", layout, b.Runs(), want)
		}
	}
	if b := (Batch{}); b.Len() != 0 || b.Runs() != nil || len(slices.Collect(b.All())) != 0 {
		t.Error("the zero Batch has IDs")
	}
}

// AppendRaw appends the IDs of All, for any part of the batch.
func TestAppendRaw(t *testing.T) {
	for _, layout := range []string{"default", "bits=time:40.seq:3.node:4", "bits=seq:1.const:1=0.seq:2.time:40", "bits=time~:2.seq:3"} {
		l := MustParseLayout(layout)
		testAppendRaw(t, layout, newBatch[ID](newComposer(&l, 0), 5, 20), Raw.Append)
	}
	for _, layout := range []string{"boundary", "uuidv7", "bits=seq:8.time:48.node:64"} {
		l := MustParseLayout(layout)
		testAppendRaw(t, layout, newBatch[ID128](newComposer(&l, 0), 5, 20), Raw.Append128)
	}
	testAppendRaw(t, "runs", BatchFromRuns(Run{1, 1, 3}, Run{9, 0, 1}, Run{math.MaxUint64 - 1, 1, 2}, Run{4, math.MaxUint64, 3}), Raw.Append)
	testAppendRaw(t, "wide runs", BatchFromRuns(
		RunOf[ID128]{ID128FromUint64s(1, math.MaxUint64), 1, 3},
		RunOf[ID128]{ID128FromUint64s(7, 9), 1 << 63, 5}), Raw.Append128)
	testAppendRaw(t, "zero", Batch{}, Raw.Append)
}

func testAppendRaw[I AnyID](t *testing.T, name string, b BatchOf[I], appendID func([]byte, I) []byte) {
	t.Helper()
	all := slices.Collect(b.All())
	for lo := range b.Len() + 1 {
		for hi := lo; hi <= b.Len(); hi++ {
			want := []byte("before")
			for _, id := range all[lo:hi] {
				want = appendID(want, id)
			}
			if got := b.AppendRaw([]byte("before"), lo, hi); !bytes.Equal(got, want) {
				t.Fatalf("%s: AppendRaw(%d, %d) = %x, want %x", name, lo, hi, got, want)
			}
		}
	}
	buf := make([]byte, 0, 1000)
	if n := testing.AllocsPerRun(10, func() {
		buf = b.AppendRaw(buf[:0], 0, b.Len())
		for range b.All() {
		}
	}); n != 0 {
		t.Errorf("%s: AppendRaw and All allocate %v times", name, n)
	}
	for _, wrong := range [][2]int{{-1, 0}, {1, 0}, {0, b.Len() + 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: AppendRaw(%d, %d) did not panic", name, wrong[0], wrong[1])
				}
			}()
			b.AppendRaw(nil, wrong[0], wrong[1])
		}()
	}
}

// counter is a Source of consecutive integers that fails on request.
type counter struct {
	mu      sync.Mutex
	next    ID
	fetched int
	err     error
	block   chan struct{} // if set, NextBatch waits for it or the context
}

func (c *counter) NextBatch(ctx context.Context, n int) (Batch, error) {
	if c.block != nil {
		select {
		case <-c.block:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return Batch{}, c.err
	}
	c.fetched++
	first := c.next
	c.next += ID(n)
	return BatchFromRuns(Run{first, 1, n}), nil
}

// A batch from the network cannot exceed the limits.
func TestBatchFromTooManyRuns(t *testing.T) {
	b := BatchFromRuns(Run{1, 1, math.MaxInt}, Run{2, 1, math.MaxInt}, Run{3, 1, -1})
	if b.Len() != math.MaxInt || len(b.Runs()) != 1 {
		t.Errorf("Len = %d in %d runs", b.Len(), len(b.Runs()))
	}
	if _, err := NewPrefetcher(once[ID]{b}, &PrefetchOptions{Count: 10}).Next(t.Context()); err == nil {
		t.Error("a prefetcher took more than it asked for")
	}
}
