package main

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/stores"
)

func newSequencerMove(a *app) *cobra.Command {
	var from, to string
	var yes, asJSON bool
	cmd := command("sequencer move", oneName, func(cmd *cobra.Command, args []string) error {
		ctx, name := asOperator(cmd.Context()), args[0]
		if err := checkStoreURL("to", to); err != nil {
			return err
		}
		source, err := a.openPlace(ctx, from, false)
		if err != nil {
			return err
		}
		defer source.Store.Close()
		target, err := a.openPlace(ctx, to, true)
		if err != nil {
			return err
		}
		defer target.Store.Close()
		info, err := a.move(ctx, name, source, target, yes)
		if err != nil {
			return storeError(err)
		}
		a.printInfo(info, asJSON)
		return nil
	})
	storeVar(cmd, &from)
	textVar(cmd, &to, "to", "URL", "store that gets the sequencer: machine, or a URL")
	require(cmd, "to")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	jsonVar(cmd, &asJSON)
	return cmd
}

// move prints what it will do, asks for confirmation, and moves.
func (a *app) move(ctx context.Context, name string, from, to grant.Place, yes bool) (grant.Info, error) {
	info, err := grant.Lookup(ctx, from.Store, name)
	if err != nil {
		return info, err
	}
	if info.MovedTo == "" {
		a.note("to move %s from %s to %s: detach it and wait until members have given their node IDs back; copy "+
			"their records; attach it in %[3]s, and refuse it in the old store from then on", name, from.URL, to.URL)
		if err := a.confirm(yes, name, "move"); err != nil {
			return info, err
		}
	}
	moved, err := grant.Move(ctx, from, to, name,
		&grant.WaitOptions{Now: a.now, Waiting: a.tellWaiting(ctx, from.Store, name)})
	a.audit(ctx, to.Store, "move", name, err)
	if ctx.Err() != nil && err != nil {
		a.note("the move is not finished, and no IDs of %s may be made; run it again to continue", name)
	}
	return moved, err
}

// openPlace opens a store, and names it without its password.
func (a *app) openPlace(ctx context.Context, text string, create bool) (grant.Place, error) {
	s, err := a.openStore(ctx, text, create, a.note)
	if err != nil {
		return grant.Place{}, err
	}
	name, err := stores.Name(cmp.Or(text, a.getenv(storeEnv)))
	if path := a.directoryOf(text); path != "" {
		path, err = filepath.Abs(path)
		name = "dir:" + path
	}
	if err != nil {
		s.Close()
		return grant.Place{}, err
	}
	return grant.Place{Store: a.changes.Wrap(s), URL: strings.ReplaceAll(name, " ", "%20")}, nil
}
