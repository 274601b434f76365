package etcdstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

// An etcd is one process with one member.
type etcd struct {
	*proc.Process
	endpoint string // with its scheme
	tls      *tls.Config
}

// startEtcd starts an etcd that ends with the test. With certificates it uses
// TLS and requires client certificates.
func startEtcd(t testing.TB, certs *certificates, args ...string) *etcd {
	t.Helper()
	scheme := "http"
	var config *tls.Config
	if certs != nil {
		scheme, config = "https", certs.client
		args = append(args, "--cert-file", certs.cert, "--key-file", certs.key, "--client-cert-auth", "--trusted-ca-file", certs.cert)
	}
	for range 5 { // another process may take a port in between
		if e := startAt(t, scheme+"://"+proc.FreeAddress(t), config, args...); e != nil {
			return e
		}
	}
	t.Fatal("etcd does not start")
	return nil
}

// startAt starts an etcd, without data, at an endpoint. It returns nil if etcd
// does not start.
func startAt(t testing.TB, endpoint string, config *tls.Config, args ...string) *etcd {
	t.Helper()
	args = append(proc.EtcdArgs(t, t.TempDir(), endpoint), args...)
	e := &etcd{proc.Start(t, proc.Built(t, "etcd.sh"), args...), endpoint, config}
	t.Cleanup(e.Kill)
	c := e.client(t, "", "")
	defer func() { _ = c.Close() }()
	if e.Await(func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.Get(ctx, "ready")
		return err == nil
	}) {
		return e
	}
	t.Logf("etcd does not start: %s", e.Log())
	return nil
}

// client returns a client of etcd itself, which is closed at the end of the
// test.
func (e *etcd) client(t testing.TB, user, password string) *clientv3.Client {
	t.Helper()
	c := must.Get(clientv3.New(clientv3.Config{
		Endpoints: []string{e.endpoint}, TLS: e.tls, Username: user, Password: password,
		DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	}))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// open opens a store, and closes it at the end of the test.
func open(t testing.TB, o Options) *store {
	t.Helper()
	s := must.Get(Open(t.Context(), &o))(t)
	t.Cleanup(func() { must.Do(t, s.Close()) })
	return s.(*store)
}

// shared is an etcd for all tests that do not need their own.
var shared proc.Shared[*etcd]

func TestMain(m *testing.M) { shared.Main(m) }

func sharedEtcd(t testing.TB) *etcd {
	t.Helper()
	return shared.Get(t, func(t testing.TB) *etcd { return startEtcd(t, nil) })
}

var prefixes atomic.Int64

// newPrefix returns an unused prefix.
func newPrefix() string { return fmt.Sprintf("test/%d", prefixes.Add(1)) }
