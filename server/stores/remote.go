//go:build !firn_local

package stores

import (
	"context"

	"github.com/firnid/firn/etcdstore"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/kubestore"
)

// openRemote opens a store that is not a directory.
func openRemote(ctx context.Context, u *parsed) (grant.Store, error) {
	within, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	switch u.scheme {
	case "etcd":
		o, err := etcdOptions(u)
		if err != nil {
			return nil, err
		}
		return etcdstore.Open(ctx, o)
	case "kubernetes":
		o, err := kubernetesOptions(u)
		if err != nil {
			return nil, err
		}
		return kubestore.Open(ctx, o)
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
