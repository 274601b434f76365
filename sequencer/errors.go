package sequencer

import (
	"context"
	"errors"
	"fmt"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// ErrNotJoined is returned after Leave until Join, and if Options.Idle is set,
// until the first Join. All other errors of sequencers are those of packages
// grant and firn.
var ErrNotJoined = errors.New("sequencer: this process has not joined the sequencer")

// gaveUpError returns the error of a call whose context is done. If the caller
// cancelled it, that alone does not mean that the store is unavailable.
func (q *SequencerOf[I]) gaveUpError(err error) error {
	if q.isClosed() {
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	}
	status, _ := q.keeper.Status()
	if status.Err == nil {
		return unlessCancelled(fmt.Errorf("sequencer %s: no answer of the store so far: %w", q.name, err), err)
	}
	return q.heldUpError(fmt.Errorf("%w: %w", err, status.Err))
}

// unlessCancelled returns err as an ErrUnavailable, unless its cause is only
// that the caller cancelled the call.
func unlessCancelled(err, cause error) error {
	if cause == context.Canceled {
		return err
	}
	return fmt.Errorf("%w: %w", firn.ErrUnavailable, err)
}

// heldUpError returns the error of a call that would have to wait, because of
// the error of a Status: only a failure of the store is an ErrUnavailable.
func (q *SequencerOf[I]) heldUpError(err error) error {
	if isDiagnosis(err) {
		return fmt.Errorf("sequencer %s: %w", q.name, err)
	}
	return fmt.Errorf("%w: sequencer %s: %w", firn.ErrUnavailable, q.name, err)
}

// isDiagnosis reports whether err describes a state of the store or the clock,
// as opposed to a failure of the store.
func isDiagnosis(err error) bool {
	_, clock := errors.AsType[*firn.ClockError](err)
	return clock || grant.IsFinal(err) || errors.Is(err, grant.ErrClockAhead) || errors.Is(err, grant.ErrNodesExhausted)
}

// isWindowOver reports whether err means that the generator's window does not
// allow the request.
func isWindowOver(err error) bool {
	return errors.Is(err, firn.ErrGrantOver) || errors.Is(err, firn.ErrSealed)
}
