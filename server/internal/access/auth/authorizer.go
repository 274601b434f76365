package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
)

// An Action is what a client asks to do.
type Action int

// The actions. Role.May knows which role may do which.
const (
	Nothing Action = iota // what needs no authentication; no Authorizer is asked
	Connect               // as a known client, whatever its role
	Take                  // IDs of the named sequencer
	Create                // the named sequencer, by using it
	Inspect               // an ID
	See                   // the fleet, or the named sequencer
	SeeAll                // the fleet, with every sequencer
	Change                // the named sequencer
)

// Errors of an Authorizer.
var (
	ErrUnauthorized = errors.New("unknown client")
	ErrForbidden    = errors.New("permission denied: this token does not allow it")

	// ErrCertificate is ErrUnauthorized for a certificate that was valid when
	// the connection was opened.
	ErrCertificate = fmt.Errorf("%w: its certificate has expired, or its authority is not trusted any more: "+
		"connect again with a valid one", ErrUnauthorized)
)

// An Authorizer decides what a client may do, over every protocol. It must be
// safe for concurrent use.
type Authorizer interface {
	// Allow returns nil if a client with these credentials may perform an
	// action on the named sequencer; "" names no sequencer. Otherwise the error
	// matches ErrUnauthorized or ErrForbidden.
	Allow(c *Credentials, do Action, sequencer string) error
}

// Credentials are what a client presents. They cache the principal that was
// found for them, so they are for one goroutine at a time.
type Credentials struct {
	// Token is the token that the client sent, and Given whether it sent any.
	// If it did, its certificate is ignored, even if the token is unknown.
	Token string
	Given bool

	// TLS is the state of the connection; nil without TLS.
	TLS *tls.ConnectionState

	// Address is the client's network address, for the log.
	Address string

	set *Set // that p was found in
	p   *Principal
}

// Name returns the client's name in the token file, or the name of its
// certificate. It is empty without authentication, and before the credentials
// were accepted.
func (c *Credentials) Name() string {
	if c.p == nil {
		return ""
	}
	return c.p.Name
}

// Credentials returns the credentials of a known client.
func (p *Principal) Credentials(address string) *Credentials {
	return &Credentials{Address: address, p: p}
}

// FromHeader returns the credentials in the values of a request's Authorization
// header: the token follows Bearer. Another scheme, or two values, give an
// empty token, which no client has.
func FromHeader(values []string, state *tls.ConnectionState) *Credentials {
	c := &Credentials{Given: len(values) > 0, TLS: state}
	if len(values) != 1 {
		return c
	}
	if kind, token, _ := strings.Cut(values[0], " "); strings.EqualFold(kind, "Bearer") {
		c.Token = strings.Trim(token, " ")
	}
	return c
}

// OfCertificate reports whether a verified certificate identifies the client.
// It was shown at the handshake: if the client is refused, its connection must
// be closed, or a client that has a new one keeps using the old one.
func (c *Credentials) OfCertificate() bool {
	return !c.Given && c.TLS != nil && len(c.TLS.VerifiedChains) > 0
}

// principal returns the principal of the credentials at the time now. trusted
// reports whether an authority is still trusted to sign client certificates.
func (s *Set) principal(c *Credentials, now time.Time, trusted func(*x509.Certificate, time.Time) bool,
) (*Principal, bool) {
	if c.OfCertificate() && !isTrusted(c.TLS.VerifiedChains, now, trusted) {
		return nil, false
	}
	var p *Principal
	ok := false
	switch {
	case c.set == s: // found before
		p, ok = unexpired(c.p, now)
	case c.Given:
		if c.Token != "" {
			p, ok = s.Token(c.Token, now)
		}
	case c.OfCertificate():
		p, ok = s.Certificate(c.TLS.PeerCertificates[0], now)
	}
	c.set, c.p = nil, nil
	if ok {
		p.markUsed()
		c.set, c.p = s, p
	}
	return p, ok
}

// isTrusted reports whether a chain that was verified at the handshake is still
// valid: a connection can outlive a certificate, or the trust in its authority,
// which may also have been renewed since.
func isTrusted(chains [][]*x509.Certificate, now time.Time, trusted func(*x509.Certificate, time.Time) bool) bool {
	for _, chain := range chains {
		last := len(chain) - 1
		valid := last >= 0 && trusted(chain[last], now)
		for i, c := range chain {
			valid = valid && (i > 0 && i == last || isCurrent(c, now))
		}
		if valid {
			return true
		}
	}
	return false
}

func isCurrent(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && !now.After(c.NotAfter)
}

// A Guard is the Authorizer of a server. It identifies clients by the tokens
// and certificates in a file, or by certificates alone. It must be made by
// NewGuard, and is safe for concurrent use.
type Guard struct {
	set     func() *Set
	trusted func(*x509.Certificate, time.Time) bool
	now     func() time.Time
}

// NewGuard makes a Guard. set returns the current principals; nil gives the
// role generate to everyone with a verified certificate. trusted reports
// whether an authority is trusted to sign client certificates at a time; nil
// trusts all that were trusted at the handshake, until they expire.
func NewGuard(set func() *Set, trusted func(*x509.Certificate, time.Time) bool) *Guard {
	if set == nil {
		set = func() *Set { return anyCertificate }
	}
	if trusted == nil {
		trusted = isCurrent
	}
	return &Guard{set: set, trusted: trusted, now: time.Now}
}

var _ Authorizer = (*Guard)(nil)

// Set returns the current principals.
func (g *Guard) Set() *Set { return g.set() }

// Who returns the principal of the credentials at the time now.
func (g *Guard) Who(c *Credentials, now time.Time) (*Principal, bool) {
	return g.set().principal(c, now, g.trusted)
}

// Allow implements Authorizer.
func (g *Guard) Allow(c *Credentials, do Action, sequencer string) error {
	now := g.now()
	p, ok := g.Who(c, now)
	switch {
	case !ok && c.OfCertificate() && !isTrusted(c.TLS.VerifiedChains, now, g.trusted):
		return ErrCertificate
	case !ok:
		return ErrUnauthorized
	}
	return p.Allow(c, do, sequencer)
}

// errNoCreation is the error for a principal that may not create sequencers.
var errNoCreation = fmt.Errorf("%w: this token cannot create sequencers by using them; create the sequencer first "+
	"(firn sequencer create)", ErrForbidden)

// Allow implements Authorizer for a client that is known already: it ignores
// the credentials.
func (p *Principal) Allow(_ *Credentials, do Action, sequencer string) error {
	switch {
	case do == Create && p.Role.May(Create) && p.noCreate:
		return errNoCreation
	case !p.May(do, sequencer):
		return ErrForbidden
	}
	return nil
}
