package respapi

import (
	"net"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
)

// initialCreds returns the credentials of a client before AUTH: those of its
// certificate, or nil if the client has to authenticate.
func (s *Server) initialCreds(nc net.Conn) *auth.Credentials {
	c := &auth.Credentials{TLS: listen.StateOf(nc), Address: nc.RemoteAddr().String()}
	if s.front.Allow(c, auth.Connect, "") != nil {
		return nil
	}
	return c
}

// isKnown reports whether the client is known. It is asked for every command,
// so that access ends when a token expires or is removed.
func (c *conn) isKnown() bool {
	return c.creds != nil && c.server.front.Allow(c.creds, auth.Connect, "") == nil
}

// ofCertificate reports whether a certificate identifies the client.
func (c *conn) ofCertificate() bool {
	if c.creds == nil {
		return (&auth.Credentials{TLS: listen.StateOf(c.nc)}).OfCertificate()
	}
	return c.creds.OfCertificate()
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
// A server without authentication accepts any secret, as Redis' user default
// without a password does: programs keep one in their settings.
func (c *conn) login(secret []byte) bool {
	if c.server.front.Auth == nil {
		return true
	}
	creds := &auth.Credentials{Token: string(secret), Given: true, Address: c.nc.RemoteAddr().String()}
	if c.server.front.Allow(creds, auth.Connect, "") != nil {
		// As in Redis, a client that was authenticated remains so.
		c.failAs(service.Unauthorized, "WRONGPASS", "invalid username-password pair or user is disabled: the password must "+
			"be a token from this server's token file")
		return false
	}
	c.creds = creds
	c.accept()
	return true
}

// accept records that the client is known, if it is.
func (c *conn) accept() {
	if !c.known && c.creds != nil {
		c.known = true
		listen.MarkKnown(c.nc)
	}
}
