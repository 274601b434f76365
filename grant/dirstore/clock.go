package dirstore

import (
	"context"
	"time"

	"github.com/firnid/firn/grant"
)

var _ grant.Clock = (*Store)(nil)

// Time returns the clock of this machine, which is that of all processes that
// share the directory. So it differs from a member's only where that was given
// a clock of its own (sequencer.Config.Now). It shows nothing about a machine
// whose clock is wrong: there, members compare themselves with themselves.
//
// It still serves: a member that finds old records at its start knows at once
// that its clock is the store's, and need not watch whether others renew.
func (s *Store) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	now, err = do(ctx, s, func(*call) (time.Time, error) { return time.Now().Round(0).UTC(), nil }) // without the monotonic reading
	return now, time.Nanosecond, err
}
