package sequencer

import (
	"context"
	"errors"
	"fmt"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// inform informs the Keeper whether a node ID is wanted, and waits until it
// knows. The context ends only the wait.
func (q *SequencerOf[I]) inform(ctx context.Context, wanted bool) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return firn.ErrClosed
	}
	q.wanted = wanted
	if wanted { // under the lock, so that the Keeper gets concurrent calls in this order
		_ = q.keeper.Join(ended)
	} else {
		_ = q.keeper.Leave(ended)
	}
	q.mu.Unlock()
	return q.keeper.Demand(ctx) // the Keeper knows what came before
}

// gaveUp returns the error of a call whose context is done.
func (q *SequencerOf[I]) gaveUp(err error) error {
	if q.isClosed() {
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	}
	switch status, _ := q.keeper.Status(); {
	case status.Err == nil:
		return fmt.Errorf("sequencer %s: %w", q.name, err)
	case saysWhy(status.Err):
		return fmt.Errorf("sequencer %s: %w: %w", q.name, err, status.Err)
	default:
		return fmt.Errorf("%w: sequencer %s: %w: %w", ErrUnavailable, q.name, err, status.Err)
	}
}

// saysWhy reports whether err describes a state of the store or the clock, as
// opposed to a failure of the store.
func saysWhy(err error) bool {
	_, clock := errors.AsType[*firn.ClockError](err)
	return clock || grant.IsFinal(err) || errors.Is(err, grant.ErrClockAhead) || errors.Is(err, grant.ErrNodesExhausted)
}

// refused returns why waiting for a window does not help, or nil.
func (q *SequencerOf[I]) refused(status grant.Status) error {
	q.mu.Lock()
	closed, wanted, unusable := q.closed, q.wanted, q.unusable
	q.mu.Unlock()
	switch {
	case closed:
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	case !wanted:
		return fmt.Errorf("%w: %s", ErrNotJoined, q.name)
	case status.Err == nil:
		return unusable
	case errors.Is(status.Err, grant.ErrNodesExhausted) && !q.patient, grant.IsFinal(status.Err):
		return status.Err
	}
	return nil
}

// Join acquires a node ID, so that IDs can be made, and waits until it has
// one. If none is free, the error is grant.ErrNodesExhausted, unless
// Options.WaitForNode is set. If the process has already joined, Join does
// nothing. The context only ends the wait: the process keeps trying to acquire
// a node ID until Leave.
func (q *SequencerOf[I]) Join(ctx context.Context) error {
	// Even if a node ID is held: the Keeper may be giving it back because of a
	// recently abandoned Leave.
	if err := q.inform(ctx, true); err != nil {
		return q.gaveUp(err)
	}
	var refused error
	err := q.keeper.Wait(ctx, func(s grant.Status) bool {
		if s.Phase == grant.Holding {
			s = grant.Status{Phase: s.Phase} // renewals may fail
		}
		refused = q.refused(s)
		return refused != nil || s.Phase == grant.Holding
	})
	if err == nil {
		return refused
	}
	if ended := ctx.Err(); ended != nil {
		err = ended // gaveUp adds the rest
	}
	return q.gaveUp(err)
}

// Leave gives the node ID back and waits until the store has recorded that. No
// IDs are made until Join. If the context ends first, Leave returns an
// error, and the node ID is given back when the store answers. If the store
// fails 20 times, or went back to an earlier state, Leave returns an error,
// and the node ID becomes free when its window ends. A concurrent Join also
// ends the wait.
func (q *SequencerOf[I]) Leave(ctx context.Context) error {
	err := q.inform(ctx, false)
	if err == nil {
		var kept error
		err = q.keeper.Wait(ctx, func(s grant.Status) bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			if s.Phase == grant.Idle {
				kept = s.Err
			}
			return s.Phase == grant.Idle || q.wanted
		})
		if err == nil {
			err = kept
		}
	}
	switch {
	case err == nil:
		return nil
	case q.isClosed():
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	case saysWhy(err):
		return fmt.Errorf("sequencer %s: the node ID was not given back and becomes free when its window ends: %w",
			q.name, err)
	}
	return fmt.Errorf("%w: sequencer %s: the node ID has not been given back yet and becomes free at the latest "+
		"when its window ends: %w", ErrUnavailable, q.name, err)
}

// Close gives the node ID back and closes the sequencer. If the context ends
// first, Close closes the sequencer anyway and returns an error; the node ID
// then becomes free when its window ends. Calling Close again has no effect.
func (q *SequencerOf[I]) Close(ctx context.Context) error {
	needContext(ctx) // the Keeper may not need it
	q.mu.Lock()
	q.closed, q.wanted = true, false
	q.mu.Unlock()
	return q.keeper.Close(ctx)
}
