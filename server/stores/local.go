//go:build firn_local

package stores

// The tag firn_local leaves out the clients of etcd, Kubernetes and databases,
// which are a third of what a first build compiles: make run sets it as long as
// the store is a directory.

// prepareRemote refuses every store that is not a directory.
func prepareRemote(u *parsed) (opener, error) {
	return nil, fault("run make build, which builds bin/firn with all stores",
		"%s: make run built this program with only directory stores", u.scheme)
}
