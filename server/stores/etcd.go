//go:build !firn_local

package stores

import "github.com/firnid/firn/etcdstore"

// etcdOptions converts a URL to the options of etcd.
func etcdOptions(u *parsed) (o etcdstore.Options, err error) {
	c, err := u.tls()
	if err != nil {
		return o, err
	}
	if err := u.nothingElse("tls, ca, cert, key, password-file and timeout"); err != nil {
		return o, err
	}
	endpoints, err := u.addresses("2379")
	if err != nil {
		return o, err
	}
	return etcdstore.Options{
		Endpoints: endpoints, Prefix: u.path, TLS: c,
		Username: u.user, Password: u.password,
		DialTimeout: u.timeout,
	}, nil
}
