// Package forwarding lets a server that holds no node ID answer all the same:
// it asks one that does. Call that one the peer.
//
// Where a peer is comes from a record in the store, and addresses are reused.
// So each call says which server is meant, and proves which store the caller
// uses; a Receiver refuses the others. The caller then checks in its own store
// that the IDs lie in a window of the owner that made them. docs/protocol.md
// has the argument.
//
// The caller's rights are checked by the server that it has asked. A call is
// forwarded once: the server that gets it answers it or fails.
package forwarding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/service"
)

// Peers are the other servers of a store, over gRPC. They must be made by New,
// and are safe for use by many goroutines at once.
type Peers struct {
	f       *Forwarder
	self    *members.Announcer
	log     *slog.Logger
	peers   *peers
	windows *windows
	counts  counts
	warned  atomic.Int64 // when the log was last told that a peer does not help, in nanoseconds of Unix
	helped  atomic.Int64 // when a call was last answered, if none has failed since; 0 if one has
}

var _ service.Peers = (*Peers)(nil)

// New makes the Peers of the server that self announces, in the store of a
// Fleet. Calls go through f. A nil log means that nobody is told.
func New(fleet *service.Fleet, f *Forwarder, self *members.Announcer, log *slog.Logger) *Peers {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Peers{
		f: f, self: self, log: log,
		peers: newPeers(fleet.Members, self.ID()), windows: newWindows(fleet.Store(), fleet.Lookup),
	}
}

// Forwards is how often another server was asked, by result.
func (b *Peers) Forwards() map[string]uint64 { return b.counts.all() }

// Forwarded is how many calls other servers have answered.
func (b *Peers) Forwarded() uint64 { return b.counts[gave].Load() }

// NextBatch takes IDs of 64 bits from another server.
func (b *Peers) NextBatch(ctx context.Context, name string, l firn.Layout, n int, lacks error) (firn.Batch, error) {
	return ask(ctx, b, name, l, n, lacks, b.f.Forward, l.Decompose)
}

// NextBatch128 takes IDs of 128 bits from another server.
func (b *Peers) NextBatch128(ctx context.Context, name string, l firn.Layout, n int, lacks error) (firn.Batch128, error) {
	return ask(ctx, b, name, l, n, lacks, b.f.Forward128, l.Decompose128)
}

// A call asks so many servers, until so many have answered that they cannot
// help. Of those that hold more node IDs than they can list, any may be the one
// that can.
const (
	mostAsked    = 16
	mostAnswered = 3
)

// ask asks servers that may have a node ID, one after the other, until one
// answers.
func ask[I firn.AnyID[I]](ctx context.Context, b *Peers, name string, l firn.Layout, n int, lacks error, forward forwardFunc[I], decompose func(I) (firn.Parts, error)) (batch firn.BatchOf[I], err error) {
	if ctx.Err() != nil {
		return batch, ctx.Err()
	}
	proof, err := b.self.Proof(ctx)
	switch {
	case ctx.Err() != nil:
		return batch, ctx.Err()
	case err != nil:
		b.counts.add(unlisted)
		return batch, b.gaveUp(lacks, []result{unlisted})
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
		batch, err := hop(ctx, b, p.Member, proof, name, l, n, forward, decompose)
		r := resultOf(ctx, err)
		b.counts.add(r)
		switch {
		case r == gave:
			b.helped.Store(time.Now().UnixNano())
			return batch, nil
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return batch, b.gaveUp(lacks, append(results, slow))
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
	return batch, b.gaveUp(lacks, results)
}

// A forwardFunc is Forwarder.Forward, for one size of IDs.
type forwardFunc[I firn.AnyID[I]] = func(context.Context, Target, members.Proof, string, firn.Layout, int) (AnswerOf[I], error)

// hop asks one server.
func hop[I firn.AnyID[I]](ctx context.Context, b *Peers, m members.Member, p members.Proof, name string, l firn.Layout, n int, forward forwardFunc[I], decompose func(I) (firn.Parts, error)) (batch firn.BatchOf[I], err error) {
	most := patience(ctx, l, n)
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	sent := time.Now()
	answer, err := forward(limited, Target{Member: m.ID, Address: m.Address, TLS: m.TLS}, p, name, l, n)
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

// errSlow means that a server did not answer in the time that one may take. It
// may hang, or have many calls for this one sequencer. It matches
// ErrUnreachable.
var errSlow = fmt.Errorf("%w in time", ErrUnreachable)

// errHasty means that a server did not answer in so little time that nothing is
// known against it. It matches ErrUnreachable.
var errHasty = fmt.Errorf("%w in the little time that the client has left", ErrUnreachable)

// patience is how long one server may take, so that others can be asked: three
// seconds, or half of what is left if that is less, and twice the time in which
// the layout has so many IDs.
func patience(ctx context.Context, l firn.Layout, n int) time.Duration {
	d := 3 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline)/2)
	}
	return d + time.Duration(2*float64(n)/l.IDsPerSecond()*float64(time.Second))
}

// gaveUp is the error of a call that no other server has answered: what this
// server lacks, and why none could help.
func (b *Peers) gaveUp(lacks error, results []result) error {
	b.helped.Store(0)
	return fmt.Errorf("%w; %s", lacks, summary(results))
}

// warnEvery is how often the log is told that others do not help, at most.
const warnEvery = 10 * time.Second

func (b *Peers) warn(name, address string, r result, err error) {
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

// helpedLately is how long a call that another server has answered says that it
// can be asked: longer than servers take to write what they hold.
const helpedLately = 15 * time.Second

// CanHelp reports whether another server of the store can be asked for IDs of a
// sequencer. One can if the last call was answered, and not long ago, or if one
// says where it is and that it holds a node ID, or more than it can list, and
// has not failed lately.
func (b *Peers) CanHelp(ctx context.Context, name string) bool {
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
