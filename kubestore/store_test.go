//go:build unix

package kubestore

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/storetest"
	"github.com/firnid/firn/internal/test/kubetest"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

// shared is an API server for all tests that do not need their own.
var shared proc.Shared[*kubetest.Cluster]

func TestMain(m *testing.M) { shared.Main(m) }

func sharedCluster(t testing.TB) *kubetest.Cluster {
	t.Helper()
	return shared.Get(t, kubetest.Start).For(t)
}

var namespaces atomic.Int64

// newNamespace creates a namespace that no other test uses.
func newNamespace(t testing.TB, c *kubetest.Cluster) string {
	t.Helper()
	name := fmt.Sprintf("test-%d", namespaces.Add(1))
	c.Namespace(name)
	return name
}

// open opens a store, and closes it at the end of the test.
func open(t testing.TB, o Options) *store {
	t.Helper()
	o.Timeout = must.Patience
	s := must.Get(Open(t.Context(), &o))(t)
	t.Cleanup(func() { must.Do(t, s.Close()) })
	return s.(*store)
}

func TestStore(t *testing.T) {
	c := sharedCluster(t)
	storetest.Run(t, func(t *testing.T) grant.Store {
		namespace := newNamespace(t, c)
		return open(t, Options{Kubeconfig: c.Kubeconfig("", namespace, "")})
	}, func(t *testing.T, first grant.Store) grant.Store {
		return open(t, Options{Kubeconfig: c.Kubeconfig("", first.(*store).namespace, "")})
	})
}
