package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// Hint says what to do about an error of a connection on whose TLS the two
// sides do not agree; waiting does not help then. It is "" for other errors. ca
// names where the file with the authority of the server is given, and cert
// where those of the client's certificate are.
func Hint(err error, ca, cert string) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		other     *tls.CertificateVerificationError
		plain     tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return fmt.Sprintf("no authority that this machine trusts has signed the server's certificate: name the file of the one that has with %s", ca)
	case errors.As(err, &name):
		return "the server's certificate is of other names: use one of them as the address, or issue a certificate with this one"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired or is not valid yet: renew it, or set this machine's clock"
	case errors.As(err, &other), errors.As(err, &invalid):
		return fmt.Sprintf("the server's certificate is not valid; %s names the file of its authority", ca)
	case errors.As(err, &plain):
		return "the server does not use TLS there"
	case isAlert(err):
		return fmt.Sprintf("the server refuses this client's certificate, or requires one: name it with %s", cert)
	}
	return ""
}

// IsMismatch reports whether err says that the two sides do not agree on TLS:
// it is not one of the network.
func IsMismatch(err error) bool { return Hint(err, "", "") != "" }

// isAlert reports whether err is a TLS alert of the other side.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" // as crypto/tls names it
}

// Dialer makes the configuration of a client. The authorities of the file ca
// sign for servers, or those of the system if it is empty; cert and key are the
// client's own, or empty.
func Dialer(ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		all, err := authorities(ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = poolOf(all)
	}
	switch {
	case cert == "" && key == "":
		return c, nil
	case cert == "" || key == "":
		return nil, errors.New("a certificate and its key are given together")
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
