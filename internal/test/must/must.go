// Package must ends a test at an error that the test is not about.
package must

import "testing"

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
