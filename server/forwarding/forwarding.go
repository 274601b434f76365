// Package forwarding lets a server without a node ID answer by asking a server
// that has one, called the peer.
//
// The address of a peer comes from a record in the store, and addresses are
// reused. So each call says which server is meant and proves which store the
// caller uses; a Receiver refuses other calls. The caller then checks in its
// own store that the IDs lie in a window of the owner that made them.
// docs/protocol.md has the argument.
//
// The server that a client calls authorizes the client. A call is forwarded
// once: the server that receives it answers it or fails.
package forwarding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/service"
)

// Peers are the other servers of a store, over gRPC. They must be made by New,
// and are safe for concurrent use.
type Peers struct {
	f       *Forwarder
	self    *members.Announcer
	log     *slog.Logger
	peers   *peers
	windows *windows
	counts  counts
	warned  atomic.Int64 // Unix nanoseconds of the last warning that a peer cannot help
	helped  atomic.Int64 // when a call was last answered; 0 if one has failed since
}

var _ service.Peers = (*Peers)(nil)

// New makes the Peers of the server that self announces, in the store of a
// Fleet. Calls go through f. A nil log discards messages.
func New(fleet *service.Fleet, f *Forwarder, self *members.Announcer, log *slog.Logger) *Peers {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &Peers{
		f: f, self: self, log: log,
		peers: newPeers(fleet.Members, self.ID()), windows: newWindows(fleet.Store(), fleet.Lookup),
	}
}

// Forwards returns how often other servers were asked, by result.
func (b *Peers) Forwards() map[string]uint64 { return b.counts.all() }

// Forwarded returns how many calls other servers have answered.
func (b *Peers) Forwarded() uint64 { return b.counts[gave].Load() }

// NextBatch takes 64-bit IDs from another server.
func (b *Peers) NextBatch(ctx context.Context, name string, l firn.Layout, n int, lacks error) (firn.Batch, error) {
	return ask(ctx, b, name, l, n, lacks, b.f.Forward, l.Decompose)
}

// NextBatch128 takes 128-bit IDs from another server.
func (b *Peers) NextBatch128(ctx context.Context, name string, l firn.Layout, n int, lacks error) (firn.Batch128, error) {
	return ask(ctx, b, name, l, n, lacks, b.f.Forward128, l.Decompose128)
}

// How many servers a call asks, and after how many answers that they cannot
// help it gives up. Any server that holds more node IDs than it can list may be
// the one that can help.
const (
	mostAsked    = 16
	mostAnswered = 3
)

// ask asks servers that may have a node ID one by one, until one answers.
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

// A forwardFunc is Forwarder.Forward for one ID size.
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
			err = fmt.Errorf("%w: the limit was %v", errSlow, most.Round(time.Millisecond))
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

// errSlow means that a server did not answer within its time. It may hang, or
// have many calls for this one sequencer. It matches ErrUnreachable.
var errSlow = fmt.Errorf("%w in time", ErrUnreachable)

// errHasty means that a server had so little time to answer that the failure
// says nothing about it. It matches ErrUnreachable.
var errHasty = fmt.Errorf("%w in the short time that the client has left", ErrUnreachable)

// patience returns how long one server may take, so that others can be asked:
// three seconds, or half of the remaining time if that is less, plus twice the
// time that the layout needs for so many IDs.
func patience(ctx context.Context, l firn.Layout, n int) time.Duration {
	d := 3 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline)/2)
	}
	return d + time.Duration(2*float64(n)/l.IDsPerSecond()*float64(time.Second))
}

// gaveUp returns the error of a call that no other server has answered: why
// this server has no node ID, and why no other server could help.
func (b *Peers) gaveUp(lacks error, results []result) error {
	b.helped.Store(0)
	return fmt.Errorf("%w; %s", lacks, summary(results))
}

// warnEvery is the minimum time between warnings that other servers cannot
// help.
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
	b.log.Warn("no node ID, and another server cannot help", with...)
}

// helpedLately is how long an answer of another server shows that it can be
// asked: longer than servers take to announce what they hold.
const helpedLately = 15 * time.Second

// CanHelp reports whether another server of the store can be asked for IDs of a
// sequencer: either the last call was answered recently, or a server announces
// its address and a node ID of the sequencer, or more node IDs than it can
// list, and has not failed recently.
func (b *Peers) CanHelp(ctx context.Context, name string) bool {
	if at := b.helped.Load(); at != 0 && time.Since(time.Unix(0, at)) < helpedLately {
		return true
	}
	list, err := b.peers.forCall(ctx, name)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list, func(p peer) bool { return p.shunned == gave && (isFull(p.Member) || lists(p.Member, name)) })
}
