package service

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// Peers are the other servers of a store. A StoreBackend asks them for IDs of a
// sequencer for which it has no node ID. They must be safe for concurrent use.
type Peers interface {
	// Take takes n IDs of a sequencer with a layout. cause is why this server
	// has no node ID; the error matches it if no other server could help.
	Take(ctx context.Context, name string, l firn.Layout, n int, cause error) (Batch, error)

	// CanHelp reports whether another server can be expected to give IDs.
	CanHelp() bool
}

// HTTP headers of a forwarded request and its answer.
const (
	// ForwardedHeader marks a request that another server forwards for one of
	// its clients. Any value forbids to forward it again.
	ForwardedHeader = "Firn-Forwarded"

	// OwnerHeader is the owner of the node ID of the IDs in the answer, as in
	// the record of that node ID.
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

// failureValid is how long the server does not try to acquire a node ID after
// another server was asked for IDs.
const failureValid = 2 * time.Second

// recentFailure returns why this server had no node ID of a sequencer, while it
// does not try to acquire one.
func (b *StoreBackend) recentFailure(name string) (f failure, ok bool) {
	if b.config.Peers == nil {
		return f, false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	f = b.failed[name]
	return f, !f.config.Layout.IsZero() && time.Since(f.at) < failureValid
}

// fallBackToPeers returns a sequencer that takes IDs from other servers if err
// is that this server has no node ID of it.
func (b *StoreBackend) fallBackToPeers(ctx context.Context, name string, err error) (*Sequencer, error) {
	if b.config.Peers == nil || Forwarded(ctx) || !errors.Is(err, grant.ErrNodesExhausted) {
		return nil, err
	}
	info, lookup := b.Lookup(ctx, name)
	if lookup != nil {
		return nil, err
	}
	name = strings.Clone(name)
	f := failure{err, time.Now(), info.Config}
	b.mu.Lock()
	b.failed[name] = f
	b.mu.Unlock()
	return b.peerSequencer(name, f), nil
}

// peerSequencer returns a sequencer that takes its IDs from other servers.
func (b *StoreBackend) peerSequencer(name string, f failure) *Sequencer {
	name = strings.Clone(name)
	l := f.config.Layout
	return &Sequencer{Layout: l, Prefix: f.config.Prefix, Veil: veilOf(b.config.VeilKeys, name, l),
		try: func(int) (Batch, error) { return Batch{}, errNotTried },
		waitInLine: func(ctx context.Context, n int, _ error) (Batch, error) {
			return b.config.Peers.Take(ctx, name, l, n, f.err)
		}}
}
