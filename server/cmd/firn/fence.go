package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/doctor"
)

func newNodeFence(a *app) *cobra.Command {
	var longest time.Duration
	var restored time.Time
	m := &applyCmd{verb: "fence", done: "fenced", skew: clockTolerance}
	cmd := m.command(a, func(ctx context.Context, s grant.Store, name string) (bool, error) {
		o := grant.AdminOptions{DryRun: true, Skew: m.skew, LongestWindow: longest, Restored: restored,
			AnyClock: m.anyClock, Now: a.now}
		r, err := grant.Fence(ctx, s, name, &o)
		var info grant.Info
		if err == nil {
			info, err = grant.Lookup(ctx, s, name)
		}
		why := ""
		if err == nil && r.Unsure {
			why = whyUnsure(info, r)
		}
		if err == nil && m.apply {
			if why != "" {
				hint := fmt.Sprintf("add --longest-window with the longest window that it ever had: --longest-window %v if that never changed. If it was created before the restore, add --restored TIME with the time of the restore", r.LongestWindow)
				return false, misuse(hint,
					"sequencer %s was not fenced: %s; members may have had windows longer than %v", name, why, r.LongestWindow)
			}
			o.DryRun = false
			r, err = grant.Fence(ctx, s, name, &o)
			a.audit(ctx, s, "fenced", name, err)
		}
		if errors.Is(err, grant.ErrClockBehind) || errors.Is(err, grant.ErrClockAhead) {
			err = failed(anyClockHint, "%w", err)
		}
		if err != nil {
			return false, err
		}
		a.printFence(info, r, why, longest > 0, m)
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

// whyUnsure says why a fence cannot know the longest window.
func whyUnsure(i grant.Info, r grant.Report) string {
	if r.Records == 0 {
		return "no record shows how long its windows were"
	}
	return fmt.Sprintf("it was created at %s, so its configuration may be younger than the restore",
		textfmt.Stamp(i.Created))
}

func (a *app) printFence(i grant.Info, r grant.Report, why string, given bool, m *applyCmd) {
	if m.asJSON {
		a.printJSON(map[string]any{
			"sequencer": i.Name, "applied": m.apply, "floor": textfmt.Stamp(r.Floor), "records": r.Records,
			"held":    len(r.Nodes),
			"damaged": len(r.Damaged), "longest_window": r.LongestWindow.String(), "unsure": r.Unsure,
		})
		return
	}
	var t rows
	t.add("sequencer", "%s", i.Name)
	t.add("nodes",
		"%v, as known to this store; if that was changed since the backup, first run firn sequencer nodes %s LO..HI", i.Config.Nodes, i.Name)
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
	if why != "" {
		t.add("unsure", "%s: --apply needs --longest-window", why)
	}
	t.addDamaged(r.Damaged)
	t.print(a.stdout, a.style())
}

func newNodeRepair(a *app) *cobra.Command {
	m := &applyCmd{verb: "repair", done: "repaired", skew: clockTolerance}
	return m.command(a, func(ctx context.Context, s grant.Store, name string) (bool, error) {
		r, err := grant.Repair(ctx, s, name, &grant.AdminOptions{DryRun: !m.apply, Now: a.now})
		if m.apply && (err != nil || len(r.Nodes) > 0) {
			a.audit(ctx, s, "repaired", name, err)
		}
		if err != nil {
			return false, err
		}
		a.printRepair(name, r, m)
		return len(r.Left)+len(r.Damaged) == 0, nil
	})
}

// blockedJSON returns blocked node IDs for JSON. Those that can be given back have
// the span that is, and until when the rest is kept.
func blockedJSON(nodes []grant.NodeInfo) any {
	all := make([]map[string]any, len(nodes))
	for i, n := range nodes {
		all[i] = map[string]any{"node": n.Node, "host": n.Host, "owner": n.Owner, "until": textfmt.Stamp(n.Until)}
		if !n.To.IsZero() {
			all[i]["from"], all[i]["to"], all[i]["kept_until"] = textfmt.Stamp(n.From), textfmt.Stamp(n.To), textfmt.Stamp(n.Kept)
		}
	}
	return all
}

func (a *app) printRepair(name string, r grant.Report, m *applyCmd) {
	if m.asJSON {
		a.printJSON(map[string]any{
			"sequencer": name, "applied": m.apply, "repaired": blockedJSON(r.Nodes), "left": blockedJSON(r.Left),
			"damaged": len(r.Damaged),
		})
		return
	}
	var t rows
	t.add("sequencer", "%s", name)
	t.add("node IDs", "%d blocked, %d of which can be given back", len(r.Nodes)+len(r.Left), len(r.Nodes))
	blocked := func(n grant.NodeInfo) (key string) {
		key = fmt.Sprintf("node %d", n.Node)
		t.add(key, "blocked until %s by host %s, owner %s", textfmt.Stamp(n.Until), cmp.Or(n.Host, "unknown"),
			cmp.Or(n.Owner, "unknown"))
		return key
	}
	for _, n := range r.Nodes {
		key := blocked(n)
		t.add(key, "gives back %s to %s", textfmt.Stamp(n.From), textfmt.Stamp(n.To))
		t.add(key, "keeps %s to %s, which no member uses again", textfmt.Stamp(n.To), textfmt.Stamp(n.Kept))
	}
	for _, n := range r.Left {
		t.add(blocked(n),
			"cannot be given back: no unused time is left before that. Members acquire other node IDs until then")
	}
	t.addDamaged(r.Damaged)
	t.print(a.stdout, a.style())
}

// blockedNodes returns the node IDs of a sequencer that need a repair, and whether
// it can give them back. It skips records that cannot be read.
func blockedNodes(ctx context.Context, s grant.Store, name string, now func() time.Time) map[uint64]bool {
	r, err := grant.Repair(ctx, s, name, &grant.AdminOptions{DryRun: true, Now: now})
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

// An applyCmd is a command that changes the node IDs of one sequencer or of all.
// Without --apply it only prints what it would do.
type applyCmd struct {
	verb, done string // "fence", "fenced"

	apply, all, asJSON, anyClock bool

	skew time.Duration // how far the clock may differ from the store's
}

// command returns the command. each changes the node IDs of a sequencer and
// reports whether it could do all of it.
func (m *applyCmd) command(a *app, each func(ctx context.Context, s grant.Store, name string) (bool, error)) *cobra.Command {
	names := func(cmd *cobra.Command, args []string) error {
		switch {
		case m.all && len(args) > 0:
			return misuse("", "either --all or a name, not both")
		case m.all:
			return nil
		}
		return oneName(cmd, args)
	}
	cmd := a.onStore("node "+m.verb, names, false, func(ctx context.Context, s grant.Store, args []string, asJSON bool) error {
		m.asJSON = asJSON
		return m.run(ctx, a, s, args, each)
	})
	cmd.Flags().BoolVar(&m.apply, "apply", false, "apply the changes instead of printing them")
	cmd.Flags().BoolVar(&m.all, "all", false, "include all sequencers of the store")
	cmd.Flags().BoolVar(&m.anyClock, "any-clock", false,
		"continue even if the clock differs from the store's or is far from the marks")
	return cmd
}

func (m *applyCmd) run(ctx context.Context, a *app, s grant.Store, args []string, each func(context.Context, grant.Store, string) (bool, error)) error {
	list, err := sequencerNames(ctx, s, args)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.note("no sequencers in this store: nothing to %s", m.verb)
		return nil
	}
	if !m.anyClock {
		if err := a.checkClock(ctx, s, m.skew); err != nil {
			return err
		}
	}
	complete := true
	var failure error
	for i, name := range list {
		if i > 0 && !m.asJSON {
			fmt.Fprintln(a.stdout)
		}
		all, err := each(ctx, s, name)
		switch {
		case err == nil:
			complete = complete && all
		case len(list) == 1 || ctx.Err() != nil:
			return err
		default: // continue: the others need it as well
			a.report(storeError(err))
			failure = &exitError{code: exitCode(err), err: fmt.Errorf("not all sequencers could be %s", m.done),
				hint: "resolve the errors above and run it again"}
		}
	}
	if !m.apply {
		a.note("nothing was written; use --apply to write")
	}
	if failure == nil && !complete {
		return answerNo()
	}
	return failure
}

// addDamaged adds records that cannot be read.
func (r *rows) addDamaged(damaged []error) {
	for _, err := range damaged {
		r.add("damaged", "%s; left unchanged: no member can acquire that node ID", textfmt.Message(err))
	}
}

// clockVars adds --allow-clock-behind and --allow-clock-ahead.
func clockVars(cmd *cobra.Command, behind, ahead *bool) {
	cmd.Flags().BoolVar(behind, "allow-clock-behind", false,
		"acquire a node ID even if this clock is more than 10s behind other members'")
	cmd.Flags().BoolVar(ahead, "allow-clock-ahead", false,
		"acquire a node ID even if this clock is more than 10s ahead of the store's or other members'")
}

// clockTolerance is how far the clock may differ from the store's.
const clockTolerance = 10 * time.Second

// anyClockHint says what to do if a command refuses the clock.
const anyClockHint = "check the clock (date -u); if it is right, override this with --any-clock"

// checkClock refuses this machine's clock if it differs from the store's. A
// store that does not report its time agrees with every clock.
func (a *app) checkClock(ctx context.Context, s grant.Store, most time.Duration) error {
	if by, now, _ := doctor.Lead(ctx, s, a.now); by.Abs() > most {
		return failed(anyClockHint, "this machine's clock is %s the store's (%s, not %s)",
			doctor.AheadOf(by), textfmt.Stamp(now), textfmt.Stamp(now.Add(-by)))
	}
	return nil
}

// checkLead refuses to wait by a clock that is ahead of the store's.
func (a *app) checkLead(ctx context.Context, s grant.Store) error {
	if by, _, _ := doctor.Lead(ctx, s, a.now); by > clockTolerance {
		return failed("node IDs are handed over when their times have passed: compare both clocks with a time server", "this machine's clock is %s the store's", doctor.AheadOf(by))
	}
	return nil
}
