package client

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/firnid/firn"
)

// A Client gets IDs from servers. It is safe for concurrent use by multiple
// goroutines and must be made by New. A program needs only one.
type Client struct {
	config     Config // with defaults filled in
	set        serverSet
	transports []*http.Transport // made by this package

	mu            sync.Mutex
	closed        bool
	sequencers    map[string]*Sequencer
	sequencers128 map[string]*SequencerOf[firn.ID128]
}

// New returns a Client. It does not connect, so the servers may start later.
// The error lists everything that is wrong with c.
func New(c Config) (*Client, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	client := &Client{
		config:        c,
		sequencers:    make(map[string]*Sequencer),
		sequencers128: make(map[string]*SequencerOf[firn.ID128]),
	}
	shared := http.Client{}
	if c.HTTPClient != nil {
		shared = *c.HTTPClient
	} else {
		t := newTransport(c.TLS, (&net.Dialer{Timeout: c.Timeout}).DialContext)
		shared.Transport = t
		client.transports = append(client.transports, t)
	}
	shared.CheckRedirect = noRedirect
	for _, text := range c.Servers {
		a, _ := parseAddress(text) // setDefaults has parsed it
		s := server{name: text, base: a.base, http: &shared}
		if a.resp != "" {
			s.pool = newPool(&client.config, a)
		}
		if a.socket != "" {
			t := newTransport(nil, func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", a.socket)
			})
			s.http = &http.Client{Transport: t, CheckRedirect: noRedirect}
			client.transports = append(client.transports, t)
		}
		client.set.servers = append(client.set.servers, s)
	}
	client.set.timeout = c.Timeout
	client.set.health = make([]health, len(client.set.servers))
	return client, nil
}

// Sequencer returns the sequencer with this name, which must have IDs of 64
// bits. Each name has one Sequencer, so that all callers share its fetched IDs.
// No server is contacted before the first ID is requested, and only then is an
// invalid name reported.
func (c *Client) Sequencer(name string) *Sequencer {
	return sequencerOf(c, c.sequencers, name)
}

// Sequencer128 is like Sequencer, for IDs of 128 bits.
func (c *Client) Sequencer128(name string) *SequencerOf[firn.ID128] {
	return sequencerOf(c, c.sequencers128, name)
}

// ServerErrors returns, in the order of Config.Servers, why calls do not wait
// for a server while another one works, or nil if they do. A server that failed
// for only one sequencer is still used for others.
func (c *Client) ServerErrors() []error {
	s := &c.set
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]error, len(s.servers))
	for i, h := range s.health {
		all[i] = h.err
	}
	return all
}

// Close closes all sequencers and idle connections. It waits until work in
// progress ends, which is soon, or until ctx is done. After it has returned
// nil, no goroutine is left except those of connections that are just closing.
// Close may be called more than once.
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

	var first error
	for _, closeOne := range closers {
		err := closeOne(ctx)
		first = cmp.Or(first, err)
	}
	for _, s := range c.set.servers {
		if s.pool != nil {
			s.pool.close()
		}
	}
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
	return first
}
