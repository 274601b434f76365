package firn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firnid/firn/internal/test/must"
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
		got, err := BatchFromRuns(b.Runs()...)
		if !slices.Equal(slices.Collect(got.All()), walked) || got.Len() != 10 || err != nil {
			t.Errorf("%s: Runs = %v, %v, want those of %v", layout, b.Runs(), err, walked)
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

// AppendRaw appends the IDs of All, for any part of the batch. Both yield the
// same IDs every time, with their random bits, for several goroutines at once.
func TestAppendRaw(t *testing.T) {
	for _, layout := range []string{"default", "bits=time:40.seq:3.node:4", "bits=seq:1.const:1=0.seq:2.time:40", "bits=time~:2.seq:3"} {
		l := MustParseLayout(layout)
		testAppendRaw(t, layout, newBatch[ID](newComposer(&l, 0), 5, 20), Raw.Append)
	}
	for _, layout := range []string{"boundary", "uuidv7", "bits=seq:8.time:48.node:64"} {
		l := MustParseLayout(layout)
		testAppendRaw(t, layout, newBatch[ID128](newComposer(&l, 0), 5, 20), Raw.Append128)
	}
	testAppendRaw(t, "runs", must.Get(BatchFromRuns(Run{1, 1, 3}, Run{9, 0, 1}, Run{math.MaxUint64 - 1, 1, 2},
		Run{4, 1 << 62, 3}))(t), Raw.Append)
	testAppendRaw(t, "wide runs", must.Get(BatchFromRuns(
		RunOf[ID128]{ID128FromUint64s(1, math.MaxUint64), 1, 3},
		RunOf[ID128]{ID128FromUint64s(7, 9), 1 << 63, 5}))(t), Raw.Append128)
	testAppendRaw(t, "zero", Batch{}, Raw.Append)
}

func testAppendRaw[I AnyID](t *testing.T, name string, b BatchOf[I], appendID func([]byte, I) []byte) {
	t.Helper()
	all := slices.Collect(b.All())
	var readers sync.WaitGroup
	for lo := range b.Len() + 1 {
		readers.Go(func() {
			for hi := lo; hi <= b.Len(); hi++ {
				want := []byte("before")
				for _, id := range all[lo:hi] {
					want = appendID(want, id)
				}
				if got := b.AppendRaw([]byte("before"), lo, hi); !bytes.Equal(got, want) {
					t.Errorf("%s: AppendRaw(%d, %d) = %x, want %x", name, lo, hi, got, want)
				}
			}
			if got := slices.Collect(b.All()); !slices.Equal(got, all) {
				t.Errorf("%s: All() = %v, then %v", name, all, got)
			}
		})
	}
	readers.Wait()
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

// TestBatchText: a batch shows its IDs as JSON, in logs and in print, and keeps
// them all in JSON.
func TestBatchText(t *testing.T) {
	l, wide := MustParseLayout("bits=time:40.seq:3.node:4"), MustParseLayout("uuidv7")
	testBatchText(t, newBatch[ID](newComposer(&l, 0), 5, 20), 20)
	testBatchText(t, newBatch[ID](newComposer(&l, 0), 5, 1), 1)
	testBatchText(t, newBatch[ID128](newComposer(&wide, 0), 5, 20), 20)
	testBatchText(t, must.Get(BatchFromRuns(Run{1, 1, 3}, Run{9, 0, 1}, Run{math.MaxUint64 - 1, 1, 2}))(t), 6)
	testBatchText(t, Batch{}, 0)
	if got, want := fmt.Sprint(must.Get(BatchFromRuns(Run{1, 1, 3}, Run{9, 4, 3}))(t)), "6 IDs, 1 to 17"; got != want {
		t.Errorf("it prints as %q, want %q", got, want)
	}
}

func testBatchText[I AnyID](t *testing.T, b BatchOf[I], n int) {
	t.Helper()
	want := slices.Collect(b.All())
	var got []I
	data := must.Get(json.Marshal(b))(t)
	must.Do(t, json.Unmarshal(data, &got))
	if len(want) != n || !slices.Equal(got, want) || got == nil {
		t.Errorf("JSON %s, read as %v, want %v", data, got, want)
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("made", "ids", b)
	if !bytes.Contains(logged.Bytes(), append([]byte(`"ids":`), data...)) {
		t.Errorf("the log has %s, want %s", &logged, data)
	}
	text := b.String()
	for _, id := range want[:min(n, 1)] {
		if !strings.Contains(text, fmt.Sprint(id)) || !strings.HasSuffix(text, fmt.Sprint(want[n-1])) {
			t.Errorf("%q does not have the IDs %v to %v", text, id, want[n-1])
		}
	}
	if got := fmt.Sprintf("%v %+v %s", b, b, b); got != text+" "+text+" "+text || len(text) > 100 {
		t.Errorf("it prints as %q, want %q", got, text)
	}
}

// A batch from the network has no ID 0, and none that wraps around or repeats.
func TestBatchFromRuns(t *testing.T) {
	greatest, top := ID128FromUint64s(math.MaxUint64, math.MaxUint64), ID128FromUint64s(0, math.MaxUint64)
	for _, c := range []struct {
		err  error
		want string
	}{
		{errOf(BatchFromRuns[ID]()), ""},
		{errOf(BatchFromRuns(Run{math.MaxUint64 - 2, 1, 3}, Run{First: 1, Count: 1})), ""},
		{errOf(BatchFromRuns(Run{math.MaxUint64 - 2, 1, 4})), "run 1 of 1 exceeds"},
		{errOf(BatchFromRuns(Run{4, math.MaxUint64, 2})), "exceeds"},
		{errOf(BatchFromRuns(Run{4, 1 << 60, math.MaxInt})), "exceeds"},
		{errOf(BatchFromRuns(Run{1, 1, 1}, Run{0, 1, 1})), "run 2 of 2 has the ID 0"},
		{errOf(BatchFromRuns(Run{5, 0, 3})), "repeat"},
		{errOf(BatchFromRuns(Run{5, 1, 0})), "has 0 IDs"},
		{errOf(BatchFromRuns(Run{5, 1, math.MinInt})), "has -9223372036854775808 IDs"},
		{errOf(BatchFromRuns(Run{1, 1, math.MaxInt}, Run{2, 1, 1})), "more IDs than a batch"},
		{errOf(BatchFromRuns(RunOf[ID128]{top, math.MaxUint64, math.MaxInt})), ""},
		{errOf(BatchFromRuns(RunOf[ID128]{greatest, 1, 1})), ""},
		{errOf(BatchFromRuns(RunOf[ID128]{greatest, 1, 2})), "exceeds"},
		{errOf(BatchFromRuns(RunOf[ID128]{Step: 1, Count: 1})), "the ID 0"},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("got %v, want %q", c.err, c.want)
		}
	}
	runs := []Run{{5, 1, 2}}
	b := must.Get(BatchFromRuns(runs...))(t)
	runs[0].First = 9
	if got := slices.Collect(b.All()); !slices.Equal(got, []ID{5, 6}) {
		t.Errorf("a batch changed with the slice it was made from: %v", got)
	}
	large := must.Get(BatchFromRuns(Run{1, 1, math.MaxInt}))(t)
	if _, err := NewPrefetcher(once[ID]{large}, &PrefetchOptions{Count: 10}).Next(t.Context()); err == nil {
		t.Error("a prefetcher took more than it asked for")
	}
}

func errOf[T any](_ T, err error) error { return err }
