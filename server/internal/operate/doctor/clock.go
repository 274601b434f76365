package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn/grant"
)

// maxOffset is the clock difference that is an error: from ten seconds on,
// members refuse node IDs.
const maxOffset = time.Second

const ntpHint = "let chrony, ntpd or systemd-timesyncd set the clock, and check that they reach their servers"

// systemClock asks the system whether its clock is synchronized.
func (r *report) systemClock() {
	synced, bound, err := clockState()
	switch {
	case err != nil:
		r.add("clock", Unknown, "", "cannot determine whether the clock is synchronized: %v", err)
	case !synced:
		r.add("clock", Fix, ntpHint, "the clock is not synchronized")
	default:
		r.add("clock", OK, "", "the clock is synchronized, to within %v", bound)
	}
}

// storeClock compares this machine's clock with the store's.
func (r *report) storeClock(ctx context.Context) {
	by, _, err := ClockLead(ctx, r.config.Store, r.config.Now)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		r.add("clock", Unknown, "", "the store does not report its time: %v", err)
	case by.Abs() > maxOffset:
		r.add("clock", Fix, ntpHint+", here and on the store's machine", "this clock is at least %s the store's",
			AheadOf(by))
	default:
		r.add("clock", OK, "", "this clock and the store's agree")
	}
}

// ClockLead returns how far the clock now is ahead of the store's, at least,
// and its time; it is negative if the clock is behind, and 0 if the two may
// agree or with an error. That matches errors.ErrUnsupported if the store does
// not report its time.
func ClockLead(ctx context.Context, s grant.Store, now func() time.Time) (by time.Duration, at time.Time, err error) {
	c, ok := grant.As[grant.Clock](s)
	if !ok {
		return 0, now(), errors.ErrUnsupported
	}
	before := now()
	told, resolution, err := c.Time(ctx)
	at = now()
	switch ahead, behind := before.Sub(told.Add(resolution)), told.Sub(at); {
	case err != nil:
	case ahead > 0:
		by = ahead
	case behind > 0:
		by = -behind
	}
	return by.Round(time.Millisecond), at, err
}

// AheadOf formats how far a clock is ahead of another, or behind it.
func AheadOf(by time.Duration) string {
	if by < 0 {
		return fmt.Sprintf("%v behind", -by)
	}
	return fmt.Sprintf("%v ahead of", by)
}

// Blocked returns the node IDs of a sequencer that a clock far ahead has
// blocked, and whether grant.Repair can give them back. It skips records that
// cannot be read.
func Blocked(ctx context.Context, s grant.Store, name string, now func() time.Time) map[uint64]bool {
	r, err := grant.Repair(ctx, s, name, &grant.RepairOptions{DryRun: true, Now: now})
	if err != nil {
		return nil
	}
	all := make(map[uint64]bool)
	for _, n := range r.Nodes {
		all[n.Node] = true
	}
	for _, n := range r.Left {
		all[n.Node] = false
	}
	return all
}
