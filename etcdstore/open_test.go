package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestOptions(t *testing.T) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	for name, c := range map[string]struct {
		o     Options
		words []any
	}{
		"nothing":            {Options{}, []any{"no endpoints"}},
		"no port":            {Options{Endpoints: []string{"10.0.0.1"}}, []any{"host:port"}},
		"scheme":             {Options{Endpoints: []string{"ftp://10.0.0.1:1"}}, []any{"ftp://", "host:port"}},
		"http with TLS":      {Options{Endpoints: []string{"http://10.0.0.1:1"}, TLS: config}, []any{"all must be the same"}},
		"both":               {Options{Endpoints: []string{"http://10.0.0.1:1", "https://10.0.0.2:1"}}, []any{"all must be the same"}},
		"password alone":     {Options{Endpoints: []string{"a:1"}, Password: "x"}, []any{"set both the user and the password"}},
		"all faults at once": {Options{Prefix: "a b", Timeout: -1}, []any{"no endpoints", "prefix", "Timeout"}},
	} {
		ended, cancel := context.WithCancel(t.Context())
		cancel() // so that it connects to nothing first
		_, err := Open(ended, &c.o)
		calls.Error(t, "Open: "+name, err, append(c.words, grant.ErrOptions)...)
	}
}

func TestUnreachable(t *testing.T) {
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // accepts, but does not answer
	defer func() { _ = silent.Close() }()
	dead := proc.FreeAddress(t)
	_, err := Open(t.Context(), &Options{Endpoints: []string{dead}, Timeout: 500 * time.Millisecond})
	calls.Error(t, "Open", err, grant.ErrUnreachable, dead, "connection refused", "check that")
	_, err = Open(t.Context(), &Options{Endpoints: []string{dead}, Timeout: 500 * time.Millisecond, Username: "u", Password: "p"})
	calls.Error(t, "Open with a user", err, grant.ErrUnreachable, dead+": connect: connection refused")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, &Options{Endpoints: []string{silent.Addr().String()}})
	calls.Error(t, "Open with a context that ends", err, context.DeadlineExceeded)
}

// The first endpoint is dead; the others work, also with a user.
func TestFirstEndpointDead(t *testing.T) {
	e := sharedEtcd(t)
	s := open(t, Options{Endpoints: []string{proc.FreeAddress(t), e.endpoint}, Prefix: newPrefix()})
	for i := range 20 {
		key := fmt.Sprintf("k/%d", i)
		calls.Get(t, s, key, "")
		calls.CAS(t, s, key, "", "1")
	}
	if dangers, err := s.Dangers(t.Context()); err != nil || len(dangers) != 1 || !strings.Contains(dangers[0], "does not answer") {
		t.Errorf("Dangers = %q, %v, want one danger, the dead endpoint", dangers, err)
	}
}

func TestAuth(t *testing.T) {
	e := startEtcd(t, nil)
	ctx := t.Context()
	c := e.client(t, "", "")
	check := func(_ any, err error) {
		t.Helper()
		must.Do(t, err)
	}
	user := func(name, password string, may clientv3.PermissionType) {
		t.Helper()
		check(c.UserAdd(ctx, name, password))
		check(c.RoleAdd(ctx, name))
		check(c.RoleGrantPermission(ctx, name, "/firn/", clientv3.GetPrefixRangeEnd("/firn/"), may))
		check(c.UserGrantRole(ctx, name, name))
	}
	check(c.UserAdd(ctx, "root", "secret"))
	check(c.UserGrantRole(ctx, "root", "root"))
	user("firn", "word", clientv3.PermissionType(clientv3.PermReadWrite))
	user("reader", "word", clientv3.PermissionType(clientv3.PermRead))
	check(c.UserAdd(ctx, "nobody", "word"))
	check(c.AuthEnable(ctx))

	as := func(user, password, prefix string) Options {
		return Options{Endpoints: []string{e.endpoint}, Username: user, Password: password, Prefix: prefix,
			Timeout: 3 * time.Second}
	}
	for _, tt := range []struct{ user, password, prefix, want string }{
		{"", "", "", "user name is empty"},
		{"firn", "wrong", "", `password of user "firn"`},
		{"stranger", "word", "", `user "stranger"`},
		{"nobody", "word", "", "--prefix=true /firn/"}, // has no role
		{"firn", "word", "elsewhere", "--prefix=true /elsewhere/"},
	} {
		o := as(tt.user, tt.password, tt.prefix)
		o.Timeout = time.Hour // an error that waits for it exceeds the time limit of the test
		_, err := Open(ctx, &o)
		calls.Error(t, fmt.Sprintf("Open of prefix %q as user %q", tt.prefix, tt.user), err, errAuth, tt.want)
	}
	dead := as("firn", "word", "")
	dead.Endpoints = []string{proc.FreeAddress(t), e.endpoint}
	for i, o := range []Options{as("firn", "word", ""), dead} {
		s := open(t, o)
		calls.CAS(t, s, "a", []string{"", "1"}[i], []string{"1", "11"}[i])
		if dangers, err := s.Dangers(ctx); err != nil || len(dangers) != len(o.Endpoints)-1 {
			t.Errorf("Dangers = %q, %v, want %d dangers", dangers, err, len(o.Endpoints)-1)
		}
	}
	reader := open(t, as("reader", "word", ""))
	calls.Get(t, reader, "a", "11")
	calls.NotSent(t, reader, "a", "11", "2")

	// A token that etcd has forgotten is fetched again, during the call.
	s := open(t, as("firn", "word", ""))
	root := e.client(t, "root", "secret")
	for i := range 5 {
		check(root.UserAdd(ctx, fmt.Sprint("other", i), "x")) // changes the revision of the authorization
		calls.CAS(t, s, fmt.Sprint("token/", i), "", "1")
	}
	check(root.UserChangePassword(ctx, "firn", "new")) // the tokens are invalid now
	calls.NotSent(t, s, "token/z", "", "1")
}

func TestTLS(t *testing.T) {
	certs := makeCertificates(t)
	e := startEtcd(t, certs)
	_, address, _ := strings.Cut(e.endpoint, "://")
	ctx := t.Context()
	for _, endpoint := range []string{address, "https://" + address} {
		calls.Get(t, open(t, Options{Endpoints: []string{endpoint}, TLS: certs.client}), "a", "")
	}
	try := func(endpoint string, config *tls.Config, causes ...any) {
		t.Helper()
		_, err := Open(ctx, &Options{Endpoints: []string{endpoint}, TLS: config, Timeout: 3 * time.Second})
		calls.Error(t, "Open of "+endpoint, err, causes...)
	}
	try(address, nil, grant.ErrUnreachable, "both sides use TLS or neither")
	try("https://"+address, nil, errTLS, "unknown authority")
	_, port, _ := strings.Cut(address, ":")
	try("localhost:"+port, certs.client, errTLS, "match localhost")
	_, plain, _ := strings.Cut(sharedEtcd(t).endpoint, "://")
	try(plain, certs.client, grant.ErrUnreachable, "both sides use TLS or neither")
}

// TestTwoClusters: endpoints that belong to different clusters are two stores.
func TestTwoClusters(t *testing.T) {
	e, other := sharedEtcd(t), startEtcd(t, nil)
	s, err := Open(t.Context(), &Options{Endpoints: []string{e.endpoint, other.endpoint}, Prefix: newPrefix()})
	calls.Error(t, "Open", err, grant.ErrOptions, e.endpoint, other.endpoint, "two different clusters")
	if err == nil {
		_ = s.Close()
	}
}

// TestTooOld: members of a version that may lose writes are no store.
func TestTooOld(t *testing.T) {
	for version, old := range map[string]bool{
		"3.4.20": true, "3.5.4": true, "3.5.5": false, "3.5.21": false, "3.10.0": false, "4.0.0": false, "": false,
	} {
		err := tooOld([]member{{err: errors.New("down")}, {status: &clientv3.StatusResponse{Version: version}}})
		if errors.Is(err, grant.ErrUnfit) != old || (err != nil) != old {
			t.Errorf("version %s: %v, want ErrUnfit: %v", version, err, old)
		}
	}
}
