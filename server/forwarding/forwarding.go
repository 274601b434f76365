// Package forwarding lets a server that holds no node ID answer all the same: it asks
// one that does. Call that one the peer.
//
// Where a peer is comes from a record in the store, and addresses are reused. So each
// call says which server is meant, and proves which store the caller uses; a Receiver
// refuses the others. The caller then checks in its own store that the IDs lie in a
// window of the owner that made them. docs/protocol.md has the argument.
//
// The caller's rights are checked by the server that it has asked. A call is forwarded
// once: the server that gets it answers it or fails.
package forwarding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/httpapi"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/rpcapi"
)

// A Backend is a Cluster whose sequencers are asked of other servers where this one has
// no node ID for them. It must be made by New, and is safe for use by many goroutines
// at once.
type Backend struct {
	*httpapi.Cluster
	f       *rpcapi.Forwarder
	self    *members.Announcer
	log     *slog.Logger
	peers   *peers
	windows *windows
	counts  counts
	some    atomic.Bool  // there was an absence
	warned  atomic.Int64 // when the log was last told that a peer does not help, in nanoseconds of Unix
	helped  atomic.Int64 // when a call was last answered, if none has failed since; 0 if one has

	mu   sync.Mutex // guards what follows
	away map[string]absence
}

// An absence is a sequencer that this server had no node ID for.
type absence struct {
	layout firn.Layout
	until  time.Time // when it is tried again
	err    error
}

const (
	retry   = 2 * time.Second // how long it is not tried to have a node ID
	mostOut = 10_000          // names that are remembered
)

// New makes a Backend over a Cluster of this configuration, whose Wrap and Elsewhere it
// sets. self announces this server in the store.
func New(c httpapi.ClusterConfig, f *rpcapi.Forwarder, self *members.Announcer) *Backend {
	b := &Backend{f: f, self: self, log: c.Config.Logger, away: make(map[string]absence)}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	c.Wrap, c.Elsewhere = b.orElsewhere, b.canHelp
	b.Cluster = httpapi.NewCluster(c)
	b.peers = newPeers(b.Members, self.ID())
	b.windows = newWindows(c.Store, b.Lookup)
	return b
}

// Forwards is how often another server was asked, by result.
func (b *Backend) Forwards() map[string]uint64 { return b.counts.all() }

// Forwarded is how many calls other servers have answered.
func (b *Backend) Forwarded() uint64 { return b.counts[gave].Load() }

// Sequencer returns the sequencer of a name: this server's, or that of another one.
func (b *Backend) Sequencer(ctx context.Context, name string) (httpapi.Sequencer, error) {
	here := rpcapi.Forwarded(ctx)
	if !here && b.some.Load() {
		b.mu.Lock()
		a, ok := b.away[name]
		b.mu.Unlock()
		if ok && time.Now().Before(a.until) {
			return b.elsewhere(name, a), nil
		}
	}
	s, err := b.Cluster.Sequencer(ctx, name)
	if err == nil || here || !errors.Is(err, grant.ErrNodesExhausted) {
		return s, err
	}
	info, lookup := b.Lookup(ctx, name)
	if lookup != nil {
		return s, err
	}
	a := absence{info.Config.Layout, time.Now().Add(retry), err}
	name = strings.Clone(name)
	b.mu.Lock()
	if len(b.away) >= mostOut {
		clear(b.away)
	}
	b.away[name] = a
	b.mu.Unlock()
	b.some.Store(true)
	return b.elsewhere(name, a), nil
}

// elsewhere is a sequencer that only others have.
func (b *Backend) elsewhere(name string, a absence) httpapi.Sequencer {
	if a.layout.Bits() == 128 {
		return httpapi.Sequencer{Layout: a.layout, Source128: source128{b, name, a}}
	}
	return httpapi.Sequencer{Layout: a.layout, Source: source{b, name, a}}
}

type source struct {
	b    *Backend
	name string
	a    absence
}

func (s source) NextBatch(ctx context.Context, n int) (firn.Batch, error) {
	return ask(ctx, s.b, s.name, s.a, n, s.b.f.Forward, s.a.layout.Decompose)
}

type source128 source

func (s source128) NextBatch(ctx context.Context, n int) (firn.Batch128, error) {
	return ask(ctx, s.b, s.name, s.a, n, s.b.f.Forward128, s.a.layout.Decompose128)
}

// orElsewhere is a sequencer of this server's that others have too, should it lose its
// node ID. It is this server's alone for calls that another one has forwarded.
func (b *Backend) orElsewhere(name string, s httpapi.Sequencer) httpapi.Sequencer {
	a := absence{layout: s.Layout}
	if s.Source != nil {
		s.Source = both[firn.ID]{s.Source, func(err error) firn.Source { a := a; a.err = err; return source{b, name, a} }}
	}
	if s.Source128 != nil {
		s.Source128 = both[firn.ID128]{s.Source128, func(err error) firn.Source128 { a := a; a.err = err; return source128{b, name, a} }}
	}
	return s
}

type both[I firn.AnyID[I]] struct {
	here  firn.SourceOf[I]
	there func(error) firn.SourceOf[I]
}

func (s both[I]) NextBatch(ctx context.Context, n int) (firn.BatchOf[I], error) {
	batch, err := s.here.NextBatch(ctx, n)
	if errors.Is(err, grant.ErrNodesExhausted) && !rpcapi.Forwarded(ctx) {
		return s.there(err).NextBatch(ctx, n)
	}
	return batch, err
}

// TryNext is that of this server, for one ID that is free.
func (s both[I]) TryNext() (I, error) {
	return s.here.(interface{ TryNext() (I, error) }).TryNext()
}

// A call asks so many servers, until so many have answered that they cannot help. Of those that
// hold more node IDs than they can list, any may be the one that can.
const (
	mostAsked    = 16
	mostAnswered = 3
)

// ask asks servers that may have a node ID, one after the other, until one answers.
func ask[I firn.AnyID[I]](ctx context.Context, b *Backend, name string, a absence, n int, forward forwardFunc[I], decompose func(I) (firn.Parts, error)) (batch firn.BatchOf[I], err error) {
	if ctx.Err() != nil {
		return batch, ctx.Err() // it was only seen whether there is one without waiting
	}
	proof, err := b.self.Proof(ctx)
	switch {
	case ctx.Err() != nil:
		return batch, ctx.Err()
	case err != nil:
		b.counts.add(unlisted)
		return batch, b.gaveUp(a, []result{unlisted})
	}
	list, err := b.peers.forCall(ctx, name)
	if err != nil {
		b.counts.add(failed)
		b.helped.Store(0)
		return batch, err
	}
	var results []result
	asked, answered := 0, 0
	for _, p := range list {
		if p.shunned != gave {
			results = append(results, p.shunned)
			continue
		}
		if asked == mostAsked || answered == mostAnswered {
			break
		}
		asked++
		batch, err := hop(ctx, b, p.Member, proof, name, a.layout, n, forward, decompose)
		r := resultOf(ctx, err)
		b.counts.add(r)
		switch {
		case r == gave:
			b.helped.Store(time.Now().UnixNano())
			return batch, nil
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return batch, b.gaveUp(a, append(results, slow))
		case !r.ofPeer():
			b.helped.Store(0)
			return batch, err
		case !errors.Is(err, errHasty):
			b.peers.shun(p.ID, name, r)
		}
		b.warn(name, p.Address, r, err)
		results = append(results, r)
		if r != unreachable && r != slow && !isFull(p.Member) {
			answered++
		}
	}
	if len(results) == 0 {
		b.counts.add(none)
		results = []result{none}
	}
	return batch, b.gaveUp(a, results)
}

// A forwardFunc is rpcapi.Forwarder.Forward, for one size of IDs.
type forwardFunc[I firn.AnyID[I]] = func(context.Context, rpcapi.Target, members.Proof, string, firn.Layout, int) (rpcapi.AnswerOf[I], error)

// hop asks one server.
func hop[I firn.AnyID[I]](ctx context.Context, b *Backend, m members.Member, p members.Proof, name string, l firn.Layout, n int, forward forwardFunc[I], decompose func(I) (firn.Parts, error)) (batch firn.BatchOf[I], err error) {
	most := patience(ctx, l, n)
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	sent := time.Now()
	answer, err := forward(limited, rpcapi.Target{Member: m.ID, Address: m.Address, TLS: m.TLS}, p, name, l, n)
	if err != nil {
		switch {
		case ctx.Err() != nil || limited.Err() == nil && !errors.Is(err, context.DeadlineExceeded):
		case most < time.Second:
			err = errHasty
		default:
			err = fmt.Errorf("%w: it had %v", errSlow, most.Round(time.Millisecond))
		}
		return batch, err
	}
	made, err := spanOf(answer.Batch, decompose)
	if err == nil {
		err = b.windows.check(ctx, name, l, answer.Owner, made, sent, time.Now())
	}
	if err != nil {
		return batch, err
	}
	return answer.Batch, nil
}

// errSlow means that a server did not answer in the time that one may take. It may hang, or
// have many calls for this one sequencer. It matches rpcapi.ErrUnreachable.
var errSlow = fmt.Errorf("%w in time", rpcapi.ErrUnreachable)

// errHasty means that a server did not answer in so little time that nothing is known
// against it. It matches rpcapi.ErrUnreachable.
var errHasty = fmt.Errorf("%w in the little time that the client has left", rpcapi.ErrUnreachable)

// patience is how long one server may take, so that others can be asked: three seconds, or
// half of what is left if that is less, and twice the time in which the layout has so
// many IDs.
func patience(ctx context.Context, l firn.Layout, n int) time.Duration {
	d := 3 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline)/2)
	}
	return d + time.Duration(2*float64(n)/l.IDsPerSecond()*float64(time.Second))
}

// gaveUp is the error of a call that no other server has answered: what this server lacks,
// and why none could help.
func (b *Backend) gaveUp(a absence, results []result) error {
	b.helped.Store(0)
	return fmt.Errorf("%w; %s", a.err, summary(results))
}

// warnEvery is how often the log is told that others do not help, at most.
const warnEvery = 10 * time.Second

func (b *Backend) warn(name, address string, r result, err error) {
	now, last := time.Now().UnixNano(), b.warned.Load()
	if r == exhausted || now-last < int64(warnEvery) || !b.warned.CompareAndSwap(last, now) {
		return
	}
	with := []any{"sequencer", name, "server", address, "result", r.String(), "error", err}
	if hint := resultTable[r].hint; hint != "" {
		with = append(with, "hint", hint)
	}
	b.log.Warn("this server has no node ID, and another server that was asked cannot help", with...)
}

// helpedLately is how long a call that another server has answered says that it can be
// asked: longer than servers take to write what they hold.
const helpedLately = 15 * time.Second

// canHelp reports whether another server of the store can be asked for IDs of a sequencer.
// One can if the last call was answered, and not long ago, or if one says where it is and
// that it holds a node ID, or more than it can list, and has not failed lately.
func (b *Backend) canHelp(ctx context.Context, name string) bool {
	if at := b.helped.Load(); at != 0 && time.Since(time.Unix(0, at)) < helpedLately {
		return true
	}
	list, err := b.peers.forCall(ctx, name)
	if err != nil {
		return false
	}
	for _, p := range list {
		if p.shunned == gave && (isFull(p.Member) || lists(p.Member, name)) {
			return true
		}
	}
	return false
}
