package server

import (
	"crypto/tls"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/access/readfile"
	"github.com/firnid/firn/server/internal/access/tlsconf"
)

// files are the open files of a Config.
type files struct {
	tokens  *readfile.Content[*auth.Set] // nil if everyone may do everything
	tls     *tlsconf.Loader              // nil without TLS
	forward *readfile.Content[string]    // nil if no token is sent to other servers
}

// readFiles reads the files of a Config, and logs what is dangerous in them.
func readFiles(c *Config) (f files, err error) {
	warn := func(text string) { c.Logger.Warn(text) }
	if !c.TLS.IsZero() {
		if f.tls, err = tlsconf.Load(c.TLS, warn); err != nil {
			return f, err
		}
	}
	if c.TokenFile != "" {
		if f.tokens, err = auth.Open(c.TokenFile, warn); err != nil {
			return f, err
		}
	}
	if c.ForwardTokenFile != "" {
		f.forward, err = auth.OpenToken(c.ForwardTokenFile)
	}
	return f, err
}

// guard makes the guard that authorizes callers; nil if everyone may do
// everything.
func (f *files) guard() *auth.Guard {
	var set func() *auth.Set
	switch {
	case f.tokens != nil:
		set = f.tokens.Get
	case f.tls == nil || !f.tls.Requires():
		return nil
	}
	if f.tls == nil {
		return auth.NewGuard(set, nil)
	}
	return auth.NewGuard(set, f.tls.Trusts)
}

// tlsConfig returns the TLS configuration of listeners, or nil.
func (f *files) tlsConfig() *tls.Config {
	if f.tls == nil {
		return nil
	}
	return f.tls.Config()
}
