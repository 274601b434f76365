package service

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// Peers are the other servers of a store. A Cluster asks them for IDs of a
// sequencer for which it has no node ID. They must be safe for concurrent use.
type Peers interface {
	// Take takes n IDs of a sequencer with a layout. lacks is the reason why this
	// server has no node ID; the error matches it if no other server could help.
	Take(ctx context.Context, name string, l firn.Layout, n int, lacks error) (Batch, error)

	// CanHelp reports whether another server can be expected to give IDs.
	CanHelp() bool
}

// HTTP headers of a forwarded request and its answer.
const (
	// ForwardedHeader marks a request that another server forwards for one of its
	// clients. Any value forbids to forward it again.
	ForwardedHeader = "Firn-Forwarded"

	// OwnerHeader is the owner of the node ID of the IDs in the answer, as in the
	// record of that node ID.
	OwnerHeader = "Firn-Owner"
)

type forwarded struct{}

// WithForwarded returns the context of a call that another server forwards for
// one of its clients. Such a call is not forwarded again, so that it cannot
// loop.
func WithForwarded(ctx context.Context) context.Context {
	return context.WithValue(ctx, forwarded{}, true)
}

// Forwarded reports whether another server forwarded the call of a context.
func Forwarded(ctx context.Context) bool { return ctx.Value(forwarded{}) != nil }

// An absence means that this server had no node ID of a sequencer.
type absence struct {
	layout firn.Layout
	prefix string
	until  time.Time // when to try again
	lacks  error
}

const (
	absentFor  = 2 * time.Second // how long the server does not try to acquire a node ID
	mostAbsent = 10_000          // names that are remembered
)

// absences has the absence of each name of a Cluster. The zero value is empty.
type absences struct {
	some atomic.Bool // there was one

	mu     sync.Mutex // guards the fields below
	byName map[string]absence
}

// of returns the absence of a name, while it lasts.
func (a *absences) of(name string) (found absence, ok bool) {
	if !a.some.Load() {
		return found, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok = a.byName[name]
	return found, ok && time.Now().Before(found.until)
}

func (a *absences) note(name string, is absence) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.byName) >= mostAbsent || a.byName == nil {
		a.byName = make(map[string]absence)
	}
	a.byName[strings.Clone(name)] = is
	a.some.Store(true)
}

// elsewhere returns a sequencer that takes IDs from other servers if err is
// that this server has no node ID of it.
func (c *Cluster) elsewhere(ctx context.Context, name string, err error) (*Sequencer, error) {
	if c.c.Peers == nil || Forwarded(ctx) || !errors.Is(err, grant.ErrNodesExhausted) {
		return nil, err
	}
	info, lookup := c.Lookup(ctx, name)
	if lookup != nil {
		return nil, err
	}
	a := absence{info.Config.Layout, info.Config.Prefix, time.Now().Add(absentFor), err}
	c.absent.note(name, a)
	return c.ofPeers(name, a), nil
}

// ofPeers returns a sequencer that takes its IDs from other servers.
func (c *Cluster) ofPeers(name string, a absence) *Sequencer {
	name = strings.Clone(name)
	return &Sequencer{Layout: a.layout, Prefix: a.prefix, Veil: veilOf(c.c.Veil, name, a.layout), wait: func(ctx context.Context, n int, _ error) (Batch, error) {
		return c.c.Peers.Take(ctx, name, a.layout, n, a.lacks)
	}}
}
