// Package tlsconf makes the server's TLS from files that may change while it runs.
package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Files say where the certificates are, in PEM.
type Files struct {
	Cert string // of the server, with those between it and the authority
	Key  string

	// ClientCA has the authorities of clients' certificates. Empty means that clients
	// need none, and that those which bring one are not looked at.
	ClientCA string

	// Require refuses clients without a certificate. It needs ClientCA.
	Require bool
}

// A Loader is a TLS configuration whose files are read again when they have changed. It
// must be made by Load, and is safe for use by many goroutines at once.
type Loader struct {
	files Files
	now   atomic.Pointer[tls.Config]

	mu     sync.Mutex // guards what follows
	stamps [3]stamp
}

// A stamp is what tells that a file has changed.
type stamp struct {
	size  int64
	mtime time.Time
}

// Load reads the files. warn is told in sentences what is dangerous and can be used.
func Load(f Files, warn func(string)) (*Loader, error) {
	switch {
	case f.Cert == "" || f.Key == "":
		return nil, errors.New("TLS needs a certificate and its key: one of them is missing")
	case f.Require && f.ClientCA == "":
		return nil, errors.New("to require certificates of clients, name the authorities that sign them (client-ca)")
	}
	l := &Loader{files: f}
	l.mu.Lock()
	defer l.mu.Unlock()
	leaf, err := l.read()
	if err != nil {
		return nil, err
	}
	if warn != nil {
		if info, err := os.Stat(f.Key); err == nil && info.Mode().Perm()&0o077 != 0 {
			warn(fmt.Sprintf("%s may be read by others (mode %04o): chmod 600", f.Key, info.Mode().Perm()))
		}
		if left := time.Until(leaf.NotAfter); left < 7*24*time.Hour {
			warn(fmt.Sprintf("%s is valid until %s only", f.Cert, leaf.NotAfter.UTC().Format(time.RFC3339)))
		}
	}
	return l, nil
}

// Reload reads the files again if one has changed, and reports whether one has. New
// connections have what is new. After an error all is as it was.
func (l *Loader) Reload() (changed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stamps, err := l.look()
	if err != nil {
		return false, err
	}
	if stamps == l.stamps {
		return false, nil
	}
	_, err = l.read()
	return true, err
}

func (l *Loader) look() (stamps [3]stamp, err error) {
	for i, path := range []string{l.files.Cert, l.files.Key, l.files.ClientCA} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{info.Size(), info.ModTime()}
	}
	return stamps, nil
}

// read reads all files, and puts them to use if they are well.
func (l *Loader) read() (leaf *x509.Certificate, err error) {
	stamps, err := l.look()
	if err != nil {
		return nil, err
	}
	l.stamps = stamps // also of what is wrong, so that it is said once
	pair, err := tls.LoadX509KeyPair(l.files.Cert, l.files.Key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", l.files.Cert, l.files.Key, err)
	}
	if leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", l.files.Cert, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if l.files.ClientCA != "" {
		pem, err := os.ReadFile(l.files.ClientCA)
		if err != nil {
			return nil, err
		}
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: there is no certificate in it", l.files.ClientCA)
		}
		c.ClientAuth = tls.VerifyClientCertIfGiven
		if l.files.Require {
			c.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	l.now.Store(c)
	return leaf, nil
}

// Config is the configuration for a listener. With each connection it takes what was
// read last. HTTP/1.1 is negotiated wherever the client offers it, and HTTP/2, which is
// gRPC here, where it offers that alone; a client that offers nothing gets none, as
// those of RESP.
func (l *Loader) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			c := l.now.Load().Clone()
			switch {
			case slices.Contains(hello.SupportedProtos, "http/1.1"):
				c.NextProtos = []string{"http/1.1"}
			case slices.Contains(hello.SupportedProtos, "h2"):
				c.NextProtos = []string{"h2"}
			}
			return c, nil
		},
	}
}
