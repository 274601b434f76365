//go:build unix

package kubestore

import (
	"fmt"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

// TestWatch checks what the contract leaves open: a watch reports each change
// soon, and continues after its connection was cut.
func TestWatch(t *testing.T) {
	c := sharedCluster(t)
	link := proc.NewLink(t, c.Address)
	namespace := newNamespace(t, c)
	s := open(t, Options{Kubeconfig: c.Kubeconfig("https://"+link.Address, namespace, "")})
	other := open(t, Options{Kubeconfig: c.Kubeconfig("", namespace, "")})
	told := s.Watch(t.Context(), "v1/a/config")
	wait := func(what string) {
		t.Helper()
		select {
		case _, open := <-told:
			if !open {
				t.Fatalf("%s: the channel is closed", what)
			}
		case <-time.After(must.Patience):
			t.Fatalf("%s: nothing is told", what)
		}
	}
	wait("at the beginning")
	var old []byte
	for i := range 3 {
		next := fmt.Appendf(nil, "%d", i)
		mustCAS(t, other, "v1/a/config", old, next)
		wait(fmt.Sprintf("after change %d", i))
		old = next
		link.Reset()
		wait(fmt.Sprintf("after cut %d", i))
	}
	must.Do(t, s.Close())
	for range told { // it ends
	}
}
