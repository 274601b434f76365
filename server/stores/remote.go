//go:build !firn_local

package stores

import (
	"context"
	"strings"

	"github.com/firnid/firn/etcdstore"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/kubestore"
	"github.com/firnid/firn/s3store"
)

// prepareRemote checks the URL of a store that is not a directory.
func prepareRemote(u *parsed) (opener, error) {
	switch u.scheme {
	case "etcd":
		o, err := etcdOptions(u)
		return func(ctx context.Context) (grant.Store, error) { return etcdstore.Open(ctx, o) }, err
	case "kubernetes":
		o, err := kubernetesOptions(u)
		return func(ctx context.Context) (grant.Store, error) { return kubestore.Open(ctx, o) }, err
	case "mysql":
		return prepareMySQL(u)
	case "s3":
		o, err := s3Options(u)
		return func(ctx context.Context) (grant.Store, error) { return s3store.Open(ctx, o) }, err
	}
	return preparePostgreSQL(u)
}

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

// kubernetesOptions converts a URL to the options of a cluster.
func kubernetesOptions(u *parsed) (*kubestore.Options, error) {
	o := &kubestore.Options{
		Namespace: u.hosts, Prefix: u.path,
		Kubeconfig: u.take("kubeconfig"), Context: u.take("context"),
		Timeout: u.timeout,
	}
	switch {
	case u.user != "" || u.password != "":
		return nil, wrong("users are in the kubeconfig: kubernetes://NAMESPACE?context=NAME",
			"kubernetes: the URL must not contain a user or a password")
	case strings.ContainsAny(o.Namespace, ".:,"):
		return nil, wrong("write kubernetes://NAMESPACE; the API server's address is in the kubeconfig",
			"kubernetes: the namespace looks like an address")
	}
	if err := u.nothingElse("kubeconfig, context and timeout"); err != nil {
		return nil, err
	}
	return o, o.Check()
}

// s3Options converts a URL to the options of a bucket.
func s3Options(u *parsed) (*s3store.Options, error) {
	o := &s3store.Options{
		Bucket: u.hosts, Prefix: u.path,
		Endpoint: u.take("endpoint"), Region: u.take("region"),
		Timeout: u.timeout,
	}
	var err error
	if o.PathStyle, err = u.flag("path-style"); err != nil {
		return nil, err
	}
	switch {
	case u.user != "" || u.password != "":
		return nil, wrong("credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role, as for "+
			"every AWS tool", "s3: the URL must not contain a user or a password")
	case strings.ContainsAny(o.Bucket, ":,"):
		return nil, wrong("write s3://BUCKET/PREFIX?endpoint=https://HOST", "s3: the bucket looks like an address")
	}
	if err := u.nothingElse("endpoint, region, path-style and timeout"); err != nil {
		return nil, err
	}
	return o, o.Check()
}
