//go:build !firn_local

package stores

import "github.com/firnid/firn/etcdstore"

// etcdOptions converts a URL to the options of etcd.
func etcdOptions(u *parsed) (*etcdstore.Options, error) {
	c, err := u.tls()
	if err != nil {
		return nil, err
	}
	if err := u.nothingElse("tls, ca, cert, key, password-file and timeout"); err != nil {
		return nil, err
	}
	endpoints, err := u.addresses("2379")
	if err != nil {
		return nil, err
	}
	o := &etcdstore.Options{
		Endpoints: endpoints, Prefix: u.path, TLS: c,
		Username: u.user, Password: u.password, Timeout: u.timeout,
	}
	return o, o.Check()
}
