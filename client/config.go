package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// Config says where the servers are and how they are asked. Only Servers is
// needed; the zero value of any other field means what the field says.
type Config struct {
	// Servers are the servers' addresses: http://HOST:PORT, https://HOST:PORT,
	// each with a path where a proxy wants one, or unix:/PATH. A server listens on
	// port 3476 unless told otherwise; a URL without a port means 80 or 443.
	//
	// Each batch is asked of one of them, by chance. They must serve the same
	// sequencers, from one store or with node IDs of their own.
	Servers []string

	// Token is sent as a bearer token. Over http:// whoever is on the way can
	// read it.
	Token string

	// TokenSource gives the token for each request, where Token is empty. It must
	// be safe for use by many goroutines at once. Its error ends the call.
	TokenSource func(context.Context) (string, error)

	// TLS is for https:// servers; nil means the system's roots and no certificate
	// of one's own.
	TLS *tls.Config

	// HTTPClient sends the requests, where TLS is nil and no server is unix:. Its
	// CheckRedirect is not used, as no redirect is followed. Nil means one that
	// keeps its connections, speaks HTTP/1.1, and heeds the proxy variables of the
	// environment.
	HTTPClient *http.Client

	// Timeout is how long one request may take; 0 means 5 s. A server lets a
	// request wait for its IDs for up to 10 s, unless told otherwise: longer than
	// a batch takes, except in layouts with very few IDs a second.
	Timeout time.Duration

	// Patience is how long a request is tried for, over all servers and with the
	// pauses they ask for, before those that wait for it get an error; 0 means
	// 10 s. It ends a request that is under way. With a Patience less than 0 every
	// server is tried once, however long that takes.
	Patience time.Duration

	// Log is told when a server fails, and when it answers again; nil means that
	// nobody is.
	Log *slog.Logger

	// UserAgent is sent with each request; "" means "firn-client".
	UserAgent string

	// Prefetch says how many IDs a Sequencer holds in store and for how long; nil
	// means the defaults: 100 at first, up to 10,000 for who is fast, for up to 10
	// minutes.
	Prefetch *firn.PrefetchOptions
}

// MaxCount is how many IDs one request can have.
const MaxCount = 100_000

// fill puts the defaults in place. Its error names all faults.
func (c *Config) fill() error {
	var faults []string
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }

	if len(c.Servers) == 0 {
		fault("there are no Servers: name at least one, such as http://127.0.0.1:3476")
	}
	seen := make(map[string]bool)
	secure := false
	for _, text := range c.Servers {
		a, err := parseAddress(text)
		if err != nil {
			fault("server %q: %v", text, err)
			continue
		}
		key := a.base + a.socket
		if seen[key] {
			fault("server %q is named twice", text)
		}
		seen[key] = true
		secure = secure || a.secure
		if a.socket != "" && c.HTTPClient != nil {
			fault("server %q cannot be used with an HTTPClient: give that one a transport which dials the socket, and name the server http://localhost", text)
		}
	}
	if c.Token != "" && c.TokenSource != nil {
		fault("there are a Token and a TokenSource: leave one of them out")
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		fault("the Token has a character that no token can have, such as a space or a newline")
	}
	if c.TLS != nil && c.HTTPClient != nil {
		fault("there are TLS and an HTTPClient, which has its own: leave one of them out")
	} else if c.TLS != nil && !secure && len(seen) > 0 {
		fault("there is TLS, and no server is https://")
	}
	if c.Timeout < 0 {
		fault("the Timeout is %v: it cannot be less than 0", c.Timeout)
	}
	if p := c.Prefetch; p != nil && (p.Count < 0 || p.MaxCount < 0 || p.MaxCount > 0 && p.Count > p.MaxCount) {
		fault("Prefetch has a Count of %d and a MaxCount of %d: they cannot be less than 0, and Count not more than MaxCount", p.Count, p.MaxCount)
	}
	if faults != nil {
		return errors.New("client: " + strings.Join(faults, "; "))
	}

	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.UserAgent == "" {
		c.UserAgent = "firn-client"
	}
	return nil
}

// An address is where a server is.
type address struct {
	base   string // of URLs, without a slash at the end
	socket string // path of a Unix domain socket, or ""
	secure bool
}

// parseAddress reads one of Config.Servers.
func parseAddress(text string) (a address, err error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if rest, ok := strings.CutPrefix(path, "//"); ok {
			path = rest
			if !strings.HasPrefix(path, "/") {
				return a, errors.New("a socket has no host: write unix:/PATH")
			}
		}
		if path == "" {
			return a, errors.New("the path of the socket is missing: write unix:/PATH")
		}
		// A server answers to this Host, whoever it is open to.
		return address{base: "http://localhost", socket: path}, nil
	}
	const want = "write http://HOST:PORT, https://HOST:PORT or unix:/PATH"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return a, fmt.Errorf("it is no URL: %s", want)
	case u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "":
		return a, errors.New(want)
	case u.Hostname() == "":
		return a, fmt.Errorf("the host is missing: %s", want)
	case u.User != nil:
		return a, errors.New("a user has no place here: use Token")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return a, fmt.Errorf("there is a query or a fragment: %s", want)
	}
	base := u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/")
	return address{base: base, secure: u.Scheme == "https"}, nil
}
