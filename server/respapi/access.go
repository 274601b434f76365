package respapi

import (
	"crypto/tls"
	"net"

	"github.com/firnid/firn/server/service"
)

// An Authenticator knows who may use a server. It must be safe for use by many
// goroutines at once, and compare secrets in constant time.
type Authenticator interface {
	// Authenticate returns what whoever knows the secret may do, or false. The
	// user is "default" where a client gives a secret only.
	Authenticate(user, secret string) (Access, bool)
}

// An Access is what a client may do. It is asked for every command, so it can
// change while a connection lasts. It must be safe for use by many goroutines at
// once.
type Access interface {
	Known() bool                  // it still counts; else the client is as one that has not said who it is
	MayGenerate(name string) bool // IDs of the sequencer of this name; false where it is not Known
	MayRead() bool                // what IDs say: INSPECT
	MaySee() bool                 // how the server is: all of INFO
}

// everything is the access of all clients where nothing has to be known.
type everything struct{}

func (everything) Known() bool             { return true }
func (everything) MayGenerate(string) bool { return true }
func (everything) MayRead() bool           { return true }
func (everything) MaySee() bool            { return true }

// defaultUser is who a client is that gives no name, as in Redis.
const defaultUser = "default"

// firstAccess is what a client may do before it says who it is, or nil.
func (s *Server) firstAccess(nc net.Conn) Access {
	if s.c.PeerAccess != nil {
		if state := s.c.TLSState(nc); state != nil {
			if access, ok := s.c.PeerAccess(*state); ok {
				return access
			}
		}
	} else if s.c.Auth == nil {
		return everything{}
	}
	return nil
}

// isKnown reports whether the client has said who it is, and still is that.
func (c *conn) isKnown() bool { return c.access != nil && c.access.Known() }

// deny answers a command for IDs of a sequencer that the client may not have.
func (c *conn) deny(name string) {
	if !c.access.Known() {
		c.fail(service.Unauthorized.RESP(), authRequired)
		return
	}
	c.fail(service.Forbidden.RESP(), "this client may not make IDs of sequencer "+name)
}

const authRequired = "Authentication required."

// tlsState is Config.TLSState where it is nil.
func tlsState(nc net.Conn) *tls.ConnectionState {
	if secure, ok := nc.(*tls.Conn); ok {
		state := secure.ConnectionState()
		return &state
	}
	return nil
}

// login answers AUTH, and what HELLO has of it, and reports whether it was right.
func (c *conn) login(user, secret []byte) bool {
	if c.s.c.Auth == nil {
		if c.s.c.PeerAccess == nil {
			c.fail(codeErr, "Client sent AUTH, but no password is set: this server asks for none, leave it out")
		} else {
			c.fail(codeErr, "Client sent AUTH, but no password is set: this server knows clients by their TLS certificates")
		}
		return false
	}
	access, ok := c.s.c.Auth.Authenticate(string(user), string(secret))
	if !ok {
		// Who was known before stays so, as in Redis.
		c.fail("WRONGPASS", "invalid username-password pair or user is disabled: give the token of this server's configuration as the password")
		return false
	}
	c.access = access
	return true
}
