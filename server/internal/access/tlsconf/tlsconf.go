// Package tlsconf builds the server's TLS configuration from files that may
// change while it runs.
package tlsconf

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/firnid/firn/server/internal/access/readfile"
)

// Files are the paths of PEM files.
type Files struct {
	Cert string // the server's certificate, followed by intermediate ones
	Key  string

	// ClientCA has the authorities of client certificates. Empty means that
	// clients need no certificate, and that certificates are ignored.
	ClientCA string

	// Require refuses clients without a certificate. It requires ClientCA.
	Require bool
}

// IsZero reports whether there are no files, and so no TLS.
func (f Files) IsZero() bool { return f == Files{} }

// A Loader is a TLS configuration that can be reloaded when its files have
// changed. It must be made by Load, and is safe for concurrent use.
type Loader struct {
	files   Files
	warn    func(string)
	content *readfile.Content[*state]
}

// A state is the contents of the files.
type state struct {
	server  *tls.Config
	chain   []*x509.Certificate // of the server, from its own
	clients []*x509.Certificate // the authorities of clients
}

// Check returns an error if a file is missing that the others need.
func (f Files) Check() error {
	switch {
	case f.Cert == "" || f.Key == "":
		return errors.New("TLS needs both a certificate and its key: one of them is missing")
	case f.Require && f.ClientCA == "":
		return errors.New("requiring client certificates needs the authorities that sign them (client-ca)")
	}
	return nil
}

// Load reads the files. It calls warn, now and at each change, with a sentence
// about anything usable but dangerous; warn may be nil.
func Load(f Files, warn func(string)) (*Loader, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	content, err := readfile.Open(f.parse, f.Cert, f.Key, f.ClientCA)
	if err != nil {
		return nil, err
	}
	l := &Loader{f, warn, content}
	l.warnOf()
	return l, nil
}

// Client returns the configuration for connections to other servers, whose
// certificates must be signed by the authorities in ClientCA, or without these
// by one that the system trusts. Each connection uses the authorities and the
// certificate that were read last.
func (l *Loader) Client() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// VerifyConnection does what is skipped here, with the current
		// authorities.
		InsecureSkipVerify: true,
		VerifyConnection: func(c tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: l.content.Get().server.ClientCAs, DNSName: c.ServerName,
				Intermediates: x509.NewCertPool()}
			for _, between := range c.PeerCertificates[1:] {
				o.Intermediates.AddCert(between)
			}
			_, err := c.PeerCertificates[0].Verify(o)
			if err != nil {
				return fmt.Errorf("%w: other servers need a certificate signed by --client-ca, or without it by an authority that "+
					"the system trusts",
					&tls.CertificateVerificationError{UnverifiedCertificates: c.PeerCertificates, Err: err})
			}
			return nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &l.content.Get().server.Certificates[0], nil
		},
	}
}

// Expiry returns when the certificate that was read last expires.
func (l *Loader) Expiry() time.Time { return l.content.Get().chain[0].NotAfter }

// Trusts reports whether an authority is trusted to sign client certificates at
// the time now: also one that was renewed with its name and key, whose clients
// could connect again.
func (l *Loader) Trusts(authority *x509.Certificate, now time.Time) bool {
	return slices.ContainsFunc(l.content.Get().clients, func(c *x509.Certificate) bool {
		return bytes.Equal(c.RawSubject, authority.RawSubject) && !now.Before(c.NotBefore) && !now.After(c.NotAfter) &&
			bytes.Equal(c.RawSubjectPublicKeyInfo, authority.RawSubjectPublicKeyInfo)
	})
}

// Requires reports whether clients without a certificate are refused.
func (l *Loader) Requires() bool { return l.files.Require }

// warnBefore is how long before its end a certificate should be replaced.
const warnBefore = 14 * 24 * time.Hour

// A Finding is a sentence about a file, which is Wrong if it is usable but
// dangerous.
type Finding struct {
	Text  string
	Wrong bool
}

// Judge judges the files that were read last, by the time now.
func (l *Loader) Judge(now time.Time) (all []Finding) {
	// Windows has no file modes.
	if info, err := os.Stat(l.files.Key); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		all = append(all, Finding{fmt.Sprintf("%s is readable by other users (mode %04o): run chmod 640", l.files.Key,
			info.Mode().Perm()), true})
	}
	s := l.content.Get()
	for _, c := range s.chain {
		all = append(all, judge(l.files.Cert, c, "clients reject it", now))
	}
	for _, c := range s.clients {
		all = append(all, judge(l.files.ClientCA, c, "its clients are refused", now))
	}
	return all
}

// judge judges a certificate. Outside its time, it has an effect.
func judge(file string, c *x509.Certificate, effect string, now time.Time) Finding {
	from, until := c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339)
	text := fmt.Sprintf("%s: the certificate of %q ", file, c.Subject)
	switch {
	case now.Before(c.NotBefore):
		return Finding{text + fmt.Sprintf("is not valid before %s: %s until then", from, effect), true}
	case now.After(c.NotAfter):
		return Finding{text + fmt.Sprintf("expired at %s: %s", until, effect), true}
	case c.NotAfter.Sub(now) < warnBefore:
		return Finding{text + "expires soon, at " + until, true}
	}
	return Finding{text + fmt.Sprintf("is valid from %s until %s", from, until), false}
}

// warnOf warns of what is usable but dangerous.
func (l *Loader) warnOf() {
	if l.warn == nil {
		return
	}
	for _, f := range l.Judge(time.Now()) {
		if f.Wrong {
			l.warn(f.Text)
		}
	}
}

// Reload reads the files again, as readfile.Content does. New connections use
// the new files; for existing ones, see Trusts.
func (l *Loader) Reload() (changed bool, err error) {
	changed, err = l.content.Reload()
	if changed && err == nil {
		l.warnOf()
	}
	return changed, err
}

// parse parses the texts of the certificate, its key, and the authorities.
func (f Files) parse(texts [][]byte) (*state, error) {
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	s := &state{server: c}
	for i, der := range pair.Certificate {
		one, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d: %w", f.Cert, i+1, err)
		}
		s.chain = append(s.chain, one)
	}
	if f.ClientCA != "" {
		if s.clients, err = authorities(f.ClientCA, texts[2]); err != nil {
			return nil, err
		}
		c.ClientCAs = poolOf(s.clients)
		c.ClientAuth = tls.VerifyClientCertIfGiven
		if f.Require {
			c.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return s, nil
}

func poolOf(all []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range all {
		pool.AddCert(c)
	}
	return pool
}

// authorities parses a PEM file of certificates. Unlike AppendCertsFromPEM it
// does not skip a broken one: otherwise the clients of that authority would be
// refused without an explanation.
func authorities(path string, text []byte) (all []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s: unexpected %s: the file may contain only certificates of authorities", path, block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d: %w", path, len(all)+1, err)
		}
		all = append(all, c)
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s: no certificate found", path)
	case bytes.Contains(text, []byte("-----BEGIN")):
		return nil, fmt.Errorf("%s: certificate %d is incomplete", path, len(all)+1)
	}
	return all, nil
}

// maxProtocols is how many protocols a client may offer. It can name one in two
// bytes, and each costs 40 until the handshake has ended.
const maxProtocols = 32

// Config returns the configuration for a listener. Each connection uses the
// files that were read last. HTTP/1.1 is negotiated if the client offers it,
// HTTP/2, which is gRPC here, if the client offers only that. A client that
// offers nothing, such as one of RESP, gets neither.
//
// A resumed session is checked against the current authorities; see
// TestResumeAfterReload.
func (l *Loader) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			c := l.content.Get().server.Clone()
			switch {
			case len(hello.SupportedProtos) > maxProtocols:
				return nil, fmt.Errorf("the client offers %d protocols: the limit is %d", len(hello.SupportedProtos), maxProtocols)
			case slices.Contains(hello.SupportedProtos, "http/1.1"):
				c.NextProtos = []string{"http/1.1"}
			case slices.Contains(hello.SupportedProtos, "h2"):
				c.NextProtos = []string{"h2"}
			}
			return c, nil
		},
	}
}
