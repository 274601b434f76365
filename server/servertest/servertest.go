// Package servertest has what tests of whole servers share. It is not for programs.
package servertest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Certificates writes a certificate for localhost and one for a client, which sign
// themselves, to server.crt, server.key, client.crt and client.key, and returns what a client
// needs.
func Certificates(t testing.TB, dir string) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	var client tls.Certificate
	for i, name := range []string{"server", "client"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name + ".example"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			NotAfter: time.Now().Add(24 * 30 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		keyDER, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
		for suffix, text := range map[string][]byte{".crt": cert, ".key": keyPEM} {
			if err := os.WriteFile(filepath.Join(dir, name+suffix), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		pool.AppendCertsFromPEM(cert)
		if client, err = tls.X509KeyPair(cert, keyPEM); err != nil {
			t.Fatal(err)
		}
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{client}}
}

// Pipes is a listener for connections in memory, which a bubble of synctest can see. It must
// be made by NewPipes.
type Pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewPipes makes Pipes.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

// Add has the server accept a connection, and waits until it has.
func (l *Pipes) Add(c net.Conn) { l.conns <- c }

// Accept returns the next connection.
func (l *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *Pipes) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is an address on loopback.
func (l *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// An Output collects what is written to it, by many goroutines at once. The zero Output is
// empty.
type Output struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

// String is what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// A recorder is a connection that keeps what is written into it.
type recorder struct {
	net.Conn
	mu   sync.Mutex
	sent bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.sent.Write(b)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// Recorded is what a real client of gRPC sends that does something. It sends some of it
// when it is answered, such as acknowledgements, so it is recorded before it is cut.
func Recorded(t testing.TB, addr string, do func(context.Context, *grpc.ClientConn) error) string {
	t.Helper()
	var r *recorder
	conn, err := grpc.NewClient("passthrough:///firn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		// Without windows of a fixed size the client sends pings too, as often as it is
		// answered; without the answers in between the server takes them for a flood.
		grpc.WithInitialWindowSize(1<<20), grpc.WithInitialConnWindowSize(1<<20),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			if r != nil {
				return nil, errors.New("a second connection")
			}
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			r = &recorder{Conn: c}
			return r, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := do(ctx, conn); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent.String()
}
