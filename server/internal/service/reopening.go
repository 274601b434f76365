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

// A reopeningSource is the source of a sequencer. If the sequencer was closed
// because it was idle, it is opened again. If it was purged and created again
// with another layout, the error is returned, and the next call for the name
// opens it with the new layout.
type reopeningSource[I firn.AnyID[I]] struct {
	turns turns[I]
	c     *Cluster
	name  string
	o     *opening
	ask   asking[I]
}

// A member is a sequencer.Sequencer or a sequencer.Sequencer128.
type member[I firn.AnyID[I]] interface {
	maker[I]
	Config() grant.Config
	Attach(context.Context) error
	Close(context.Context) error
	Stats() sequencer.Stats
	State() sequencer.State
}

// An asking is the method of Peers for one ID size.
type asking[I firn.AnyID[I]] func(p Peers, ctx context.Context, name string, l firn.Layout, n int, lacks error) (firn.BatchOf[I], error)

// sourceOf makes the source of an opened sequencer and sets the other fields of
// o.
func sourceOf[I firn.AnyID[I]](c *Cluster, name string, o *opening, q member[I], ask asking[I]) *reopeningSource[I] {
	o.q.Layout, o.attach, o.close, o.stats, o.state = q.Config().Layout, q.Attach, q.Close, q.Stats, q.State
	return &reopeningSource[I]{turns: turnsOf[I](q, o.q.Layout), c: c, name: name, o: o, ask: ask}
}

// NextBatch takes available IDs. Otherwise it waits, for a silent store only as
// long as that makes sense, and asks other servers if this one has lost its
// node ID.
func (r *reopeningSource[I]) NextBatch(ctx context.Context, n int) (b firn.BatchOf[I], err error) {
	if err = ctx.Err(); err == nil {
		b, err = r.TryNextBatch(n)
	}
	if err != nil && isWait(err) {
		refusal := err
		err = r.c.patience.during(ctx, need{writes: true, over: r.o.lapsed}, func(ctx context.Context) error {
			b, err = r.turns.wait(ctx, n, refusal)
			return r.seen(err)
		})
	}
	if errors.Is(err, sequencer.ErrClosed) {
		return r.reopened(ctx, n, err)
	}
	if peers := r.c.c.Peers; peers != nil && errors.Is(err, grant.ErrNodesExhausted) && !Forwarded(ctx) {
		return r.ask(peers, ctx, r.name, r.o.q.Layout, n, err)
	}
	return b, err
}

// reopened takes IDs from the sequencer that replaced that of r, if there is
// one. closed is the error of r.
func (r *reopeningSource[I]) reopened(ctx context.Context, n int, closed error) (b firn.BatchOf[I], err error) {
	q, err := r.c.Sequencer(ctx, r.name)
	if err != nil {
		return b, err
	}
	source, _ := any(q.Source).(firn.SourceOf[I])
	if q.Source128 != nil {
		source, _ = any(q.Source128).(firn.SourceOf[I])
	}
	switch {
	case source == firn.SourceOf[I](r), source == nil:
		return b, closed
	case q.Layout != r.o.q.Layout:
		return b, fmt.Errorf("%w: sequencer %s has layout %s now, not %s", grant.ErrMismatch, r.name, q.Layout, r.o.q.Layout)
	}
	return source.NextBatch(ctx, n)
}

// isWait reports whether an error of a call that does not wait means that a
// waiting call would have waited.
func isWait(err error) bool {
	return errors.Is(err, firn.ErrExhausted) || errors.Is(err, sequencer.ErrNotYet) || errors.As(err, new(*firn.ClockError)) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// TryNextBatch takes IDs that are available without waiting.
func (r *reopeningSource[I]) TryNextBatch(n int) (firn.BatchOf[I], error) {
	b, err := r.turns.TryNextBatch(n)
	return b, r.seen(err)
}

// TryNext takes one ID that is available without waiting.
func (r *reopeningSource[I]) TryNext() (I, error) {
	id, err := r.turns.TryNext()
	return id, r.seen(err)
}

// seen returns the error of a call, and retires a sequencer that was created
// again.
func (r *reopeningSource[I]) seen(err error) error {
	if errors.Is(err, grant.ErrMismatch) {
		r.c.retire(r.name, r.o)
	}
	return err
}

// lapsed reports whether no window is open.
func (o *opening) lapsed() bool {
	s := o.state()
	return s.Phase != sequencer.Attached && s.Phase != sequencer.Losing || !s.Until.After(time.Now())
}
