// Package left notices what calls leave behind.
package left

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// Nothing makes a call many times, and fails the test if something of each is
// left: an open file, or memory, such as that of a goroutine or of what waits
// for the end of a context that outlasts the call.
func Nothing(t testing.TB, what string, call func()) {
	t.Helper()
	const often = 300
	var objects, files int
	// Other work of the process may leave something, but not each time.
	for try := 0; try == 0 || try < 5 && (objects >= often/2 || files >= often/2); try++ {
		call()
		objectsBefore := liveObjects()
		percent := debug.SetGCPercent(-1) // collecting an open file closes it
		filesBefore := openFiles()
		for range often {
			call()
		}
		files = openFiles() - filesBefore
		debug.SetGCPercent(percent)
		objects = liveObjects() - objectsBefore
		// What a client cleans up in the background goes a little later.
		for end := time.Now().Add(2 * time.Minute); objects >= often/2 && try == 4 && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
			objects = liveObjects() - objectsBefore
		}
	}
	if objects >= often/2 || files >= often/2 {
		t.Errorf("%d calls of %s leave %d objects in memory, and %d open files", often, what, objects, files)
	}
}

func liveObjects() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapObjects)
}

// openFiles returns how many files are open, or 0 if the system does not say.
func openFiles() int {
	files, _ := os.ReadDir("/dev/fd")
	return len(files)
}
