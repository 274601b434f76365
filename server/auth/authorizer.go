package auth

import (
	"crypto/tls"
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
	Inspect                // what an ID says
	See                    // what the fleet does: of a sequencer if one is named, otherwise at all
	SeeAll                 // what it does, of every sequencer
	Change                 // the sequencer that is named
)

// Errors of an Authorizer.
var (
	ErrUnauthorized = errors.New("who asks is not known")
	ErrForbidden    = errors.New("who asks may not do that")
)

// An Authorizer knows who may do what, over every protocol. It must be safe for use by
// many goroutines at once.
type Authorizer interface {
	// Allow returns nil if a client with these credentials may do something, with the
	// sequencer that is named; "" names none. Otherwise the error is ErrUnauthorized or
	// ErrForbidden.
	Allow(c *Credentials, do Action, sequencer string) error
}

// Credentials are what a client shows of who it is. Who that is is remembered in them, so
// that they are for one goroutine at a time.
type Credentials struct {
	// Token is what it has shown, and Given whether it has shown any: then its certificate
	// does not count, also if the token is not known.
	Token string
	Given bool

	// TLS is the state of its connection; nil without TLS.
	TLS *tls.ConnectionState

	set *Set // that p was found in
	p   *Principal
}

// FromHeader returns the credentials of a request with these values of Authorization: the
// token is what follows Bearer. A header of another kind, or two of them, are an empty
// token, which no client has.
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

// Who returns whose credentials these are.
func (s *Set) Who(c *Credentials, now time.Time) (*Principal, bool) {
	if c.set == s && !c.p.Ends() {
		return c.p, true
	}
	var p *Principal
	ok := false
	switch {
	case c.Given:
		if c.Token != "" {
			p, ok = s.Token(c.Token, now)
		}
	case c.TLS != nil && len(c.TLS.VerifiedChains) > 0:
		p, ok = s.Certificate(c.TLS.PeerCertificates[0], now)
	}
	c.set, c.p = nil, nil
	if ok {
		c.set, c.p = s, p
	}
	return p, ok
}

var _ Authorizer = (*File)(nil)

// Allow allows what the file says at this moment.
func (f *File) Allow(c *Credentials, do Action, sequencer string) error {
	p, ok := f.Set().Who(c, time.Now())
	switch {
	case !ok:
		return ErrUnauthorized
	case !p.May(do, sequencer):
		return ErrForbidden
	}
	return nil
}
