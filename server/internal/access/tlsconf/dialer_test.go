package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

// TestHint: TLS disagreements have a hint, however deeply the error is wrapped,
// and network errors have none.
func TestHint(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "with --ca"},
		{x509.HostnameError{Certificate: new(x509.Certificate), Host: "x"}, "other names"},
		{x509.CertificateInvalidError{Reason: x509.Expired}, "expired"},
		{x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}, "--ca"},
		{tls.RecordHeaderError{}, "does not use TLS"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, "with --cert"},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, ""},
		{&net.DNSError{}, ""},
		{errors.New("tls"), ""},
		{nil, ""},
	} {
		err := row.err
		if err != nil {
			err = fmt.Errorf("connect: %w", err)
		}
		got := Hint(err, "--ca", "--cert")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("Hint(%v) = %q, want %q", err, got, row.want)
		}
	}
}
