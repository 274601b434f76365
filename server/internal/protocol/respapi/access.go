package respapi

import (
	"errors"
	"net"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
)

// initialCreds returns the credentials of a client before AUTH: those of its
// certificate, or nil if the client has to authenticate.
func (s *Server) initialCreds(nc net.Conn) *auth.Credentials {
	c := &auth.Credentials{TLS: listen.StateOf(nc), Address: nc.RemoteAddr().String()}
	if s.config.Auth != nil && s.config.Auth.Allow(c, auth.Anything, "") != nil {
		return nil
	}
	return c
}

// authorize returns nil if the client may perform an action. It is called for
// every command, so that access ends when a token expires or is removed.
func (c *conn) authorize(do auth.Action, name string) error {
	switch {
	case c.creds == nil:
		return auth.ErrUnauthorized
	case c.server.config.Auth == nil:
		return nil
	}
	return c.server.config.Auth.Allow(c.creds, do, name)
}

// deny answers a command that the client is not authorized for.
func (c *conn) deny(err error, text string) {
	if errors.Is(err, auth.ErrForbidden) {
		c.failKind(service.Forbidden, text)
		return
	}
	c.failKind(service.Unauthorized, authRequired)
}

// denyTake answers a command for IDs that the client is not authorized to take.
func (c *conn) denyTake(err error, name string) {
	c.deny(err, "permission denied: this client may not take IDs of sequencer "+name)
}

const authRequired = "Authentication required."

// auth answers AUTH.
func (c *conn) auth(args [][]byte) {
	if c.login(args[len(args)-1]) {
		c.out = appendSimple(c.out, "OK")
	}
}

// login handles AUTH, and the AUTH option of HELLO, and reports whether the
// secret was right. The user name is ignored: the token identifies the client.
func (c *conn) login(secret []byte) bool {
	if c.server.config.Auth == nil {
		c.fail("Client sent AUTH, but no password is set: this server needs no token; leave it out")
		return false
	}
	creds := &auth.Credentials{Token: string(secret), Given: true, Address: c.nc.RemoteAddr().String()}
	if c.server.config.Auth.Allow(creds, auth.Anything, "") != nil {
		// As in Redis, a client that was authenticated remains so.
		c.failAs(service.Unauthorized, "WRONGPASS", "invalid username-password pair or user is disabled: the password must be a token from this server's token file")
		return false
	}
	c.creds = creds
	c.accept()
	return true
}

// accept records that the client is known, if it is.
func (c *conn) accept() {
	if !c.familiar && c.creds != nil {
		c.familiar = true
		listen.Known(c.nc)
	}
}
