// Package must ends a test at an error that the test is not about, and waits for
// what must happen.
package must

import (
	"fmt"
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen eventually. It ends
// only a test that hangs: no test may pass or fail by the speed of a machine.
const Patience = 10 * time.Minute

// Get returns what a call has returned, and ends the test if that is an error:
//
//	store := must.Get(dirstore.Open(dir, nil))(t)
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Await waits for what must happen eventually, and ends the test if it does
// not.
func Await(t testing.TB, done func() bool, what string, args ...any) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > Patience {
			t.Fatalf("not within %v: %s", Patience, fmt.Sprintf(what, args...))
		}
	}
}
