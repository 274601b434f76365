package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/doctor"
)

// clockVars adds --allow-clock-behind and --allow-clock-ahead.
func clockVars(cmd *cobra.Command, behind, ahead *bool) {
	cmd.Flags().BoolVar(behind, "allow-clock-behind", false,
		"acquire a node ID even if this clock is more than 10s behind other members'")
	cmd.Flags().BoolVar(ahead, "allow-clock-ahead", false,
		"acquire a node ID even if this clock is more than 10s ahead of the store's or other members'")
}

// anyClockHint says what to do if a command refuses the clock.
const anyClockHint = "check the clock (date -u); if it is right, override this with --any-clock"

// checkClock refuses this machine's clock if it differs from the store's. A
// store that does not report its time agrees with every clock.
func (a *app) checkClock(ctx context.Context, s grant.Store, most time.Duration) error {
	if by, now, _ := doctor.ClockLead(ctx, s, a.now); by.Abs() > most {
		return failed(anyClockHint, "this machine's clock is %s the store's (%s, not %s)",
			doctor.AheadOf(by), textfmt.Stamp(now), textfmt.Stamp(now.Add(-by)))
	}
	return nil
}

// checkLead refuses to wait by a clock that is ahead of the store's.
func (a *app) checkLead(ctx context.Context, s grant.Store) error {
	if by, _, _ := doctor.ClockLead(ctx, s, a.now); by > grant.MaxSkew {
		return failed("node IDs are handed over when their times have passed: compare both clocks with a time server",
			"this machine's clock is %s the store's", doctor.AheadOf(by))
	}
	return nil
}
