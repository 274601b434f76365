package sequencer

import (
	"errors"
	"fmt"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// Errors of sequencers, in addition to those of packages grant and firn.
var (
	// ErrNotJoined is returned after Leave until Join, and if Options.Idle is
	// set, until the first Join.
	ErrNotJoined = errors.New("sequencer: this process has not joined the sequencer")

	// ErrUnavailable means that the store did not answer in time, or refused
	// the request, for example because its disk is full. Trying again later may
	// help.
	ErrUnavailable = errors.New("sequencer: the store is unavailable")
)

// gaveUpError returns the error of a call whose context is done.
func (q *SequencerOf[I]) gaveUpError(err error) error {
	if q.isClosed() {
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	}
	switch status, _ := q.keeper.Status(); {
	case status.Err == nil:
		return fmt.Errorf("sequencer %s: no answer of the store so far: %w", q.name, err)
	case isDiagnosis(status.Err):
		return fmt.Errorf("sequencer %s: %w: %w", q.name, err, status.Err)
	default:
		return fmt.Errorf("%w: sequencer %s: %w: %w", ErrUnavailable, q.name, err, status.Err)
	}
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
