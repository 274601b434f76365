package dirstore

import (
	"context"
	"time"

	"github.com/firnid/firn/grant"
)

var _ grant.Clock = (*Store)(nil)

// Time returns the clock of this machine, which all processes that share the
// directory use. So it differs from a member's clock only if the member was
// given one of its own (sequencer.Config.Now). It cannot reveal that the
// machine's clock is wrong, because members would compare it with itself.
//
// It is still useful: a member that finds old records when it starts knows at
// once that its clock is the store's, and need not watch whether others renew.
func (s *Store) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	now, err = do(ctx, s, func(*call) (time.Time, error) { return time.Now().Round(0).UTC(), nil }) // without the monotonic reading
	return now, time.Nanosecond, err
}
