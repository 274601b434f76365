package listen

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// warnEvery is the minimum time between two warnings with the same text:
// clients can cause them.
const warnEvery = 10 * time.Second

// warn logs a warning, unless it has just logged the same text.
func (m *Mux) warn(text string, args ...any) {
	now := time.Now()
	m.warnMu.Lock()
	last, again := m.warned[text]
	if again = again && now.Sub(last) <= warnEvery; !again {
		m.warned[text] = now
	}
	m.warnMu.Unlock()
	if !again {
		m.config.Logger.Warn(text, args...)
	}
}

// warnOfCertificate warns if a handshake has failed because one side has
// refused the other's certificate.
func (m *Mux) warnOfCertificate(peer net.Addr, err error) {
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		subject := textfmt.Short(bad.UnverifiedCertificates[0].Subject.String())
		m.warn("client certificate refused", "peer", peer, "subject", subject, "error", err)
	}
	// Package tls does not export the numbers of alerts.
	alert, ok := errors.AsType[*net.OpError](err)
	if ok && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate") {
		m.warn("a client refuses the server's certificate", "peer", peer, "error", err)
	}
}
