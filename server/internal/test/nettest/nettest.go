// Package nettest has what tests of servers share: listeners over loopback and
// over pipes, certificates, recorded clients, and logs. It is for tests only.
package nettest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/pipes"
)

// Long skips a test that takes long, unless FIRN_ALL or FIRN_SOAK is set.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("FIRN_ALL") == "" && os.Getenv("FIRN_SOAK") == "" {
		t.Skip("it takes long: make test-all runs it, or FIRN_ALL=1")
	}
}

// Raced reports whether the race detector is on. Everything takes more memory
// with it.
func Raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Listen listens on a free port of loopback.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	return l
}

// Dial connects until the test ends.
func Dial(t testing.TB, address string) net.Conn {
	t.Helper()
	conn := must.Get(net.Dial("tcp", address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// DialGRPC connects over gRPC until the test ends.
func DialGRPC(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// FreeAddress returns a loopback address at which another process can listen.
// It is of an IP address that only this caller uses, if the system has several,
// so that nothing else takes the port before, or while that process is down.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), rand.N(256), 1+rand.N(254)))
	if err != nil {
		l = Listen(t)
	}
	defer l.Close()
	return l.Addr().String()
}

// Pipes is a listener of connections that work in a synctest bubble.
type Pipes = pipes.Listener

// NewPipes returns a listener without connections.
func NewPipes() *Pipes { return pipes.New() }

// An Authority signs certificates.
type Authority struct {
	pair tls.Certificate
	pool *x509.CertPool
}

// NewAuthority makes a new authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{pool: x509.NewCertPool()}
	a.pair = sign(t, authority(24*time.Hour), nil)
	a.pool.AddCert(a.pair.Leaf)
	return a
}

// authority is what an authority signs for itself, valid for the given time.
func authority(valid time.Duration) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(valid),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

// Renew returns another certificate of the authority, with the same name and
// key, which is valid for the given time.
func (a *Authority) Renew(t testing.TB, valid time.Duration) []byte {
	t.Helper()
	c := authority(valid)
	key := a.pair.PrivateKey.(*ecdsa.PrivateKey)
	der := must.Get(x509.CreateCertificate(crand.Reader, c, c, &key.PublicKey, key))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Pool returns a pool that trusts the authority.
func (a *Authority) Pool() *x509.CertPool { return a.pool }

// PEM returns the authority's own certificate.
func (a *Authority) PEM(t testing.TB) []byte {
	t.Helper()
	cert, _ := PEM(t, a.pair)
	return cert
}

// Issue returns a certificate for localhost and 127.0.0.1, for servers and
// clients, which is valid for the given time from now.
func (a *Authority) Issue(t testing.TB, name string, serial int64, valid time.Duration) tls.Certificate {
	t.Helper()
	return sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &a.pair)
}

// Certificate returns a certificate of a new authority, and the pool that
// trusts it.
func Certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	a := NewAuthority(t)
	return a.Issue(t, "member", 2, time.Hour), a.Pool()
}

// Certificates writes the certificate of a new authority to ca.crt, one for
// localhost to server.crt and server.key, and one for a client to client.crt
// and client.key. It returns the client's TLS configuration.
func Certificates(t testing.TB, dir string) *tls.Config {
	t.Helper()
	a := NewAuthority(t)
	files := map[string][]byte{"ca.crt": a.PEM(t)}
	config := &tls.Config{RootCAs: a.Pool(), ServerName: "localhost"}
	for i, name := range []string{"server", "client"} {
		c := a.Issue(t, name+".example", int64(i+2), 23*time.Hour)
		files[name+".crt"], files[name+".key"] = PEM(t, c)
		config.Certificates = []tls.Certificate{c}
	}
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return config
}

// PEM returns a certificate and its key in the form of files.
func PEM(t testing.TB, c tls.Certificate) (cert, key []byte) {
	t.Helper()
	der := must.Get(x509.MarshalPKCS8PrivateKey(c.PrivateKey))(t)
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// sign makes a certificate and its key; without a parent it is self-signed.
func sign(t testing.TB, c *x509.Certificate, parent *tls.Certificate) tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), crand.Reader))(t)
	by, signer := c, any(key)
	if parent != nil {
		by, signer = parent.Leaf, parent.PrivateKey
	}
	der := must.Get(x509.CreateCertificate(crand.Reader, c, by, &key.PublicKey, signer))(t)
	leaf := must.Get(x509.ParseCertificate(der))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
