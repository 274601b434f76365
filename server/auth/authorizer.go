package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"time"
)

// An Action is what a client asks to do.
type Action int

// The actions. Which role may do which is Principal.May's business.
const (
	Anything Action = iota // what every client may do that is known
	Take                   // IDs of the sequencer that is named
	Create                 // the sequencer that is named, by taking IDs of it: counted, if it is allowed
	Look                   // for the sequencer that is named, in the store
	Missed                 // nothing: that one did not exist, which is counted
	Inspect                // what an ID says
	See                    // what the fleet does: of a sequencer if one is named, otherwise at all
	SeeAll                 // what it does, of every sequencer
	Change                 // the sequencer that is named
)

// Errors of an Authorizer.
var (
	ErrUnauthorized = errors.New("unknown client")
	ErrForbidden    = errors.New("permission denied: this token does not allow it")
)

// An Authorizer knows who may do what, over every protocol. It must be safe for
// use by many goroutines at once.
type Authorizer interface {
	// Allow returns nil if a client with these credentials may do something, with
	// the sequencer that is named; "" names none. Otherwise the error matches
	// ErrUnauthorized or ErrForbidden, or is a *PaceError for Create and Look.
	Allow(c *Credentials, do Action, sequencer string) error
}

// Credentials are what a client shows of who it is. Who that is is remembered
// in them, so that they are for one goroutine at a time.
type Credentials struct {
	// Token is what it has shown, and Given whether it has shown any: then its
	// certificate does not count, also if the token is not known.
	Token string
	Given bool

	// TLS is the state of its connection; nil without TLS.
	TLS *tls.ConnectionState

	set *Set // that p was found in
	p   *Principal
}

// FromHeader returns the credentials of a request with these values of
// Authorization: the token is what follows Bearer. A header of another kind, or
// two of them, are an empty token, which no client has.
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

// who returns whose credentials these are. now is when, and trusted whether an
// authority still signs for clients.
func (s *Set) who(c *Credentials, now time.Time, trusted func(*x509.Certificate) bool) (*Principal, bool) {
	ofCertificate := !c.Given && c.TLS != nil && len(c.TLS.VerifiedChains) > 0
	if ofCertificate && !holds(c.TLS.VerifiedChains, now, trusted) {
		return nil, false
	}
	if c.set == s && !c.p.Ends() {
		c.p.note()
		return c.p, true
	}
	var p *Principal
	ok := false
	switch {
	case c.Given:
		if c.Token != "" {
			p, ok = s.Token(c.Token, now)
		}
	case ofCertificate:
		p, ok = s.Certificate(c.TLS.PeerCertificates[0], now)
	}
	c.set, c.p = nil, nil
	if ok {
		p.note()
		c.set, c.p = s, p
	}
	return p, ok
}

// holds reports whether a chain that was verified at the handshake is still
// valid: a connection can outlast a certificate, and the trust in its
// authority.
func holds(chains [][]*x509.Certificate, now time.Time, trusted func(*x509.Certificate) bool) bool {
	for _, chain := range chains {
		valid := len(chain) > 0 && trusted(chain[len(chain)-1])
		for _, c := range chain {
			valid = valid && !now.Before(c.NotBefore) && !now.After(c.NotAfter)
		}
		if valid {
			return true
		}
	}
	return false
}

// A Guard is the Authorizer of a server: it knows clients by the tokens and
// certificates of a file, or by certificates alone. It must be made by
// NewGuard, and is safe for use by many goroutines at once.
type Guard struct {
	set     func() *Set
	trusted func(*x509.Certificate) bool
	now     func() time.Time
	created creations
	missed  misses
}

// NewGuard makes a Guard. Set returns the principals of the moment; nil means
// that everyone with a verified certificate has the role generate. Trusted
// reports whether an authority signs for clients at the moment; nil means that
// each does that did at the handshake.
func NewGuard(set func() *Set, trusted func(*x509.Certificate) bool) *Guard {
	if set == nil {
		set = func() *Set { return anyCertificate }
	}
	if trusted == nil {
		trusted = func(*x509.Certificate) bool { return true }
	}
	return &Guard{set: set, trusted: trusted, now: time.Now}
}

var _ Authorizer = (*Guard)(nil)

// Set is the principals of the moment.
func (g *Guard) Set() *Set { return g.set() }

// Who returns whose credentials these are at a moment.
func (g *Guard) Who(c *Credentials, now time.Time) (*Principal, bool) {
	return g.set().who(c, now, g.trusted)
}

// Allow is that of an Authorizer.
func (g *Guard) Allow(c *Credentials, do Action, sequencer string) error {
	p, ok := g.Who(c, g.now())
	if !ok {
		return ErrUnauthorized
	}
	return g.allow(p, do, sequencer)
}

func (g *Guard) allow(p *Principal, do Action, sequencer string) error {
	switch {
	case do == Create && p.Role != Read && p.creates == 0:
		return errNoCreation
	case !p.May(do, sequencer):
		return ErrForbidden
	case do == Create:
		return g.created.note(p, sequencer, g.now())
	case do == Look:
		return g.missed.wait(p, g.now())
	case do == Missed:
		g.missed.note(p, g.now())
	}
	return nil
}

// As is an Authorizer of one principal that the Guard knows, whatever the
// credentials.
func (g *Guard) As(p *Principal) Authorizer { return as{g, p} }

type as struct {
	g *Guard
	p *Principal
}

func (a as) Allow(_ *Credentials, do Action, sequencer string) error {
	return a.g.allow(a.p, do, sequencer)
}
