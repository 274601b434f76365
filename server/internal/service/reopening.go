package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

// A reopener takes the IDs of a sequencer of a Cluster. If the sequencer was
// closed to make room for another one, it is opened again. If it was purged and
// created again with another layout, the error is returned, and the next call
// for the name opens it with the new layout.
type reopener struct {
	sequencer *Sequencer
	cluster   *Cluster
	name      string
	entry     *entry
}

// try takes IDs that are available without waiting.
func (r *reopener) try(n int) (Batch, error) {
	b, err := r.sequencer.try(n)
	return b, r.seen(err)
}

// wait waits after a refusal, for a silent store only as long as that makes
// sense, and asks other servers if this one has lost its node ID.
func (r *reopener) wait(ctx context.Context, n int, refusal error) (b Batch, err error) {
	err = refusal
	if isWait(refusal) {
		err = r.cluster.silence.do(ctx, need{writes: true, onlyIf: r.entry.lapsed}, func(ctx context.Context) error {
			b, err = r.sequencer.wait(ctx, n, refusal)
			return r.seen(err)
		})
	}
	if errors.Is(err, sequencer.ErrClosed) {
		return r.reopened(ctx, n, err)
	}
	if peers := r.cluster.config.Peers; peers != nil && errors.Is(err, grant.ErrNodesExhausted) && !Forwarded(ctx) {
		return peers.Take(ctx, r.name, r.entry.sequencer.Layout, n, err)
	}
	return b, err
}

// reopened takes IDs from the sequencer that replaced that of r, if there is
// one. closed is the error of r.
func (r *reopener) reopened(ctx context.Context, n int, closed error) (b Batch, err error) {
	q, err := r.cluster.Sequencer(ctx, r.name, nil)
	switch {
	case err != nil:
		return b, err
	case q == r.entry.sequencer:
		return b, closed
	case !q.Layout.SameIDs(r.entry.sequencer.Layout):
		return b, fmt.Errorf("%w: sequencer %s has layout %s now, not %s", grant.ErrMismatch, r.name, q.Layout, r.entry.sequencer.Layout)
	}
	return q.Take(ctx, n)
}

// seen returns the error of a call, and retires a sequencer that was created
// again.
func (r *reopener) seen(err error) error {
	if errors.Is(err, grant.ErrMismatch) {
		r.cluster.retire(r.name, r.entry)
	}
	return err
}

// lapsed reports whether no window is open.
func (e *entry) lapsed() bool {
	s := e.Status()
	return s.Phase != grant.Holding && s.Phase != grant.Losing || !s.Until.After(time.Now())
}

// rejoinMost is how long rejoin waits. After that, callers who want an ID
// get the error.
const rejoinMost = 2 * time.Second

// rejoin makes an open sequencer without a node ID read its configuration
// again, after it was created again or attached. Otherwise the next call would
// be answered from an outdated state. Detach and Destroy need nothing alike: the
// store notifies their Keepers (grant.Observe).
func (c *Cluster) rejoin(ctx context.Context, name string) {
	e := c.openEntry(name)
	if e == nil || !e.lapsed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rejoinMost)
	defer cancel()
	if err := e.Join(ctx); errors.Is(err, grant.ErrMismatch) {
		c.retire(name, e) // it has another layout now
	}
}
