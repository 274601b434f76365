package etcdstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// patience is how long a test waits for what must happen eventually. It ends
// only a test that hangs: no test may pass or fail by the speed of a machine.
const patience = 10 * time.Minute

// etcdBinary is built once, by scripts/etcd.sh.
var etcdBinary = sync.OnceValues(func() (string, error) {
	script := filepath.Join("..", "scripts", "etcd.sh")
	if _, err := os.Stat(script); err != nil {
		return "", fmt.Errorf("the module stands alone, without scripts/etcd.sh: %w", err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("sh", script)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/etcd.sh: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
})

// An etcd is one process with one member.
type etcd struct {
	endpoint string // with its scheme
	tls      *tls.Config
	stop     func() // kills it
}

// startEtcd starts an etcd that ends with the test. With certificates it uses
// TLS and requires client certificates.
func startEtcd(t testing.TB, certs *certificates, args ...string) *etcd {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts an etcd")
	}
	binary, err := etcdBinary()
	if err != nil {
		t.Skipf("no etcd to test with: %v", err)
	}
	scheme := "http"
	e := new(etcd)
	if certs != nil {
		scheme, e.tls = "https", certs.client
		args = append(args, "--cert-file", certs.serverCert, "--key-file", certs.serverKey, "--client-cert-auth", "--trusted-ca-file", certs.ca)
	}
	for range 5 { // another process may take a port in between
		e.endpoint = scheme + "://" + freeAddress(t)
		log := e.start(t, binary, args...)
		if log == "" {
			return e
		}
		t.Logf("etcd does not start: %s", log)
	}
	t.Fatal("etcd does not start")
	return nil
}

// start starts an etcd, without data, at the endpoint. It returns the output of
// etcd if it does not start.
func (e *etcd) start(t testing.TB, binary string, args ...string) (log string) {
	peer := "http://" + freeAddress(t)
	var out bytes.Buffer
	cmd := exec.Command(binary, append([]string{
		"--name", "one", "--data-dir", t.TempDir(), "--log-level", "error",
		"--listen-client-urls", e.endpoint, "--advertise-client-urls", e.endpoint,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "one=" + peer,
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { _ = cmd.Wait(); close(gone) }()
	e.stop = func() { _ = cmd.Process.Kill(); <-gone }
	if !e.ready(t, gone) {
		e.stop()
		return out.String() + " "
	}
	t.Cleanup(e.stop)
	return ""
}

// ready waits until etcd answers, and returns false if it ends first.
func (e *etcd) ready(t testing.TB, gone <-chan struct{}) bool {
	c := e.client(t, "", "")
	defer func() { _ = c.Close() }()
	for begin := time.Now(); time.Since(begin) < patience; {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := c.Get(ctx, "ready")
		cancel()
		if err == nil {
			return true
		}
		select {
		case <-gone:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}

func (e *etcd) client(t testing.TB, user, password string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{e.endpoint}, TLS: e.tls, Username: user, Password: password,
		DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// open opens a store, and closes it at the end of the test.
func open(t testing.TB, o Options) *store {
	t.Helper()
	s, err := openStore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shared is an etcd for all tests that do not need their own. The first test
// that uses it starts it, and TestMain ends it.
var shared struct {
	sync.Mutex
	*etcd
	end func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.end != nil {
		shared.end()
	}
	os.Exit(code)
}

// A lastingTB is a testing.TB whose directories and cleanups last longer than
// the test.
type lastingTB struct {
	testing.TB
	cleanups []func()
}

func (l *lastingTB) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

func (l *lastingTB) TempDir() string {
	dir, err := os.MkdirTemp("", "firn-etcdstore")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (l *lastingTB) end() {
	for _, cleanup := range slices.Backward(l.cleanups) {
		cleanup()
	}
}

func sharedEtcd(t testing.TB) *etcd {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.etcd == nil {
		l := &lastingTB{TB: t}
		shared.etcd = startEtcd(l, nil)
		shared.end = l.end
	}
	return shared.etcd
}

var prefixes atomic.Int64

// newPrefix returns an unused prefix.
func newPrefix() string { return fmt.Sprintf("test/%d", prefixes.Add(1)) }

// A proxy stands between a store and etcd.
type proxy struct {
	address string
	mute    atomic.Bool  // answers are lost
	asked   atomic.Int64 // bytes of requests passed on while mute

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

func startProxy(t testing.TB, endpoint string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), conns: make(map[net.Conn]bool)}
	_, target, _ := strings.Cut(endpoint, "://")
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", target)
			if err != nil {
				_ = c.Close()
				continue
			}
			if !p.add(c, s) {
				return
			}
			wg.Go(func() { p.pass(s, c, false) })
			wg.Go(func() { p.pass(c, s, true) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut(true)
		wg.Wait()
	})
	return p
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close()
		}
		p.conns[c] = true
	}
	return !p.closed
}

// cut closes all connections and, if forGood is set, future ones.
func (p *proxy) cut(forGood bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || forGood
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) pass(to, from net.Conn, answers bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if n > 0 {
			switch {
			case answers && p.mute.Load():
				continue
			case p.mute.Load():
				p.asked.Add(int64(n))
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
