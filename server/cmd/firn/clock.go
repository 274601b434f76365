package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// An allowClock says which clock differences do not prevent acquiring a node
// ID.
type allowClock struct{ behind, ahead bool }

// clockVars adds --allow-clock-behind and --allow-clock-ahead.
func clockVars(cmd *cobra.Command, behind, ahead *bool) {
	cmd.Flags().BoolVar(behind, "allow-clock-behind", false, "acquire a node ID even if this clock is more than 10s behind other members'")
	cmd.Flags().BoolVar(ahead, "allow-clock-ahead", false, "acquire a node ID even if this clock is more than 10s ahead of the store's or other members'")
}

// clockMost is how far the clock may differ from the store's.
const clockMost = 10 * time.Second

// anyClockHint says what to do if a command refuses the clock.
const anyClockHint = "check the clock (date -u); if it is right, override this with --any-clock"

// checkClock refuses this machine's clock if it differs from the store's. A
// store that does not report its time agrees with every clock.
func (a *app) checkClock(ctx context.Context, s grant.Store, most time.Duration) error {
	if by, now := a.storeLead(ctx, s); by.Abs() > most {
		return failed(anyClockHint, "this machine's clock is %s the store's (%s, not %s)", aheadOf(by), textfmt.Stamp(now), textfmt.Stamp(now.Add(-by)))
	}
	return nil
}

// aheadOf formats how far a clock is ahead of another, or behind it.
func aheadOf(by time.Duration) string {
	if by < 0 {
		return fmt.Sprintf("%v behind", -by)
	}
	return fmt.Sprintf("%v ahead of", by)
}

// storeLead returns how far this machine's clock is ahead of the store's, at
// least; negative if it is behind. It is 0 if the clocks may agree or the store
// does not report its time.
func (a *app) storeLead(ctx context.Context, s grant.Store) (by time.Duration, now time.Time) {
	c, ok := grant.As[grant.Clock](s)
	if !ok {
		return 0, a.now()
	}
	before := a.now()
	told, resolution, err := c.Time(ctx)
	now = a.now()
	if err != nil {
		return 0, now
	}
	ahead, behind := before.Sub(told.Add(resolution)), told.Sub(now)
	switch {
	case ahead > 0:
		by = ahead
	case behind > 0:
		by = -behind
	}
	return by.Round(time.Millisecond), now
}
