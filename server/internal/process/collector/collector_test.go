package collector

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/test/nettest"
)

func TestNext(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		percent int
		since   time.Duration
		live    uint64
		want    int
	}{
		{100, 10 * time.Millisecond, 4 * mib, 200},   // too often
		{200, 10 * time.Millisecond, 4 * mib, 300},   // up to most
		{300, 10 * time.Millisecond, 4 * mib, 300},   // and not beyond
		{300, 500 * time.Millisecond, 4 * mib, 300},  // often enough
		{300, 2 * time.Second, 4 * mib, 100},         // the load has ended
		{300, 10 * time.Millisecond, 6 * mib, 166},   // more is live
		{300, 10 * time.Millisecond, 500 * mib, 100}, // a large heap only doubles
		{9900, 10 * time.Millisecond, 0, 9900},       // as far as it goes
	} {
		if got := next(test.percent, test.since, test.live); got != test.want {
			t.Errorf("next(%d, %v, %d) = %d, want %d", test.percent, test.since, test.live, got, test.want)
		}
	}
}

// percent returns GOGC.
func percent() int {
	p := debug.SetGCPercent(usual)
	debug.SetGCPercent(p)
	return p
}

// TestStart: collections raise GOGC, and Stop restores it. What an operator has
// set stays.
func TestStart(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	p := Start()
	for deadline := time.Now().Add(nettest.Patience); percent() == usual; {
		if time.Now().After(deadline) {
			t.Fatal("GOGC is not raised")
		}
		runtime.GC()
	}
	p.Stop()
	p.Stop()
	for range 5 {
		runtime.GC()
	}
	if got := percent(); got != usual {
		t.Errorf("GOGC is %d after Stop, want %d", got, usual)
	}

	t.Setenv("GOGC", "100")
	if p := Start(); !p.stopped {
		t.Error("GOGC=100 in the environment is not obeyed")
	}
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "1GiB")
	limited := Start()
	t.Setenv("GOMEMLIMIT", "")
	debug.SetGCPercent(50)
	set := Start()
	for range 20 {
		runtime.GC()
	}
	limited.Stop()
	set.Stop()
	if got := percent(); got != 50 {
		t.Errorf("GOGC is %d, want the 50 that was set", got)
	}
}
