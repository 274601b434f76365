package respapi

import (
	"errors"
	"net"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/service"
)

// firstWho is who a client is before it says so: that of its certificate, or
// nil for one that has to say who it is.
func (s *Server) firstWho(nc net.Conn) *auth.Credentials {
	c := &auth.Credentials{TLS: s.c.TLSState(nc)}
	if s.c.Auth != nil && s.c.Auth.Allow(c, auth.Anything, "") != nil {
		return nil
	}
	return c
}

// may returns nil if the client may do something. It is asked for every
// command, so that it ends when a token does.
func (c *conn) may(do auth.Action, name string) error {
	switch {
	case c.who == nil:
		return auth.ErrUnauthorized
	case c.s.c.Auth == nil:
		return nil
	}
	return c.s.c.Auth.Allow(c.who, do, name)
}

// deny answers a command that the client may not give.
func (c *conn) deny(err error, text string) {
	if errors.Is(err, auth.ErrForbidden) {
		c.fail(service.Forbidden.RESP(), text)
		return
	}
	c.fail(service.Unauthorized.RESP(), authRequired)
}

// denyTake answers a command for IDs of a sequencer that the client may not
// have.
func (c *conn) denyTake(err error, name string) {
	c.deny(err, "this client may not make IDs of sequencer "+name)
}

const authRequired = "Authentication required."

// login answers AUTH, and what HELLO has of it, and reports whether it was
// right. The name of the user is not looked at: a token says who it is of.
func (c *conn) login(secret []byte) bool {
	if c.s.c.Auth == nil {
		c.fail(codeErr, "Client sent AUTH, but no password is set: this server asks for none, leave it out")
		return false
	}
	who := &auth.Credentials{Token: string(secret), Given: true}
	if c.s.c.Auth.Allow(who, auth.Anything, "") != nil {
		// Who was known before stays so, as in Redis.
		c.fail("WRONGPASS", "invalid username-password pair or user is disabled: give the token of this server's configuration as the password")
		return false
	}
	c.who = who
	return true
}
