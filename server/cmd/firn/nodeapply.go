package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
)

// An applyCmd is a command that changes the node IDs of one sequencer or of
// all. Without --apply it only prints what it would do.
type applyCmd struct {
	verb, participle string // "fence", "fenced"

	apply, all, asJSON, anyClock bool

	skew time.Duration // how far the clock may differ from the store's
}

// command returns the command. each changes the node IDs of a sequencer and
// reports whether it could do all of it.
func (m *applyCmd) command(a *app, each func(ctx context.Context, s grant.Store, name string) (bool, error),
) *cobra.Command {
	names := func(cmd *cobra.Command, args []string) error {
		switch {
		case m.all && len(args) > 0:
			return misuse("", "either --all or a name, not both")
		case m.all:
			return nil
		}
		return oneName(cmd, args)
	}
	run := func(ctx context.Context, s grant.Store, args []string, asJSON bool) error {
		m.asJSON = asJSON
		return m.run(ctx, a, s, args, each)
	}
	cmd := a.onStore("node "+m.verb, names, false, run)
	cmd.Flags().BoolVar(&m.apply, "apply", false, "apply the changes instead of printing them")
	cmd.Flags().BoolVar(&m.all, "all", false, "include all sequencers of the store")
	cmd.Flags().BoolVar(&m.anyClock, "any-clock", false,
		"continue even if the clock differs from the store's or is far from the marks")
	return cmd
}

func (m *applyCmd) run(ctx context.Context, a *app, s grant.Store, args []string,
	each func(context.Context, grant.Store, string) (bool, error)) error {
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
			failure = &exitError{code: exitCode(err), err: fmt.Errorf("not all sequencers could be %s", m.participle),
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
