package proc

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// A Shared is what the tests of a package share, such as a server: the first
// test that gets it starts it, and Main ends it. The zero Shared is ready to
// use.
type Shared[T any] struct {
	mu      sync.Mutex // guards the fields below
	value   T
	started bool
	lasting lasting
}

// Get returns the value of start. Directories and cleanups of the testing.TB
// that start is called with last until Main ends them. If start ends its test,
// the next Get calls it again.
func (s *Shared[T]) Get(t testing.TB, start func(testing.TB) T) T {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.lasting.TB = t
		s.value = start(&s.lasting)
		s.started = true
	}
	return s.value
}

// Main runs the tests of the package, and ends the process.
func (s *Shared[T]) Main(m *testing.M) {
	code := m.Run()
	for _, cleanup := range slices.Backward(s.lasting.cleanups) {
		cleanup()
	}
	os.Exit(code)
}

type lasting struct {
	testing.TB
	cleanups []func()
}

func (l *lasting) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

func (l *lasting) TempDir() string {
	dir := must.Get(os.MkdirTemp("", "firn"))(l)
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
