package stores

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
)

// isNetwork reports whether err is a network error that may go away, and not
// one of settings: an unknown host name, a refused connection, a timeout.
func isNetwork(err error) bool {
	if isTLS(err) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn)
}

// isTLS reports whether err means that the two sides do not agree on TLS.
func isTLS(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	op, ok := errors.AsType[*net.OpError](err)
	return verification || authority || name || invalid || plain || ok && op.Op == "remote error" // as in crypto/tls
}

// networkHint says what to do if a server cannot be reached. ca and cert name
// the URL parameters for TLS files.
func networkHint(err error, ca, cert string) string {
	_, dns := errors.AsType[*net.DNSError](err)
	_, op := errors.AsType[*net.OpError](err)
	switch {
	case isTLS(err):
		return fmt.Sprintf("name the authority that signed the server's certificate with %s in the URL, and a certificate for a server that requires one with %s; the certificate must be valid for the host in the URL", ca, cert)
	case dns:
		return "host not found: check its name"
	case errors.Is(err, context.DeadlineExceeded), op:
		return "check that it is running, that host and port are right, and that no firewall is in between"
	}
	return ""
}

// networkFault returns the error for a server that could not be reached, or an
// unknown error.
func networkFault(where string, err error, ca, cert string) *Error {
	e := fault(networkHint(err, ca, cert), "%s: %w", where, innermost(err))
	e.Unreachable = isNetwork(err)
	return e
}
