package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

func newNodeFence(a *app) *cobra.Command {
	var longest time.Duration
	var restored time.Time
	m := &applyCmd{verb: "fence", participle: "fenced", skew: grant.MaxSkew}
	cmd := m.command(a, func(ctx context.Context, s grant.Store, name string) (bool, error) {
		r, err := grant.Fence(ctx, s, name, &grant.FenceOptions{DryRun: !m.apply, Skew: m.skew, LongestWindow: longest,
			Restored: restored, AnyClock: m.anyClock, Now: a.now})
		switch {
		case errors.Is(err, grant.ErrUnsure):
			err = misuse(fmt.Sprintf("add --longest-window: --longest-window %v if that never changed. If it was created "+
				"before the restore, add --restored TIME with the time of the restore", r.LongestWindow), "%w", err)
		case errors.Is(err, grant.ErrClockBehind), errors.Is(err, grant.ErrClockAhead):
			err = failed(anyClockHint, "%w", err)
		}
		if m.apply {
			a.audit(ctx, s, "fence", name, err)
		}
		var info grant.Info
		if err == nil {
			info, err = grant.Lookup(ctx, s, name)
		}
		if err != nil {
			return false, err
		}
		a.printFence(info, r, longest > 0, m)
		return len(r.Damaged) == 0, nil
	})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case cmd.Flags().Changed("longest-window") && longest <= 0:
			return misuse("give the longest window that the sequencer ever had, such as 60s",
				"--longest-window %v: it must be more than 0", longest)
		case m.skew <= 0:
			return misuse("", "--skew %v: it must be more than 0", m.skew)
		case restored.After(a.now().Add(m.skew)):
			return misuse("", "--restored %s is in the future", textfmt.Stamp(restored))
		}
		return nil
	}
	cmd.Flags().DurationVar(&longest, "longest-window", 0, "longest window that the sequencer ever had")
	timeVar(cmd, a, &restored, "restored", "earliest time at which the store was restored")
	cmd.Flags().DurationVar(&m.skew, "skew", m.skew, "how far members' clocks may differ")
	return cmd
}

func (a *app) printFence(i grant.Info, r grant.FenceReport, given bool, m *applyCmd) {
	if m.asJSON {
		a.printJSON(map[string]any{
			"sequencer": i.Name, "applied": m.apply, "floor": textfmt.Stamp(r.Floor), "records": r.Records,
			"held":    len(r.Nodes),
			"damaged": len(r.Damaged), "longest_window": r.LongestWindow.String(), "unsure": r.Unsure != "",
		})
		return
	}
	var t rows
	t.add("sequencer", "%s", i.Name)
	t.add("nodes",
		"%v, as known to this store; if that was changed since the backup, first run firn sequencer nodes %s LO..HI",
		i.Config.Nodes, i.Name)
	if i.MovedTo == "" {
		t.add("moved",
			"not known to this store; if it was moved since the backup, first run firn sequencer detach %s", i.Name)
	} else {
		t.add("moved", "to %s; if it was moved back since the backup, first move it again", i.MovedTo)
	}
	t.add("records", "%d, %d of which are held", r.Records, len(r.Nodes))
	window := fmt.Sprintf("%v, the longest known", r.LongestWindow)
	if !given { // no record shows that it was created again with a longer window
		window += " to this store; run again with --longest-window if it was ever longer"
	}
	t.add("window", "%s", window)
	wait := max(0, r.Floor.Sub(a.now())).Round(time.Second)
	t.add("floor", "%s: members wait about %v for a node ID", textfmt.Stamp(r.Floor), wait)
	if r.Unsure != "" {
		t.add("unsure", "%s: --apply needs --longest-window", r.Unsure)
	}
	t.addDamaged(r.Damaged)
	t.print(a.stdout, a.style())
}
