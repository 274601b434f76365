package kubestore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/firnid/firn/grant"
)

// Options configure Open. Nil and the zero Options mean what kubectl would use:
// in a pod, its service account and its namespace.
type Options struct {
	// Namespace is the namespace of the Leases. Empty means the namespace of
	// the kubeconfig's context, or of the pod.
	Namespace string

	// Prefix is the beginning of the names of the Leases: lower-case letters,
	// digits and hyphens, in parts joined by a slash. Empty means firn. Slashes
	// at its ends are ignored. Different prefixes are independent of each
	// other.
	Prefix string

	// Kubeconfig is the path of a kubeconfig file. Empty means the files that
	// KUBECONFIG names, then ~/.kube/config, then, in a pod, its service
	// account.
	Kubeconfig string

	// Context is the name of a context in the kubeconfig. Empty means the
	// current one.
	Context string

	// Timeout is how long Open waits for the first answer. Zero means five
	// seconds.
	Timeout time.Duration
}

const (
	defaultTimeout = 5 * time.Second
	dialTimeout    = 5 * time.Second
)

// Check returns an error if the Options, or the kubeconfig that they name, are
// invalid. It does not contact the API server.
func (o *Options) Check() error {
	o = cmp.Or(o, new(Options))
	_, err := o.check()
	if err == nil && o.Kubeconfig+o.Context != "" {
		_, _, err = o.config()
	}
	return err
}

// check returns the prefix, or an error.
func (o *Options) check() (prefix string, err error) {
	prefix = cmp.Or(strings.Trim(o.Prefix, "/"), defaultPrefix)
	var faults []error
	if !checkPrefix(prefix) {
		faults = append(faults, fmt.Errorf("%w: prefix %q: use parts of lower-case letters, digits and single hyphens, "+
			"joined by one slash, up to %d characters in total", grant.ErrOptions, o.Prefix, maxPrefix))
	}
	if o.Namespace != "" && (len(o.Namespace) > maxPrefix || !isPath(o.Namespace) || strings.Contains(o.Namespace, "/")) {
		faults = append(faults, fmt.Errorf("%w: namespace %q is not the name of a namespace, such as ids",
			grant.ErrOptions, o.Namespace))
	}
	if o.Timeout < 0 {
		faults = append(faults, fmt.Errorf("%w: Timeout is %v", grant.ErrOptions, o.Timeout))
	}
	return prefix, errors.Join(faults...)
}

// config loads the configuration that kubectl would use.
func (o *Options) config() (c *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	rules.WarnIfAllMissing = false
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	c, err = loader.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) {
			return nil, "", fmt.Errorf("%w: no kubeconfig found, and this is not a pod: name a file with kubeconfig=PATH or "+
				"KUBECONFIG", grant.ErrOptions)
		}
		return nil, "", fmt.Errorf("%w: %w", grant.ErrOptions, err)
	}
	namespace = o.Namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", fmt.Errorf("%w: %w", grant.ErrOptions, err)
		}
	}
	return c, namespace, nil
}

// Open returns a Store once the API server has answered. It creates the Lease
// firn-identity if it does not exist. Its error matches grant.ErrUnreachable if
// that takes longer than Timeout or ctx is done. It also fails if the user may
// not read Leases, and if the namespace does not exist.
//
// The Store is safe for concurrent use by multiple goroutines, and any number
// of Stores may use a prefix.
//
// Get and List are linearizable. Reads are repeated up to three times if the
// API server is overloaded or does not answer. A write is sent once.
//
// By grant.As, the Store is also a grant.MultiGetter, a Watcher, a Lineage,
// Dangers and Paced.
func Open(ctx context.Context, o *Options) (grant.Store, error) {
	o = cmp.Or(o, new(Options))
	prefix, err := o.check()
	if err != nil {
		return nil, err
	}
	config, namespace, err := o.config()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := newStore(config, namespace, prefix)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
	defer cancel()
	if err := s.begin(within); err != nil {
		_ = s.Close()
		return nil, diagnose(ctx, config.Host, namespace, err)
	}
	return s, nil
}

// newStore makes a Store that has not contacted the API server yet.
func newStore(config *rest.Config, namespace, prefix string) (*store, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = manager
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: 10 * time.Second}
	s := &store{namespace: namespace, prefix: prefix, dialer: d.DialContext}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	config.Dial = s.dial // also gives this store its own connections
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", grant.ErrOptions, err)
	}
	s.leases = base.JoinPath("apis/coordination.k8s.io/v1/namespaces", namespace, "leases")
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", grant.ErrOptions, err)
	}
	ping(transport)
	// Neither rate limits nor retries: those of client-go are in its
	// RESTClient, which a CAS must not pass through.
	s.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// pingAfter is how long a connection with a request may be silent before it
// has to answer a ping, within pingPatience. client-go's own 30 and 15 seconds
// are longer than the 40 seconds that a renewal has in a window of a minute.
const (
	pingAfter    = 10 * time.Second
	pingPatience = 3 * time.Second
)

// ping has a transport give up connections that are silent, such as those that
// a load balancer has forgotten.
func ping(transport http.RoundTripper) {
	for {
		switch t := transport.(type) {
		case *http.Transport:
			t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingPatience}
			return
		case interface{ WrappedRoundTripper() http.RoundTripper }:
			transport = t.WrappedRoundTripper()
		default:
			return
		}
	}
}

// dial makes a connection that Close closes, also if it is made after Close.
func (s *store) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := s.dialer(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &closedWith{conn, context.AfterFunc(s.ctx, func() { _ = conn.Close() })}, nil
}

// A closedWith is a connection that its store no longer closes once it is
// closed.
type closedWith struct {
	net.Conn
	forget func() bool
}

func (c *closedWith) Close() error {
	c.forget()
	return c.Conn.Close()
}

// begin waits until the API server answers.
func (s *store) begin(ctx context.Context) error {
	var reason error
	for {
		_, _, err := s.Lineage(ctx)
		r, refused := errors.AsType[*refusal](err)
		if err == nil || refused && !r.isPassing() || isUntrusted(err) {
			return err
		}
		if reason = because(ctx, err, reason); ctx.Err() != nil {
			return reason
		}
		select {
		case <-ctx.Done():
			return reason
		case <-time.After(firstPause):
		}
	}
}

// isUntrusted reports whether the API server's certificate is not trusted, or
// it does not speak TLS. One that is starting does neither.
func isUntrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.Is(err, http.ErrSchemeMismatch)
}

// diagnose returns why Open has failed with err.
func diagnose(ctx context.Context, host, namespace string, err error) error {
	r, refused := errors.AsType[*refusal](err)
	switch {
	case isUntrusted(err):
		return fmt.Errorf("kubestore: the API server at %s cannot be trusted: %w: check server and certificate-authority in "+
			"the kubeconfig", host, err)
	case ctx.Err() != nil:
		err = ctx.Err()
	case !refused, r.isPassing():
	case r.status.Kind == "":
		return fmt.Errorf("kubestore: %s is not a Kubernetes API server: %w", host, r)
	case r.code == http.StatusForbidden:
		return fmt.Errorf("kubestore: permission denied: %w: it needs get, list, watch, create and update on leases in "+
			"namespace %s (see deploy/kubernetes/rbac.yaml)", r, namespace)
	case r.code == http.StatusUnauthorized:
		return fmt.Errorf("kubestore: the API server at %s does not recognize this user: %w: check the token or "+
			"certificate in the kubeconfig", host, r)
	case r.code == http.StatusNotFound && r.status.Details.Kind == "namespaces":
		return fmt.Errorf("kubestore: namespace %s not found: create it with kubectl create namespace %s", namespace,
			namespace)
	default:
		return fmt.Errorf("kubestore: the API server at %s: %w", host, r)
	}
	return fmt.Errorf("%w: the API server at %s: %w: check the context and the address in the kubeconfig",
		grant.ErrUnreachable, host, err)
}
