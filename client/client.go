package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// A Client asks servers for IDs. It is safe for use by many goroutines at once,
// and must be made by New. A program needs one.
type Client struct {
	config Config // with the defaults in place
	roster roster
	idle   []interface{ CloseIdleConnections() } // transports of our own

	mu            sync.Mutex
	closed        bool
	sequencers    map[string]*Sequencer
	sequencers128 map[string]*Sequencer128
}

// New makes a Client. It does not connect: the servers may start later. Its
// error names everything that is wrong with c.
func New(c Config) (*Client, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	client := &Client{
		config:        c,
		sequencers:    make(map[string]*Sequencer),
		sequencers128: make(map[string]*Sequencer128),
	}
	shared := http.Client{}
	if c.HTTPClient != nil {
		shared = *c.HTTPClient
	} else {
		dialer := net.Dialer{Timeout: c.Timeout}
		t := newTransport(c.TLS, dialer.DialContext)
		t.Proxy = http.ProxyFromEnvironment
		shared.Transport = t
		client.idle = append(client.idle, t)
	}
	shared.CheckRedirect = noRedirect
	for _, text := range c.Servers {
		a, _ := parseAddress(text) // fill has read it
		s := server{name: text, base: a.base, http: &shared, link: newLink(&client.config, a)}
		if a.socket != "" {
			t := newTransport(nil, func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", a.socket)
			})
			s.http = &http.Client{Transport: t, CheckRedirect: noRedirect}
			client.idle = append(client.idle, t)
		}
		client.roster.servers = append(client.roster.servers, s)
	}
	client.roster.health = make([]health, len(client.roster.servers))
	return client, nil
}

// noRedirect gives redirects back as they are: a token would go along with
// them.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// newTransport makes the transport for one or more servers.
func newTransport(config *tls.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	if config != nil {
		config = config.Clone()
	}
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 10 * time.Second,
		// A fetch takes a connection of its own, and one that was closed must be
		// dialled again: keep those of several sequencers, but for less than the 2
		// minutes after which the server closes them.
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		Protocols:              &http1,
	}
}

// Sequencer returns the sequencer of this name, which must have IDs of 64 bits.
// A name always gets the same one, so that all callers share what it has
// fetched. Nothing is asked of a server before the first ID is; a name that no
// sequencer can have is an error then.
func (c *Client) Sequencer(name string) *Sequencer {
	return sequencerOf(c, c.sequencers, name)
}

// Sequencer128 is Sequencer for IDs of 128 bits.
func (c *Client) Sequencer128(name string) *Sequencer128 {
	return sequencerOf(c, c.sequencers128, name)
}

// Servers reports what is known of the servers, in the order of Config.Servers.
// Servers that have failed one sequencer alone are not left out for others.
func (c *Client) Servers() []ServerStatus { return c.roster.status() }

// Close closes all sequencers and idle connections. It waits for what is under
// way to end, which it does soon, or until ctx is done; after it has returned
// nil, no goroutine is left but those of connections that are just closing. It
// may be called more than once.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	var closers []func(context.Context) error
	for _, s := range c.sequencers {
		closers = append(closers, s.Close)
	}
	for _, s := range c.sequencers128 {
		closers = append(closers, s.Close)
	}
	c.mu.Unlock()

	for _, s := range c.roster.servers {
		if s.link != nil {
			closers = append(closers, s.link.close)
		}
	}
	var first error
	for _, closeOne := range closers {
		if err := closeOne(ctx); err != nil && first == nil {
			first = err
		}
	}
	for _, t := range c.idle {
		t.CloseIdleConnections()
	}
	return first
}
