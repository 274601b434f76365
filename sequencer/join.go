package sequencer

import (
	"cmp"
	"context"
	"fmt"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// setWanted tells the Keeper whether a node ID is wanted, and waits until it
// knows. The context ends only the wait.
func (q *SequencerOf[I]) setWanted(ctx context.Context, wanted bool) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return firn.ErrClosed
	}
	q.wanted = wanted
	if wanted { // under the lock, so that the Keeper gets concurrent calls in this order
		_ = q.keeper.Join(canceledContext)
	} else {
		_ = q.keeper.Leave(canceledContext)
	}
	q.mu.Unlock()
	return q.keeper.Demand(ctx) // the Keeper knows what came before
}

// Join acquires a node ID, so that IDs can be made, and waits until it has
// one. If none is free, the error matches grant.ErrNodesExhausted, unless
// Options.WaitForNode is set. If the process has already joined, Join does
// nothing. The context only ends the wait: the process keeps trying to acquire
// a node ID until Leave.
func (q *SequencerOf[I]) Join(ctx context.Context) error {
	// Even if a node ID is held: the Keeper may be giving it back because of a
	// recently abandoned Leave.
	if err := q.setWanted(ctx, true); err != nil {
		return q.gaveUpError(err)
	}
	var refusal error
	err := q.keeper.Wait(ctx, func(s grant.Status) bool {
		if s.Phase == grant.Holding {
			s = grant.Status{Phase: s.Phase} // renewals may fail
		}
		refusal = q.refusal(s)
		return refusal != nil || s.Phase == grant.Holding
	})
	if err == nil {
		return refusal
	}
	if ended := ctx.Err(); ended != nil {
		err = ended // gaveUpError adds the rest
	}
	return q.gaveUpError(err)
}

// Leave gives the node ID back and waits until the store has recorded that. No
// IDs are made until Join. If the context ends first, Leave returns an error,
// and the node ID is given back when the store answers. If the store fails 20
// times, or went back to an earlier state, Leave returns an error, and the node
// ID becomes free when its window ends. A concurrent Join also ends the wait.
func (q *SequencerOf[I]) Leave(ctx context.Context) error {
	err := q.setWanted(ctx, false)
	if err == nil {
		var notGivenBack error
		err = q.keeper.Wait(ctx, func(s grant.Status) bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			if s.Phase == grant.Idle {
				notGivenBack = s.Err
			}
			return s.Phase == grant.Idle || q.wanted
		})
		err = cmp.Or(err, notGivenBack)
	}
	switch {
	case err == nil:
		return nil
	case q.isClosed():
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	case isDiagnosis(err):
		return fmt.Errorf("sequencer %s: the node ID was not given back and becomes free when its window ends: %w",
			q.name, err)
	}
	return unlessCancelled(fmt.Errorf("sequencer %s: the node ID has not been given back yet and becomes free at the "+
		"latest when its window ends: %w", q.name, err), err)
}
