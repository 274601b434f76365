//go:build firn_local

package stores

import (
	"context"

	"github.com/firnid/firn/grant"
)

// The tag firn_local leaves out the clients of etcd, Kubernetes and databases,
// which are a third of what a first build compiles: make run sets it as long as
// the store is a directory.

// openRemote refuses every store that is not a directory.
func openRemote(_ context.Context, u *parsed) (grant.Store, error) {
	return nil, checkRemote(u)
}

// checkRemote refuses the URL of such a store.
func checkRemote(u *parsed) error {
	return fault("run make build, which builds bin/firn with all stores", "%s: make run built this program with only directory stores", u.scheme)
}
