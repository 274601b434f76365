package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// wantError fails the test unless err matches want and contains each of the
// words.
func wantError(t *testing.T, what string, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want an error that is %q", what, err, want)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s = %v, want it to say %q", what, err, w)
		}
	}
	t.Logf("%s = %v", what, err)
}

func TestOptions(t *testing.T) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	for name, c := range map[string]struct {
		o     Options
		words []string
	}{
		"nothing":            {Options{}, []string{"no endpoints"}},
		"no port":            {Options{Endpoints: []string{"10.0.0.1"}}, []string{"host:port"}},
		"scheme":             {Options{Endpoints: []string{"ftp://10.0.0.1:1"}}, []string{"ftp://", "host:port"}},
		"http with TLS":      {Options{Endpoints: []string{"http://10.0.0.1:1"}, TLS: config}, []string{"all must be the same"}},
		"both":               {Options{Endpoints: []string{"http://10.0.0.1:1", "https://10.0.0.2:1"}}, []string{"all must be the same"}},
		"password alone":     {Options{Endpoints: []string{"a:1"}, Password: "x"}, []string{"set both the user and the password"}},
		"all faults at once": {Options{Prefix: "a b", Timeout: -1}, []string{"no endpoints", "prefix", "Timeout"}},
	} {
		ended, cancel := context.WithCancel(t.Context())
		cancel() // so that it connects to nothing first
		_, err := Open(ended, &c.o)
		wantError(t, "Open: "+name, err, grant.ErrOptions, c.words...)
	}
}

func TestUnreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, but does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	dead := proc.FreeAddress(t)
	_, err = Open(t.Context(), &Options{Endpoints: []string{dead}, Timeout: 500 * time.Millisecond})
	wantError(t, "Open", err, grant.ErrUnreachable, dead, "connection refused", "check that")
	_, err = Open(t.Context(), &Options{Endpoints: []string{dead}, Timeout: 500 * time.Millisecond, Username: "u", Password: "p"})
	wantError(t, "Open with a user", err, grant.ErrUnreachable, dead+": connect: connection refused")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, &Options{Endpoints: []string{silent.Addr().String()}})
	wantError(t, "Open with a context that ends", err, context.DeadlineExceeded)
}

// The first endpoint is dead; the others work, also with a user.
func TestFirstEndpointDead(t *testing.T) {
	e := sharedEtcd(t)
	s := open(t, Options{Endpoints: []string{proc.FreeAddress(t), e.endpoint}, Prefix: newPrefix()})
	for i := range 20 {
		if _, err := s.Get(t.Context(), "a"); err != nil {
			t.Errorf("Get %d = %v", i, err)
		}
		key := "k/" + string(rune('a'+i))
		if ok, err := s.CAS(t.Context(), key, nil, []byte("1")); !ok || err != nil {
			t.Errorf("CAS(%q) = %v, %v, want true", key, ok, err)
		}
	}
	if dangers, err := s.Dangers(t.Context()); err != nil || len(dangers) != 1 || !strings.Contains(dangers[0], "does not answer") {
		t.Errorf("Dangers = %q, %v, want one danger, the dead endpoint", dangers, err)
	}
}

func TestAuth(t *testing.T) {
	e := startEtcd(t, nil)
	ctx := t.Context()
	c := e.client(t, "", "")
	defer func() { _ = c.Close() }()
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(c.UserAdd(ctx, "root", "secret"))
	check(c.UserGrantRole(ctx, "root", "root"))
	check(c.RoleAdd(ctx, "firn"))
	check(c.RoleGrantPermission(ctx, "firn", "/firn/", clientv3.GetPrefixRangeEnd("/firn/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	check(c.UserAdd(ctx, "firn", "word"))
	check(c.UserGrantRole(ctx, "firn", "firn"))
	check(c.UserAdd(ctx, "nobody", "word"))
	check(c.RoleAdd(ctx, "reader"))
	check(c.RoleGrantPermission(ctx, "reader", "/firn/", clientv3.GetPrefixRangeEnd("/firn/"), clientv3.PermissionType(clientv3.PermRead)))
	check(c.UserAdd(ctx, "reader", "word"))
	check(c.UserGrantRole(ctx, "reader", "reader"))
	check(c.AuthEnable(ctx))

	o := Options{Endpoints: []string{e.endpoint}, Timeout: 3 * time.Second}
	as := func(user, password, prefix string) Options {
		o := o
		o.Username, o.Password, o.Prefix = user, password, prefix
		return o
	}
	fails := func(o Options) error {
		_, err := Open(ctx, &o)
		return err
	}
	usual := o
	o.Timeout = time.Hour // an error that waits for it exceeds the time limit of the test
	err := fails(o)
	wantError(t, "Open without a user", err, errAuth, "user name is empty")
	err = fails(as("firn", "wrong", ""))
	wantError(t, "Open with a wrong password", err, errAuth, `password of user "firn"`)
	err = fails(as("stranger", "word", ""))
	wantError(t, "Open as a stranger", err, errAuth, `user "stranger"`)
	err = fails(as("nobody", "word", ""))
	wantError(t, "Open as a user without a role", err, errAuth, "--prefix=true /firn/")
	err = fails(as("firn", "word", "elsewhere"))
	wantError(t, "Open of a prefix that the user may not read", err, errAuth, "--prefix=true /elsewhere/")
	o = usual
	dead := as("firn", "word", "")
	dead.Endpoints = []string{proc.FreeAddress(t), e.endpoint}
	for _, o := range []Options{as("firn", "word", ""), dead} {
		s := open(t, o)
		now := must.Get(s.Get(ctx, "a"))(t)
		if ok, err := s.CAS(ctx, "a", now, append(now, '1')); !ok || err != nil {
			t.Errorf("CAS = %v, %v, want true", ok, err)
		}
		if dangers, err := s.Dangers(ctx); err != nil || len(dangers) != len(o.Endpoints)-1 {
			t.Errorf("Dangers = %q, %v, want %d dangers", dangers, err, len(o.Endpoints)-1)
		}
	}
	reader := open(t, as("reader", "word", ""))
	if v, err := reader.Get(ctx, "a"); err != nil || string(v) != "11" {
		t.Errorf("Get of the reader = %q, %v, want %q", v, err, "11")
	}
	ok, err := reader.CAS(ctx, "a", []byte("11"), []byte("2"))
	if ok || !errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS of the reader = %v, %v, want grant.ErrNotSent: etcd refuses it", ok, err)
	}

	// A token that etcd has forgotten is fetched again, during the call.
	s := open(t, as("firn", "word", ""))
	root := e.client(t, "root", "secret")
	defer func() { _ = root.Close() }()
	for i := range 5 {
		check(root.UserAdd(ctx, "other"+string(rune('a'+i)), "x")) // changes the revision of the authorization
		key := "token/" + string(rune('a'+i))
		if ok, err := s.CAS(ctx, key, nil, []byte("1")); !ok || err != nil {
			t.Errorf("CAS after users have changed = %v, %v, want true", ok, err)
		}
	}
	check(root.UserChangePassword(ctx, "firn", "new")) // the tokens are invalid now
	ok, err = s.CAS(ctx, "token/z", nil, []byte("1"))
	if ok || !errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS after the password has changed = %v, %v, want grant.ErrNotSent", ok, err)
	}
	t.Logf("CAS after the password has changed = %v", err)
}

func TestTLS(t *testing.T) {
	certs := makeCertificates(t)
	e := startEtcd(t, certs)
	_, address, _ := strings.Cut(e.endpoint, "://")
	ctx := t.Context()
	for _, endpoint := range []string{address, "https://" + address} {
		s := open(t, Options{Endpoints: []string{endpoint}, TLS: certs.client})
		if _, err := s.Get(ctx, "a"); err != nil {
			t.Error(err)
		}
	}
	try := func(endpoint string, config *tls.Config, want error, words ...string) {
		t.Helper()
		_, err := Open(ctx, &Options{Endpoints: []string{endpoint}, TLS: config, Timeout: 3 * time.Second})
		wantError(t, "Open of "+endpoint, err, want, words...)
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
	wantError(t, "Open", err, grant.ErrOptions, e.endpoint, other.endpoint, "two different clusters")
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
