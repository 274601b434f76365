package freshness

import (
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// at returns a sample of a counter with 3 counts per nanosecond and an offset.
func at(t time.Duration, offset uint64) sample {
	return sample{lo: 3*uint64(t) - 60 + offset, hi: 3*uint64(t) + 60 + offset, at: t}
}

// TestRate: a rate is trusted once two intervals have agreed on it, also after
// it has changed.
func TestRate(t *testing.T) {
	const ms = time.Millisecond
	slow := func(t time.Duration) sample { // a tenth of the rate since 3 ms
		s := at((t-3*ms)/10, 3*uint64(3*ms))
		s.at = t
		return s
	}
	span := 50 * time.Microsecond
	for _, test := range []struct {
		name    string
		samples []sample
		want    uint64 // counts in span, or a little less; 0: unknown
	}{
		{"one sample", []sample{at(ms, 0)}, 0},
		{"one interval", []sample{at(ms, 0), at(2*ms, 0)}, 0},
		{"two", []sample{at(ms, 0), at(2*ms, 0), at(5*ms, 0)}, 150_000},
		{"too short to say", []sample{at(ms, 0), at(ms+100, 0), at(ms+200, 0)}, 0},
		{"a jump forward", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), at(4*ms, 1e9)}, 0},
		{"and on", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), at(4*ms, 1e9), at(5*ms, 1e9), at(6*ms, 1e9)}, 150_000},
		{"two jumps alike", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 1e9), at(4*ms, 2e9)}, 0},
		{"a jump back", []sample{at(10*ms, 0), at(11*ms, 0), at(12*ms, 0), at(13*ms, 1<<64-30e6)}, 0},
		{"a small jump back", []sample{at(10*ms, 0), at(11*ms, 0), at(12*ms, 0), at(13*ms, 1<<64-2e6)}, 0},
		{"it stops", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), {lo: 9e6, hi: 9e6, at: 4 * ms}}, 0},
		{"the clock goes back", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), {lo: 12e6, hi: 12e6, at: ms}}, 0},
		{"a pause within a sample", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), {lo: 12e6 - 60, hi: 40e6, at: 4 * ms}}, 150_000},
		{"a pause within the first", []sample{{lo: 1e6, hi: 3e6, at: ms}, at(2*ms, 0), at(3*ms, 0), at(100*ms, 0), at(101*ms, 0)}, 150_000},
		{"a tenth of the rate", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), slow(4 * ms)}, 0},
		{"and on at a tenth", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), slow(4 * ms), slow(5 * ms)}, 15_000},
		{"ten times the rate", []sample{slow(4 * ms), slow(5 * ms), slow(6 * ms), at(7*ms, 0)}, 0},
	} {
		var r rate
		got := uint64(0)
		for _, s := range test.samples {
			got = r.observe(s, span)
		}
		if got < test.want*9/10 || got > test.want {
			t.Errorf("%s: %d counts in %v, want %d or a little less", test.name, got, span, test.want)
		}
	}
	// A counter that stops at a reading returns the same value at the next
	// call.
	if fresh(1000, 1000, 100) || !fresh(1001, 1000, 100) || fresh(1101, 1000, 100) {
		t.Error("a reading is fresh while the counter stands still, or not while it advances by less than its span")
	}
}

// TestCycles: the counter of the machine that runs the test advances.
func TestCycles(t *testing.T) {
	if !hasCycles() {
		t.Skip("this processor's counter is not invariant")
	}
	begin := Cycles()
	for deadline := time.Now().Add(must.Patience); Cycles() == begin; {
		if time.Now().After(deadline) {
			t.Fatal("the counter stands still")
		}
	}
}
