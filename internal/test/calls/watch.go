package calls

import (
	"fmt"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// Watch checks what the contract of grant.Watcher leaves open: a watch of s
// reports its beginning and each change, which another store over the same data
// makes, soon, continues after cut has cut its connection, and ends with s. cut
// may call wait to wait for a report.
func Watch(t *testing.T, s, other grant.Store, cut func(wait func(what string))) {
	t.Helper()
	reports := s.(grant.Watcher).Watch(t.Context(), "v1/a/config")
	wait := func(what string) {
		t.Helper()
		select {
		case _, open := <-reports:
			if !open {
				t.Fatalf("%s: the channel is closed", what)
			}
		case <-time.After(must.Patience):
			t.Fatalf("%s: nothing is reported", what)
		}
	}
	wait("at the beginning")
	old := ""
	for i := range 3 {
		next := fmt.Sprint(i)
		CAS(t, other, "v1/a/config", old, next)
		wait("after change " + next)
		old = next
		cut(wait)
	}
	must.Do(t, s.Close())
	for range reports { // it ends
	}
}
