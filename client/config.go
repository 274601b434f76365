package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// Config configures a Client. Only Servers is required; a zero field otherwise
// means the default given for it.
type Config struct {
	// Servers are the addresses of the servers. firn://HOST:PORT and, with TLS,
	// firns://HOST:PORT speak RESP, which costs least; the default port is
	// 3476. http://HOST:PORT and https://HOST:PORT speak HTTP, for servers
	// behind a proxy: they may have a path, and the default port is 80 or 443.
	// unix:/PATH speaks HTTP over a Unix domain socket.
	//
	// Each batch is requested from a random one of those that work. They must
	// serve the same sequencers, either from one store or with distinct node
	// IDs.
	Servers []string

	// Token authenticates the client. White space at its ends is removed.
	// Without TLS, anyone on the network path can read it.
	Token string

	// TokenSource returns the token for each request; with it, Token must be
	// empty. It must be safe for concurrent use by multiple goroutines, and
	// return soon after its context is done, because calls wait for it. Its
	// error ends the call.
	TokenSource func(context.Context) (string, error)

	// TLS is the configuration for firns:// and https:// servers; nil means the
	// system's root certificates and no client certificate.
	TLS *tls.Config

	// HTTPClient sends the requests over HTTP. It must be nil if TLS is set, a
	// server is unix:, or all of them are firn:// or firns://. Its CheckRedirect
	// is not used, because redirects are not followed. Nil means a client that
	// keeps its connections, speaks HTTP/1.1, and uses no proxy: for one, set
	// Proxy in a Transport here.
	HTTPClient *http.Client

	// Timeout is how long one request may take; 0 means 5 s. By default, a
	// server lets a request wait for its IDs for up to 10 s. That is longer
	// than a batch takes, except in layouts with very few IDs per second.
	Timeout time.Duration

	// Patience is how long a request is tried, across all servers and including
	// the pauses that they ask for, before the calls that wait for it fail; 0
	// means 10 s. It also ends a request in progress. If Patience is negative,
	// every server is tried once, however long that takes.
	Patience time.Duration

	// Logger receives a message when a server fails, and when it answers again;
	// nil discards them.
	Logger *slog.Logger

	// Prefetch configures how many IDs a Sequencer holds and for how long. Nil
	// means the defaults: 100 at first, up to 10,000 for fast callers, for up
	// to 10 minutes.
	Prefetch *firn.PrefetchOptions
}

// setDefaults fills in defaults. Its error lists all faults.
func (c *Config) setDefaults() error {
	var faults []string
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }

	if len(c.Servers) == 0 {
		fault("Servers is empty: name at least one, such as firn://127.0.0.1:3476")
	}
	seen := make(map[string]bool)
	secure, overHTTP := false, false
	for _, text := range c.Servers {
		a, err := parseAddress(text)
		if err != nil {
			fault("server %q: %v", withoutSecret(text), err)
			continue
		}
		key := a.base + a.socket + a.resp
		if seen[key] {
			fault("server %q occurs twice", text)
		}
		seen[key] = true
		secure, overHTTP = secure || a.secure, overHTTP || a.resp == ""
		if a.socket != "" && c.HTTPClient != nil {
			fault("server %q cannot be used with an HTTPClient: give the HTTPClient a transport that dials the socket, "+
				"and use the server name http://localhost", text)
		}
	}
	if c.Token != "" && c.TokenSource != nil {
		fault("both Token and TokenSource are set: omit one of them")
	}
	var err error
	if c.Token, err = checkToken(c.Token); err != nil {
		fault("%v", err)
	}
	if c.TLS != nil && c.HTTPClient != nil {
		fault("both TLS and HTTPClient, which has its own, are set: omit one of them")
	} else if c.TLS != nil && !secure && len(seen) > 0 {
		fault("TLS is set, but no server is firns:// or https://")
	}
	if c.HTTPClient != nil && !overHTTP && len(seen) > 0 {
		fault("HTTPClient is set, but no server is http:// or https://")
	}
	if c.Timeout < 0 {
		fault("the Timeout is %v: it cannot be negative", c.Timeout)
	}
	if err := c.Prefetch.Check(); err != nil {
		fault("%s", strings.TrimPrefix(err.Error(), "firn: "))
	}
	if faults != nil {
		return errors.New("client: " + strings.Join(faults, "; "))
	}

	if token := c.Token; token != "" {
		// In a function, so that a Client that is printed does not show it.
		c.Token, c.TokenSource = "", func(context.Context) (string, error) { return token, nil }
	}
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return nil
}

// checkToken returns a token without white space at its ends, such as the
// newline of a file.
func checkToken(token string) (string, error) {
	token = strings.TrimSpace(token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", errors.New("the token has a character that is not allowed, such as a space or a newline")
	}
	return token, nil
}
