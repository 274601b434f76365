package etcdstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificates are issued by an authority of the test.
type certificates struct {
	ca, serverCert, serverKey string // files
	client                    *tls.Config
}

func makeCertificates(t testing.TB) *certificates {
	t.Helper()
	dir := t.TempDir()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	serial := int64(0)
	make1 := func(name string, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(err)
		serial++
		c := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		if parent == nil {
			parent, signer = c, key
			c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
		check(err)
		made, err := x509.ParseCertificate(der)
		check(err)
		keyDER, err := x509.MarshalPKCS8PrivateKey(key)
		check(err)
		return made, key,
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		check(os.WriteFile(path, data, 0o600))
		return path
	}
	ca, caKey, caPEM, _ := make1("the CA", nil, nil)
	_, _, serverPEM, serverKeyPEM := make1("etcd", ca, caKey)
	_, _, clientPEM, clientKeyPEM := make1("firn", ca, caKey)
	pair, err := tls.X509KeyPair(clientPEM, clientKeyPEM)
	check(err)
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &certificates{
		ca: write("ca.pem", caPEM), serverCert: write("server.pem", serverPEM), serverKey: write("server.key", serverKeyPEM),
		client: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
}
