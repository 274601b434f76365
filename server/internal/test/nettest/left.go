package nettest

import (
	"runtime"
	"testing"
)

// NothingLeft makes a call many times, and fails the test if something of each
// is left in memory: a goroutine, or what waits for the end of a context that
// outlasts the call.
func NothingLeft(t testing.TB, what string, call func()) {
	t.Helper()
	const often = 300
	left := often
	// Other work of the process may leave something, but not each time.
	for try := 0; try < 5 && left >= often/2; try++ {
		call()
		before := liveObjects()
		for range often {
			call()
		}
		left = liveObjects() - before
	}
	if left >= often/2 {
		t.Errorf("%d times %s leaves %d objects in memory", often, what, left)
	}
}

func liveObjects() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapObjects)
}
