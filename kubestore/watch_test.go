//go:build unix

package kubestore

import (
	"testing"

	"github.com/firnid/firn/internal/test/calls"
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
	calls.Watch(t, s, other, func(wait func(string)) {
		link.Reset()
		wait("after a cut")
	})
}
