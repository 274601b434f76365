package freshness

import (
	"testing"
	"time"
)

// at returns a sample of a counter with 3 counts per nanosecond and an offset.
func at(t time.Duration, offset uint64) sample {
	return sample{lo: 3*uint64(t) - 60 + offset, hi: 3*uint64(t) + 60 + offset, at: t}
}

func TestRate(t *testing.T) {
	const ms = time.Millisecond
	span := 50 * time.Microsecond
	for _, test := range []struct {
		name    string
		samples []sample
		sure    bool
	}{
		{"one sample", []sample{at(ms, 0)}, false},
		{"one interval", []sample{at(ms, 0), at(2*ms, 0)}, false},
		{"two", []sample{at(ms, 0), at(2*ms, 0), at(5*ms, 0)}, true},
		{"too short to say", []sample{at(ms, 0), at(ms+100, 0), at(ms+200, 0)}, false},
		{"a jump forward", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), at(4*ms, 1e9)}, false},
		{"and on", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), at(4*ms, 1e9), at(5*ms, 1e9), at(6*ms, 1e9)}, true},
		{"two jumps alike", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 1e9), at(4*ms, 2e9)}, false},
		{"a jump back", []sample{at(10*ms, 0), at(11*ms, 0), at(12*ms, 0), at(13*ms, 1<<64-30e6)}, false},
		{"a small jump back", []sample{at(10*ms, 0), at(11*ms, 0), at(12*ms, 0), at(13*ms, 1<<64-2e6)}, false},
		{"it stops", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), {lo: 9e6, hi: 9e6, at: 4 * ms}}, false},
		{"the clock goes back", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), {lo: 12e6, hi: 12e6, at: ms}}, false},
		{"a pause within a sample", []sample{at(ms, 0), at(2*ms, 0), at(3*ms, 0), {lo: 12e6 - 60, hi: 40e6, at: 4 * ms}}, true},
		{"a pause within the first", []sample{{lo: 1e6, hi: 3e6, at: ms}, at(2*ms, 0), at(3*ms, 0), at(100*ms, 0), at(101*ms, 0)}, true},
	} {
		var r rate
		got := uint64(0)
		for _, s := range test.samples {
			got = r.observe(s, span)
		}
		if sure := got > 0; sure != test.sure || sure && (got < 149_000*9/10 || got > 150_000) {
			t.Errorf("%s: %d counts in %v, want 150000 or a little less: %v", test.name, got, span, test.sure)
		}
	}
}

// TestCycles: the counter of the machine that runs the test advances.
func TestCycles(t *testing.T) {
	if !hasCycles() {
		t.Skip("this processor's counter is not invariant")
	}
	begin := Cycles()
	for deadline := time.Now().Add(10 * time.Minute); Cycles() == begin; {
		if time.Now().After(deadline) {
			t.Fatal("the counter stands still")
		}
	}
}
