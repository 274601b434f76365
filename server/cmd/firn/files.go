package main

import (
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/access/readfile"
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/veil"
)

// openedFiles are files that checkFiles has read.
type openedFiles struct {
	certificates *tlsconf.Loader
	forwardToken *readfile.Content[string]
	veilKeys     veil.Keys
}

// checkFiles reads the token and certificate files, and returns their faults.
// The server warns of what is dangerous in them.
func (s *serveCmd) checkFiles() (all faults) {
	var err error
	check := func(flag, hint string) {
		if err != nil {
			all = append(all, &exitError{code: exitFailed, err: err, hint: hint, flag: flag})
		}
	}
	if s.tls != (tlsconf.Files{}) {
		if err = s.tls.Check(); err != nil {
			all.add("tls-cert", "", "give --tls-cert and --tls-key, and --client-ca with --require-client-cert", "%w", err)
		} else {
			s.opened.certificates, err = tlsconf.Load(s.tls, nil)
			check("tls-cert", "--tls-cert, --tls-key and --client-ca must be PEM files")
		}
	}
	if s.TokenFile != "" {
		_, err = auth.Open(s.TokenFile, nil)
		check("tokens", "run firn token new to add an entry, and firn token --help for the format")
	}
	if s.ForwardTokenFile != "" {
		s.opened.forwardToken, err = auth.OpenToken(s.ForwardTokenFile)
		check("forward-token", "the file must contain one token, as printed by firn token new")
	}
	s.opened.veilKeys, err = readVeilKeys(s.veilKeys)
	check("veil-keys", "firn convert --help explains the file")
	return all
}
