//go:build !firn_local

package stores

import (
	"context"
	"errors"

	"github.com/firnid/firn/etcdstore"
	"github.com/firnid/firn/grant"
)

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

// openEtcd opens an etcd.
func openEtcd(ctx context.Context, u *parsed) (grant.Store, error) {
	c, err := etcdOptions(u)
	if err != nil {
		return nil, err
	}
	s, err := etcdstore.Open(ctx, c)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, grant.ErrOptions):
		return nil, &Error{Err: err, URL: true}
	}
	return nil, &Error{Err: err, Unreachable: errors.Is(err, grant.ErrUnreachable)}
}
