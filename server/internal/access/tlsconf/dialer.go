package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/firnid/firn/server/internal/access/readfile"
)

// Hint returns what to do about a connection error if the two sides do not
// agree on TLS, which waiting does not solve; "" for other errors. ca names the
// setting for the file with the server's authority, and cert that for the
// client's certificate.
func Hint(err error, ca, cert string) string {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Sprintf("the server's certificate is not signed by an authority that this machine trusts: name the "+
			"authority's file with %s", ca)
	case errors.As(err, new(x509.HostnameError)):
		return "the server's certificate is for other names: use one of them as the address, or issue a certificate with " +
			"this name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired or is not valid yet: renew it, or correct this machine's clock"
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, &invalid):
		return fmt.Sprintf("the server's certificate is invalid; name the file of its authority with %s", ca)
	case errors.As(err, new(tls.RecordHeaderError)):
		return "the server does not use TLS there"
	case isAlert(err):
		return fmt.Sprintf("the server rejects this client's certificate, or requires one: name it with %s", cert)
	}
	return ""
}

// isAlert reports whether err is a TLS alert from the other side.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" // as in crypto/tls
}

// Dialer returns the TLS configuration of a client. The authorities in the file
// ca sign server certificates, or those of the system if it is empty; cert and
// key are the client's own, or empty.
func Dialer(ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := readfile.ReadTrusted(ca)
		if err != nil {
			return nil, err
		}
		all, err := authorities(ca, text)
		if err != nil {
			return nil, err
		}
		c.RootCAs = poolOf(all)
	}
	switch {
	case cert == "" && key == "":
		return c, nil
	case cert == "" || key == "":
		return nil, errors.New("a certificate and its key must be given together")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		if _, missing := errors.AsType[*os.PathError](err); !missing {
			err = fmt.Errorf("%s, %s: %w", cert, key, err)
		}
		return nil, err
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}
