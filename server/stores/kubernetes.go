//go:build !firn_local

package stores

import (
	"context"
	"errors"
	"strings"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/kubestore"
)

// kubernetesOptions converts a URL to the options of a cluster.
func kubernetesOptions(u *parsed) (o kubestore.Options, err error) {
	o = kubestore.Options{
		Namespace: u.hosts, Prefix: u.path,
		Kubeconfig: u.take("kubeconfig"), Context: u.take("context"),
		Timeout: u.timeout,
	}
	switch {
	case u.user != "" || u.password != "":
		return o, wrong("users are in the kubeconfig: kubernetes://NAMESPACE?context=NAME", "kubernetes: the URL must not contain a user or a password")
	case strings.ContainsAny(o.Namespace, ".:,"):
		return o, wrong("write kubernetes://NAMESPACE; the API server's address is in the kubeconfig", "kubernetes: the namespace looks like an address")
	}
	if err := u.nothingElse("kubeconfig, context and timeout"); err != nil {
		return o, err
	}
	if err := o.Check(); err != nil {
		return o, &Error{Err: err, URL: true}
	}
	return o, nil
}

// openKubernetes opens the Leases of a namespace.
func openKubernetes(ctx context.Context, u *parsed) (grant.Store, error) {
	c, err := kubernetesOptions(u)
	if err != nil {
		return nil, err
	}
	s, err := kubestore.Open(ctx, c)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, grant.ErrOptions):
		return nil, &Error{Err: err, URL: true}
	}
	return nil, &Error{Err: err, Unreachable: errors.Is(err, grant.ErrUnreachable)}
}
