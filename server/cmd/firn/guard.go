package main

import (
	"log/slog"
	"strings"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/access/tlsconf"
)

// checkFiles reads the token and certificate files, and returns their faults.
// warn gets a sentence about anything usable but dangerous; it may be nil.
func (s *serveCmd) checkFiles(warn func(string)) (all faults) {
	if s.tls != (tlsconf.Files{}) {
		if _, err := tlsconf.Load(s.tls, warn); err != nil {
			flag := "tls-cert"
			switch {
			case s.tls.Cert != "":
			case s.tls.Key != "":
				flag = "tls-key"
			case s.tls.ClientCA != "":
				flag = "client-ca"
			default:
				flag = "require-client-cert"
			}
			code, hint := exitFailed, "--tls-cert, --tls-key and --client-ca must be PEM files"
			if s.tls.Check() != nil {
				code, hint = exitMisuse, "give --tls-cert and --tls-key, and --client-ca with --require-client-cert"
			}
			all = append(all, fault{flag: flag, err: err, code: code, hint: hint})
		}
	}
	if s.tokens != "" {
		if _, err := auth.Open(s.tokens, warn); err != nil {
			all = append(all, fault{flag: "tokens", err: err, code: exitFailed, hint: "run firn token new to add an entry, and firn token --help for the format"})
		}
	}
	if _, err := auth.OpenBearer(s.forwardToken, nil); err != nil {
		all = append(all, fault{flag: "forward-token", err: err, code: exitFailed, hint: "the file must contain one token, as printed by firn token new"})
	}
	if _, err := readVeilKeys(s.veilKeys, warn); err != nil {
		all = append(all, fault{flag: "veil-keys", err: err, code: exitFailed, hint: "firn convert --help explains the file"})
	}
	return all
}

// reloadAll reloads the configuration and logs the result.
func (s *serveCmd) reloadAll(log *slog.Logger) {
	switch changed, restart, err := s.reload(); {
	case err != nil:
		log.Error("invalid configuration: keeping the previous one", "error", err)
	case changed && len(restart) > 0:
		log.Warn("configuration reloaded: templates and log.level apply now, other keys after a restart", "keys", strings.Join(restart, " "))
	case changed:
		log.Info("configuration reloaded: templates apply to sequencers that are not in use yet, log.level applies now")
	}
}
