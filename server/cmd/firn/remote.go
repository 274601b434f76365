package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/client"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/access/tlsconf"
)

// remoteFlags say as which client a command uses a server.
type remoteFlags struct{ token, tokenFile, ca, cert, key string }

func (r *remoteFlags) vars(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.token, "token", "", "`TOKEN` that may take its IDs")
	f.StringVar(&r.tokenFile, "token-file", "", "`FILE` with the token; other users can see the arguments of a command")
	f.StringVar(&r.ca, "ca", "", "PEM `FILE` with the authority of the server's certificate (default the system's)")
	f.StringVar(&r.cert, "cert", "", "PEM `FILE` with a client certificate")
	f.StringVar(&r.key, "key", "", "PEM `FILE` with the key of --cert")
	cmd.MarkFlagsMutuallyExclusive("token", "token-file")
	cmd.MarkFlagsRequiredTogether("cert", "key")
}

// client returns the configuration of a client, with the token and the
// certificates in the files.
func (r *remoteFlags) client(servers []string) (c client.Config, err error) {
	c = client.Config{Servers: servers, Token: r.token}
	if r.tokenFile != "" {
		f, err := auth.OpenToken(r.tokenFile)
		if err != nil {
			return c, failed("the file must contain one token, as printed by firn token new", "--token-file: %w", err)
		}
		c.Token = f.Get()
	}
	if r.ca != "" || r.cert != "" {
		if !hasScheme(servers, "https", "firns") {
			return c, misuse("write --server https://HOST:PORT", "--ca, --cert and --key need a server with TLS")
		}
		if c.TLS, err = tlsconf.Dialer(r.ca, r.cert, r.key); err != nil {
			return c, failed("--ca, --cert and --key must be PEM files", "%w", err)
		}
	}
	if _, err := client.New(c); err != nil {
		return c, misuse("", "%w", err) // it says what to write
	}
	return c, nil
}

// hasScheme reports whether the URL of one of the servers has one of the
// schemes.
func hasScheme(servers []string, schemes ...string) bool {
	return slices.ContainsFunc(servers, func(server string) bool {
		scheme, _, _ := strings.Cut(strings.ToLower(server), ":")
		return slices.Contains(schemes, scheme)
	})
}

// noIDs says why servers gave no IDs of a sequencer, and what to do.
func noIDs(ctx context.Context, err error, sequencer string, servers []string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	hint := tlsconf.Hint(err, "--ca FILE", "--cert FILE and --key FILE")
	switch e, ok := errors.AsType[*client.Error](err); {
	case hint != "":
	case ok && e.Status == http.StatusUnauthorized:
		hint = "name a token that the server knows with --token-file FILE; firn token new makes one"
	case ok && e.Status == http.StatusForbidden:
		hint = "name a token that may take IDs of " + sequencer + " with --token-file FILE, or another sequencer " +
			"with --sequencer"
	case !ok || e.Kind == "": // otherwise the detail says it
		hint = "check that firn serve is running there"
		for _, scheme := range []string{"http", "firn"} {
			if hasScheme(servers, scheme) {
				hint += "; if it uses TLS, write " + scheme + "s://"
			}
		}
	}
	return failed(hint, "no IDs: %w", err)
}
