//go:build !firn_local

package stores

import (
	"context"

	"github.com/firnid/firn/grant"
)

// openRemote opens a store that is not a directory.
func openRemote(ctx context.Context, u *parsed) (grant.Store, error) {
	within, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	switch u.scheme {
	case "etcd": // has its own timeout, after which it looks for the cause
		return openEtcd(ctx, u)
	case "kubernetes": // has its own timeout too
		return openKubernetes(ctx, u)
	case "mysql":
		return openMySQL(within, u)
	}
	return openPostgreSQL(within, u)
}

// checkRemote checks the URL of such a store.
func checkRemote(u *parsed) (err error) {
	switch u.scheme {
	case "etcd":
		_, err = etcdOptions(u)
	case "kubernetes":
		_, err = kubernetesOptions(u)
	case "mysql":
		_, _, err = configMySQL(u)
	default:
		_, _, err = configPostgreSQL(u)
	}
	return err
}
