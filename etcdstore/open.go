package etcdstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/firnid/firn/grant"
)

// Options configure Open. Endpoints is required; the other fields may be zero.
type Options struct {
	// Endpoints are the client addresses of the members of one etcd: host:port,
	// optionally after http:// or https://. One that answers is enough; name
	// all members, so that any of them may be down.
	Endpoints []string

	// Prefix is where in etcd the keys are: parts like those of a key, joined
	// by a slash. Slashes at its ends are ignored. Empty means firn.
	Prefix string

	// TLS is the configuration for connections: the certificates to trust, and
	// the client's own if etcd requires one. Nil means no TLS, or the system's
	// certificates if the endpoints begin with https://. The certificates of
	// etcd must be valid for the hosts in Endpoints; ServerName is not used.
	TLS *tls.Config

	// Username and Password are those of a user of etcd that may read and write
	// the prefix. Empty means no user, for an etcd without authentication.
	Username string
	Password string

	// Timeout is how long Open waits for an answer, and how long connecting may
	// take later. Zero means five seconds.
	Timeout time.Duration
}

// defaultTimeout is longer than an election takes with etcd's default settings.
const defaultTimeout = 5 * time.Second

// Check returns an error with everything that is wrong with the Options. It
// does not contact etcd.
func (o *Options) Check() error {
	_, _, _, err := o.check()
	return err
}

// check returns the endpoints in the form for the client, the beginning of all
// keys, and the configuration of TLS, which is nil without TLS.
func (o *Options) check() (endpoints []string, prefix string, config *tls.Config, err error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: %s", grant.ErrOptions, fmt.Sprintf(format, args...)))
	}
	prefix = cmp.Or(strings.Trim(o.Prefix, "/"), "firn")
	if grant.CheckKey(prefix) != nil {
		fault("prefix %q: use parts like those of a key, joined by one slash, such as /firn/production", o.Prefix)
	}
	if len(o.Endpoints) == 0 {
		fault("no endpoints: name the members of etcd, such as 10.0.0.1:2379")
	}
	config = o.TLS
	if config == nil && slices.ContainsFunc(o.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https://") }) {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	want := "http"
	if config != nil {
		want = "https"
	}
	for _, e := range o.Endpoints {
		scheme, address, ok := strings.Cut(strings.TrimSuffix(e, "/"), "://")
		if !ok {
			scheme, address = want, scheme
		}
		host, port, err := net.SplitHostPort(address)
		switch {
		case err != nil || host == "" || port == "" || scheme != "http" && scheme != "https":
			fault("endpoint %q is not host:port, such as 10.0.0.1:2379, optionally after http:// or https://", e)
		case scheme != want:
			fault("endpoint %q does not use TLS as TLS and the other endpoints say: all must be the same", e)
		}
		endpoints = append(endpoints, want+"://"+address)
	}
	if (o.Username == "") != (o.Password == "") {
		fault("set both the user and the password, or neither")
	}
	if o.Timeout < 0 {
		fault("Timeout is %v", o.Timeout)
	}
	return endpoints, "/" + prefix + "/", config, errors.Join(faults...)
}

// Open returns a Store once etcd has answered a read that needs its majority.
// Its error matches grant.ErrUnreachable if that takes longer than Timeout or
// ctx is done, grant.ErrUnfit if a member is too old, and grant.ErrOptions if
// the endpoints are members of different clusters. It also fails if etcd
// rejects the user.
//
// The Store is safe for concurrent use by multiple goroutines, which share one
// connection to each endpoint, and any number of Stores may use a prefix.
//
// Get and List are linearizable; List shows the keys at one moment, unless etcd
// compacts that revision before List is complete. An applied CAS is durable on
// most of the members.
//
// Get, GetMany and List are retried while endpoints are unavailable, as long as
// the context allows, but at most for some seconds. A CAS is not retried.
//
// An answer from a different cluster than the previous ones is not used as long
// as any endpoint belongs to the previous cluster: a read is repeated, and a
// CAS has an unknown result.
//
// By grant.As, the Store is also a grant.MultiGetter, a Watcher, a Lineage, a
// Clock and Dangers.
func Open(ctx context.Context, o *Options) (grant.Store, error) {
	o = cmp.Or(o, new(Options))
	endpoints, prefix, config, err := o.check()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	timeout := cmp.Or(o.Timeout, defaultTimeout)
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := dial(within, clientv3.Config{
		Endpoints:   endpoints,
		TLS:         config,
		DialTimeout: timeout,
		Username:    o.Username,
		Password:    o.Password,
		// By default etcd accepts pings no more often than every five seconds.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(), // errors are returned, and contain more
		DialOptions: []grpc.DialOption{
			grpc.WithStatsHandler(observer{}),
			grpc.WithChainUnaryInterceptor(sendOnce),
			// gRPC's default delay grows to two minutes, longer than a window.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
					MaxDelay: 3 * time.Second},
				MinConnectTimeout: min(timeout, 3*time.Second),
			}),
		},
	})
	if err != nil {
		return nil, o.explain(err, prefix)
	}
	s := &store{client: client, prefix: prefix, endpoints: endpoints, tls: config}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err = retry(within, func() error { _, _, err := s.Lineage(within); return err }); err != nil {
		err = o.explain(err, prefix)
	} else {
		members := s.status(within)
		err = cmp.Or(tooOld(members), oneCluster(members))
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// dial makes the client, which fetches a token if there is a user. The client
// lives as long as its context; while it is being made, ctx ends it.
func dial(ctx context.Context, c clientv3.Config) (client *clientv3.Client, err error) {
	o := new(outcome)
	life, end := context.WithCancel(context.WithValue(context.Background(), outcomeKey{}, o))
	c.Context = life
	stop := context.AfterFunc(ctx, end)
	err = retry(ctx, func() (err error) { client, err = clientv3.New(c); return err })
	if err == nil && stop() {
		return client, nil
	}
	end()
	if err == nil { // ctx was done at the last moment
		_ = client.Close()
	}
	return nil, failed(context.WithValue(ctx, outcomeKey{}, o), "connect", err)
}

// retry calls f until it succeeds, etcd rejects the user, or ctx is done: an
// election may be in progress, or the first endpoint may be down.
func retry(ctx context.Context, f func() error) error {
	var before error
	for {
		err := f()
		switch {
		case before != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()): // which says less
			return fmt.Errorf("%w, after: %w", err, before)
		case err == nil, isAuth(err), ctx.Err() != nil:
			return err
		}
		before = err
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// explain returns the error of Open, which failed with err.
func (o *Options) explain(err error, prefix string) error {
	text := err.Error()
	switch {
	case isOneOf(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("%w: %w: user %q needs a role with: etcdctl role grant-permission ROLE readwrite --prefix=true %s",
			errAuth, err, o.Username, prefix)
	case isAuth(err):
		return fmt.Errorf("%w: %w: check the name and the password of user %q", errAuth, err, o.Username)
	case strings.Contains(text, "tls: "), strings.Contains(text, "x509: "): // waiting does not help
		return fmt.Errorf("%w: %w", errTLS, err)
	}
	return fmt.Errorf("%w: %w: check that %s are etcd's client ports, that it has a leader, and that both sides use "+
		"TLS or neither",
		grant.ErrUnreachable, err, strings.Join(o.Endpoints, ", "))
}
