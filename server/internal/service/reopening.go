package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

// A reopener takes the IDs of a sequencer of a Cluster. If the sequencer was
// closed to make room for another one, it is opened again. If it was purged and
// created again with another layout, the error is returned, and the next call
// for the name opens it with the new layout.
type reopener struct {
	m    *maker
	c    *Cluster
	name string
	e    *entry
}

// A member is a sequencer.Sequencer or a sequencer.Sequencer128.
type member[I firn.AnyID[I]] interface {
	firn.SourceOf[I]
	Config() grant.Config
	Attach(context.Context) error
	Close(context.Context) error
	Stats() sequencer.Stats
	Status() grant.Status
}

// setOpened sets the fields of e for an opened sequencer.
func setOpened[I firn.AnyID[I]](c *Cluster, name string, e *entry, q member[I]) {
	e.attach, e.close, e.stats, e.status = q.Attach, q.Close, q.Stats, q.Status
	s := &Sequencer{Layout: q.Config().Layout, Prefix: q.Config().Prefix, Veil: veilOf(c.c.Veil, name, q.Config().Layout)}
	r := &reopener{m: makerOf(&s.Layout, q), c: c, name: name, e: e}
	s.try, s.wait = r.try, r.wait
	e.q = s
}

// try takes IDs that are available without waiting.
func (r *reopener) try(n int) (Batch, error) {
	b, err := r.m.try(n)
	return b, r.seen(err)
}

// wait waits after a refusal, for a silent store only as long as that makes
// sense, and asks other servers if this one has lost its node ID.
func (r *reopener) wait(ctx context.Context, n int, refusal error) (b Batch, err error) {
	err = refusal
	if isWait(refusal) {
		err = r.c.patience.during(ctx, need{writes: true, over: r.e.lapsed}, func(ctx context.Context) error {
			b, err = r.m.wait(ctx, n, refusal)
			return r.seen(err)
		})
	}
	if errors.Is(err, sequencer.ErrClosed) {
		return r.reopened(ctx, n, err)
	}
	if peers := r.c.c.Peers; peers != nil && errors.Is(err, grant.ErrNodesExhausted) && !Forwarded(ctx) {
		return peers.Take(ctx, r.name, r.e.q.Layout, n, err)
	}
	return b, err
}

// reopened takes IDs from the sequencer that replaced that of r, if there is
// one. closed is the error of r.
func (r *reopener) reopened(ctx context.Context, n int, closed error) (b Batch, err error) {
	q, err := r.c.Sequencer(ctx, r.name, nil)
	switch {
	case err != nil:
		return b, err
	case q == r.e.q:
		return b, closed
	case q.Layout != r.e.q.Layout:
		return b, fmt.Errorf("%w: sequencer %s has layout %s now, not %s", grant.ErrMismatch, r.name, q.Layout, r.e.q.Layout)
	}
	return q.Take(ctx, n)
}

// seen returns the error of a call, and retires a sequencer that was created
// again.
func (r *reopener) seen(err error) error {
	if errors.Is(err, grant.ErrMismatch) {
		r.c.retire(r.name, r.e)
	}
	return err
}

// lapsed reports whether no window is open.
func (e *entry) lapsed() bool {
	s := e.status()
	return s.Phase != grant.Holding && s.Phase != grant.Losing || !s.Until.After(time.Now())
}

// reattachMost is how long reattach waits. After that, callers who want an ID
// get the error.
const reattachMost = 2 * time.Second

// reattach makes an open sequencer without a node ID read its configuration
// again, after it was created again or attached. Otherwise the next call would
// be answered from an outdated state. Detach and Destroy need nothing alike: the
// store notifies members of them (grant.Observe).
func (c *Cluster) reattach(ctx context.Context, name string) {
	e := c.openEntry(name)
	if e == nil || !e.lapsed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reattachMost)
	defer cancel()
	if err := e.attach(ctx); errors.Is(err, grant.ErrMismatch) {
		c.retire(name, e) // it has another layout now
	}
}
