package client

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn"
)

// hexID returns an ID in the server's form.
func hexID(id uint64) string { return fmt.Sprintf("%016x", id) }

// runsJSON returns an answer with runs of first, step and count.
func runsJSON(runs ...[3]uint64) string {
	parts := make([]string, len(runs))
	for i, r := range runs {
		parts[i] = fmt.Sprintf(`{"first":"%s","step":"%d","count":%d}`, hexID(r[0]), r[1], r[2])
	}
	return `{"runs":[` + strings.Join(parts, ",") + "]}\n"
}

func TestRuns(t *testing.T) {
	for text, want := range map[string][]firn.ID{
		runsJSON([3]uint64{5, 2, 3}):                       {5, 7, 9},
		runsJSON([3]uint64{5, 2, 2}, [3]uint64{8, 1, 1}):   {5, 7, 8},
		runsJSON([3]uint64{9, 1, 1}, [3]uint64{5, 2, 2}):   {9, 5, 7}, // a layout without its time on top
		runsJSON([3]uint64{1, 10, 2}, [3]uint64{2, 10, 1}): {1, 11, 2},
		runsJSON([3]uint64{1<<64 - 3, 1, 3}):               {1<<64 - 3, 1<<64 - 2, 1<<64 - 1},
		" {\n\"x\" : [1, {\"runs\":2}],\"runs\":[ {\"count\" : 1 ,\"first\":\"" + hexID(1) + "\",\"y\":null,\"step\":\"1\"}\t]}\r\n ": {1},
	} {
		b, err := readJSON[firn.ID]([]byte(text), len(want))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := slices.Collect(b.All()); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// badAnswers are answers to a request for three 64-bit IDs, with a part of the
// error.
var badAnswers = map[string]string{
	"":                                 "unexpected end",
	"null":                             "0 IDs, not the 3",
	`{"ids":["1","2","3"]}`:            "0 IDs, not the 3",
	`{"runs":[{}]}`:                    "not an ID of 16",
	`{"runs":[]}{}`:                    "invalid character",
	runsJSON([3]uint64{1, 1, 2}):       "2 IDs, not the 3",
	runsJSON([3]uint64{1, 1, 4}):       "4 IDs, not the 3",
	runsJSON([3]uint64{1, 1, 1 << 63}): "cannot unmarshal number",
	runsJSON([3]uint64{0, 1, 3}):       "ID 0",
	runsJSON([3]uint64{1, 0, 3}):       "step of 0",
	runsJSON([3]uint64{1, 1, 3}, [3]uint64{9, 1, 0}):                               "run 2 of 2 has 0 IDs",
	runsJSON([3]uint64{1<<64 - 2, 1, 3}):                                           "greatest ID",
	runsJSON([3]uint64{2, 1<<64 - 1, 3}):                                           "greatest ID",
	runsJSON([3]uint64{1, 1, 2}, [3]uint64{2, 1, 1}):                               "twice", // overlap
	runsJSON([3]uint64{5, 1, 1}, [3]uint64{5, 1, 1}, [3]uint64{5, 1, 1}):           "twice",
	runsJSON([3]uint64{1, 10, 2}, [3]uint64{11, 1, 1}):                             "twice", // interleaved
	`{"runs":[{"first":"1","step":"1","count":3}]}`:                                "16 hexadecimal digits",
	`{"runs":[{"first":"-00000000000000a","step":"1","count":3}]}`:                 "is a sign",
	`{"runs":[{"first":"00000000000000000000000000000001","step":"1","count":3}]}`: "Sequencer128",
	`{"runs":[{"first":"0000000000000001","step":"1","count":-3}]}`:                "run 1 of 1 has -3 IDs",
	`{"runs":[{"first":"0000000000000001","count":3}]}`:                            "step of 0",
}

func TestBadAnswers(t *testing.T) {
	for text, want := range badAnswers {
		if _, err := readJSON[firn.ID]([]byte(text), 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"runs":[{"first":"0123456789abcdefffffffffffffffff","step":"1","count":2}]}`: "",
		`{"runs":[{"first":"ffffffffffffffffffffffffffffffff","step":"1","count":2}]}`: "greatest ID",
		`{"runs":[{"first":"00000000000000000000000000000000","step":"1","count":2}]}`: "ID 0",
		`{"runs":[{"first":"0000000000000001","step":"1","count":2}]}`:                 "method Sequencer",
	} {
		if _, err := readJSON[firn.ID128]([]byte(text), 2); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

// readJSON reads an answer.
func readJSON[I firn.AnyID](data []byte, count int) (b firn.BatchOf[I], err error) {
	runs, err := parseRuns[I](data)
	if err == nil {
		b, err = batchOf(runs, count)
	}
	return b, err
}

// An accepted answer has exactly the requested number of IDs, none of them 0 or
// twice.
func FuzzAnswer(f *testing.F) {
	for text := range badAnswers {
		f.Add([]byte(text), uint16(3))
	}
	f.Add([]byte(runsJSON([3]uint64{9, 1, 1}, [3]uint64{1, 3, 4})), uint16(5))
	f.Add([]byte(`{"runs":[{"first":"0123456789abcdefffffffffffffffff","step":"1","count":2}]}`), uint16(2))
	f.Add([]byte("0123456789abcdef0123456789abcdeg"), uint16(2))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		count := int(n) + 1
		fuzzAnswer[firn.ID](t, data, count)
		fuzzAnswer[firn.ID128](t, data, count)
	})
}

func fuzzAnswer[I firn.AnyID](t *testing.T, data []byte, count int) {
	if b, err := readJSON[I](data, count); err == nil {
		checkAnswer(t, b, count)
	}
	count = len(data) / idSize[I]()
	if runs, err := parsePacked[I](data, count); err == nil {
		if b, err := batchOf(runs, count); err == nil {
			checkAnswer(t, b, count)
		}
	}
}

func checkAnswer[I firn.AnyID](t *testing.T, b firn.BatchOf[I], count int) {
	seen := make(map[I]bool)
	var zero I
	for id := range b.All() {
		if id == zero || seen[id] {
			t.Fatalf("%v is 0 or there twice", id)
		}
		seen[id] = true
	}
	if len(seen) != count {
		t.Fatalf("%d IDs, want %d", len(seen), count)
	}
}
