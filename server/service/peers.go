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
	"github.com/firnid/firn/server/members"
)

// Peers are the other servers of a store. A Cluster asks them for IDs of a
// sequencer that it has no node ID for. They must be safe for use by many
// goroutines at once.
type Peers interface {
	// NextBatch and NextBatch128 take n IDs of a sequencer with a layout. lacks is
	// why this server has none, which the error matches if no other server has
	// helped.
	NextBatch(ctx context.Context, name string, l firn.Layout, n int, lacks error) (firn.Batch, error)
	NextBatch128(ctx context.Context, name string, l firn.Layout, n int, lacks error) (firn.Batch128, error)

	// CanHelp reports whether another server may have a node ID of a sequencer,
	// and can be asked for its IDs.
	CanHelp(ctx context.Context, name string) bool
}

// HopProtocol is the version of calls between servers. One that speaks another
// refuses them.
const HopProtocol = 2

// A Hop is what a server that forwards a call says about the two servers.
type Hop struct {
	Member string        // the server that is meant: its ID as a member
	Proof  members.Proof // of the store of the server that calls
}

// A Receiver answers hops, for the servers of one store. It must be safe for
// use by many goroutines at once.
type Receiver interface {
	// Admit returns nil if this server is the member that is meant and the proof
	// is found in its store, ErrOtherMember or members.ErrOtherStore if not, and
	// another error if the store does not answer.
	Admit(ctx context.Context, h Hop) error

	// Owner is the owner that the store's record names for this server's node ID
	// of a sequencer; "" if it holds none.
	Owner(name string) string
}

// ErrOtherMember means that a hop was meant for another server: one that had
// this one's address before, or that a proxy has in its place.
var ErrOtherMember = errors.New("this is not the server that was meant: it has another member ID")

type forwarded struct{}

// WithForwarded returns the context of a call that another server has sent for
// one of its clients. It is answered by this server or not at all, so that no
// call goes in circles.
func WithForwarded(ctx context.Context) context.Context {
	return context.WithValue(ctx, forwarded{}, true)
}

// Forwarded reports whether another server has sent the call of a context.
func Forwarded(ctx context.Context) bool { return ctx.Value(forwarded{}) != nil }

// An absence is a sequencer that this server had no node ID for.
type absence struct {
	layout firn.Layout
	until  time.Time // when it is tried again
	lacks  error
}

const (
	absentFor  = 2 * time.Second // how long it is not tried to acquire a node ID
	mostAbsent = 10_000          // names that are remembered
)

// absences are those of a Cluster, by name. Its zero value is none.
type absences struct {
	some atomic.Bool // there was one

	mu     sync.Mutex // guards what follows
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

// elsewhere returns the sequencer of a name that only others have a node ID
// for, if err is why this server has none.
func (c *Cluster) elsewhere(ctx context.Context, name string, err error) (Sequencer, error) {
	if c.c.Peers == nil || Forwarded(ctx) || !errors.Is(err, grant.ErrNodesExhausted) {
		return Sequencer{}, err
	}
	info, lookup := c.Lookup(ctx, name)
	if lookup != nil {
		return Sequencer{}, err
	}
	a := absence{info.Config.Layout, time.Now().Add(absentFor), err}
	c.absent.note(name, a)
	return c.ofPeers(name, a), nil
}

// ofPeers is a sequencer that only others have.
func (c *Cluster) ofPeers(name string, a absence) Sequencer {
	if a.layout.Bits() == 128 {
		return Sequencer{Layout: a.layout, Source128: fallbackSource[firn.ID128]{c.c.Peers.NextBatch128, strings.Clone(name), a.layout, a.lacks}}
	}
	return Sequencer{Layout: a.layout, Source: fallbackSource[firn.ID]{c.c.Peers.NextBatch, strings.Clone(name), a.layout, a.lacks}}
}

// A fallbackSource is the source of IDs of other servers.
type fallbackSource[I firn.AnyID[I]] struct {
	ask    func(ctx context.Context, name string, l firn.Layout, n int, lacks error) (firn.BatchOf[I], error)
	name   string
	layout firn.Layout
	lacks  error // why this server has none
}

func (s fallbackSource[I]) NextBatch(ctx context.Context, n int) (firn.BatchOf[I], error) {
	return s.ask(ctx, s.name, s.layout, n, s.lacks)
}
