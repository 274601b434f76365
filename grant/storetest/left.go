package storetest

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
)

// testNothingLeft makes each kind of call many times, with each end that it can
// have. Nothing of a call is left when it has returned: no file, and no memory,
// such as what waits for the end of a context.
func testNothingLeft(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "0", true)
	s.cas("b", "", "0", true)
	gone, cancel := context.WithCancel(s.ctx)
	cancel()
	calls := map[string]func(ctx context.Context){
		"Get":               func(ctx context.Context) { _, _ = s.Get(ctx, "a") },
		"Get of no value":   func(ctx context.Context) { _, _ = s.Get(ctx, "none") },
		"a refused CAS":     func(ctx context.Context) { _, _ = s.CAS(ctx, "a", []byte("x"), []byte("y")) },
		"List":              func(ctx context.Context) { _ = s.List(ctx, "", func(string, []byte) bool { return true }) },
		"List that stops":   func(ctx context.Context) { _ = s.List(ctx, "", func(string, []byte) bool { return false }) },
		"Get after its end": func(context.Context) { _, _ = s.Get(gone, "a") },
		"Get that ends": func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			go cancel()
			_, _ = s.Get(ctx, "a")
		},
	}
	if m, ok := s.Store.(grant.MultiGetter); ok {
		calls["GetMany"] = func(ctx context.Context) { _, _ = m.GetMany(ctx, []string{"a", "b", "none"}) }
	}
	for what, call := range calls {
		const often = 300
		var objects, files int
		// Other work of the process may leave something, but not each time.
		for try := 0; try == 0 || try < 5 && (objects >= often/2 || files >= often/2); try++ {
			call(s.ctx)
			objectsBefore := liveObjects()
			percent := debug.SetGCPercent(-1) // collecting an open file closes it
			filesBefore := openFiles()
			for range often {
				call(s.ctx)
			}
			files = openFiles() - filesBefore
			debug.SetGCPercent(percent)
			objects = liveObjects() - objectsBefore
			// What a client cleans up in the background goes a little later.
			for end := time.Now().Add(soon); objects >= often/2 && try == 4 && time.Now().Before(end); {
				time.Sleep(50 * time.Millisecond)
				objects = liveObjects() - objectsBefore
			}
		}
		if objects >= often/2 || files >= often/2 {
			t.Fatalf("%d calls of %s leave %d objects in memory, and %d open files", often, what, objects, files)
		}
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
