//go:build !firn_local

package stores

import (
	"strings"

	"github.com/firnid/firn/kubestore"
)

// kubernetesOptions converts a URL to the options of a cluster.
func kubernetesOptions(u *parsed) (*kubestore.Options, error) {
	o := &kubestore.Options{
		Namespace: u.hosts, Prefix: u.path,
		Kubeconfig: u.take("kubeconfig"), Context: u.take("context"),
		Timeout: u.timeout,
	}
	switch {
	case u.user != "" || u.password != "":
		return nil, wrong("users are in the kubeconfig: kubernetes://NAMESPACE?context=NAME", "kubernetes: the URL must not contain a user or a password")
	case strings.ContainsAny(o.Namespace, ".:,"):
		return nil, wrong("write kubernetes://NAMESPACE; the API server's address is in the kubeconfig", "kubernetes: the namespace looks like an address")
	}
	if err := u.nothingElse("kubeconfig, context and timeout"); err != nil {
		return nil, err
	}
	return o, o.Check()
}
