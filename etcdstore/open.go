package etcdstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

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

	// DialTimeout is how long Open waits for an answer, and how long connecting
	// may take later. Zero means five seconds.
	DialTimeout time.Duration
}

// defaultDialTimeout is longer than an election takes with etcd's default
// settings.
const defaultDialTimeout = 5 * time.Second

// check returns the endpoints in the form for the client, the namespace, and
// whether TLS is used, or an error with everything that is wrong.
func (o *Options) check() (endpoints []string, prefix string, encrypted bool, err error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: %s", grant.ErrOptions, fmt.Sprintf(format, args...)))
	}
	prefix, err = namespace(o.Prefix)
	if err != nil {
		faults = append(faults, err)
	}
	if len(o.Endpoints) == 0 {
		fault("no endpoints: name the members of etcd, such as 10.0.0.1:2379")
	}
	scheme := "http"
	if o.TLS != nil {
		scheme = "https"
	}
	for i, e := range o.Endpoints {
		if !strings.Contains(e, "://") {
			e = scheme + "://" + e
		}
		u, err := url.Parse(e)
		if err != nil || u.Hostname() == "" || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" {
			fault("endpoint %q is not host:port, such as 10.0.0.1:2379, optionally after http:// or https://", o.Endpoints[i])
			continue
		}
		if i > 0 && (u.Scheme == "https") != encrypted || u.Scheme == "http" && o.TLS != nil {
			fault("endpoint %q does not use TLS as TLS and the other endpoints say: all must be the same", e)
		}
		encrypted = u.Scheme == "https"
		endpoints = append(endpoints, u.Scheme+"://"+u.Host)
	}
	if (o.Username == "") != (o.Password == "") {
		fault("set both the user and the password, or neither")
	}
	if o.DialTimeout < 0 {
		fault("DialTimeout is %v", o.DialTimeout)
	}
	return endpoints, prefix, encrypted, errors.Join(faults...)
}

// Open returns a Store once etcd has answered a read that needs its majority.
// It fails if that takes longer than DialTimeout or ctx is done, if etcd
// rejects the user, if a member is too old, and if the endpoints are members of
// different clusters.
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
// as any endpoint belongs to the previous cluster: a read is repeated, and a CAS
// has an unknown result.
//
// The Store is also a grant.Checker.
func Open(ctx context.Context, o Options) (grant.Store, error) {
	s, err := openStore(ctx, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openStore(ctx context.Context, o Options) (*store, error) {
	endpoints, prefix, encrypted, err := o.check()
	if err != nil {
		return nil, err
	}
	timeout := cmp.Or(o.DialTimeout, defaultDialTimeout)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config := o.TLS
	if encrypted && config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	clientConfig := clientv3.Config{
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
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
				MinConnectTimeout: min(timeout, 3*time.Second),
			}),
		},
	}
	client, err := dial(within, clientConfig)
	if err != nil {
		return nil, unreachable(ctx, endpoints, config, o.Username, prefix, err)
	}
	s := &store{client: client, prefix: prefix, endpoints: endpoints, tls: config}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.begin(within); err != nil {
		_ = s.Close()
		if errors.Is(err, errVersion) || errors.Is(err, grant.ErrOptions) {
			return nil, err
		}
		return nil, unreachable(ctx, endpoints, config, o.Username, prefix, err)
	}
	return s, nil
}

// dial makes the client, which fetches a token if there is a user. The client
// lives as long as its context; while it is being made, ctx ends it.
func dial(ctx context.Context, c clientv3.Config) (*clientv3.Client, error) {
	life, end := context.WithCancel(context.Background())
	c.Context = life
	stop := context.AfterFunc(ctx, end)
	for {
		client, err := clientv3.New(c)
		switch {
		case err == nil && stop():
			return client, nil
		case err == nil: // ctx was done at the last moment
			_ = client.Close()
			return nil, ctx.Err()
		}
		// The token is requested only once; an election may be in progress, or
		// the first endpoint may be down.
		if isAuth(err) || ctx.Err() != nil {
			stop()
			end()
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// begin checks that etcd answers, and determines its cluster.
func (s *store) begin(ctx context.Context) error {
	for {
		_, _, err := s.Lineage(ctx)
		if err == nil {
			break
		}
		if isAuth(errors.Unwrap(err)) || ctx.Err() != nil {
			return err
		}
		select { // the client has retried several times
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
	members := s.status(ctx)
	if err := tooOld(members); err != nil {
		return err
	}
	return oneCluster(members)
}
