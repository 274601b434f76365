package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/operate/config"
	"github.com/firnid/firn/server/stores"
)

// storeEnv is the environment variable with the default of --store.
const storeEnv = "FIRN_STORE"

// newStores makes the help's topic about --store.
func newStores() *cobra.Command {
	return command("stores", nil, nil)
}

// storeVar adds --store.
func storeVar(cmd *cobra.Command, store *string) {
	cmd.Flags().Var(&value[string]{store, notEmpty, nil, "URL"}, "store",
		"store of node IDs: see firn help stores (default $"+storeEnv+", or the user's own directory)")
}

// openStore opens the store at url, or that of the environment, or the user's
// own directory. create allows creating a missing store; note prints or logs what
// the user should know about a local one.
func (a *app) openStore(ctx context.Context, url string, create bool, note func(format string, args ...any)) (grant.Store, error) {
	if url == "" {
		url = a.getenv(storeEnv)
		if err := checkWholePath(url); err != nil {
			return nil, fmt.Errorf("%s: %w", storeEnv, err)
		}
	}
	switch url {
	case "":
		return a.openOwn(ctx, note)
	case machineStore:
		return a.openMachine(ctx, note)
	}
	return openStoreURL(ctx, url, create)
}

// openStoreURL opens the store of a URL. create allows creating a missing
// directory.
func openStoreURL(ctx context.Context, text string, create bool) (grant.Store, error) {
	if create && strings.HasPrefix(text, "dir:") && !strings.Contains(text, "create=") {
		before := "?"
		if strings.Contains(text, "?") {
			before = "&"
		}
		text += before + "create=true"
	}
	s, err := stores.Open(ctx, text)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s, urlError(err)
}

// checkStoreURL validates the URL of a store without contacting the store.
func checkStoreURL(text string) error {
	if text == machineStore {
		return nil
	}
	return urlError(stores.Check(text))
}

// urlError adds a hint to an error of stores.
func urlError(err error) error {
	var e *stores.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e.InvalidURL:
		return wrongFlag("store", "", e.Hint, "%w", err)
	case e != nil && e.Directory && e.Hint == "":
		return storeError(e.Err)
	case e != nil:
		return failed(e.Hint, "%w", err)
	}
	return failed("", "%w", err)
}

// nameOf returns the sequencer for IDs of a layout if no name is given.
// Different layouts need different names, because a sequencer has one layout.
func nameOf(l firn.Layout) string {
	if l == firn.Default() {
		return "default"
	}
	name := cmp.Or(l.Preset(), "layout")
	if firn.MustParseLayout(cmp.Or(l.Preset(), "default")) == l {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(l.String()))
	return fmt.Sprintf("%s-%08x", name, h.Sum32())
}

// nodesVar adds --nodes.
func nodesVar(cmd *cobra.Command, r **grant.Range, usage string) {
	cmd.Flags().Var(&value[*grant.Range]{r, config.ParseNodes, nil, "LO..HI"}, "nodes", usage)
}

// closeLimit bounds how long a command, or a server without requests, takes to
// give its node IDs back.
const closeLimit = 5 * time.Second

// storeHints say what to do about errors of a store, a sequencer or a generator.
// The first that matches applies.
var storeHints = []struct {
	err  error
	code int
	hint string
}{
	{grant.ErrNotFound, exitNo, "run firn sequencer list for all sequencers, or create it with firn sequencer create"},
	{grant.ErrDestroyed, exitNo, "create it again with firn sequencer create: its IDs continue above the old ones"},
	{grant.ErrMoved, exitNo, "use --store with that URL (its password is not shown), or FIRN_STORE; firn sequencer move brings it back"},
	{grant.ErrDetached, exitNo, "make it usable again with firn sequencer attach"},
	{grant.ErrNodesExhausted, exitNo, "run firn node list for their holders; node IDs of crashed processes are free when their windows end"},
	{grant.ErrClockBehind, exitFailed, "compare this machine's clock with a time server. If it is right, firn node repair gives back what a wrong clock has blocked; --allow-clock-behind makes IDs anyway, out of order"},
	{grant.ErrClockAhead, exitFailed, "correct the clock of this machine (NTP). If it is right, correct that of the store's host. --allow-clock-ahead acquires a node ID anyway, which is then blocked until the time that this clock shows"},
	{grant.ErrRolledBack, exitFailed, "run firn node fence NAME to see the changes, and again with --apply to make them; see docs/restore.md"},
	{grant.ErrNewerVersion, exitFailed, "use a newer firn; nothing was changed"},
	{grant.ErrDamaged, exitFailed, "nothing was changed. Do not delete the record: its IDs would be handed out again. Restore the store from a backup and run firn node fence; see docs/restore.md"},
	{dirstore.ErrFailed, exitFailed, "check the system's log for errors of the disk, and start firn again when the disk works"},
	{syscall.ENOSPC, exitFailed, "free some space on that disk; nothing was changed"},
	{fs.ErrPermission, exitFailed, "it belongs to another user: run firn as that user, or share the directory with a group (see docs/stores.md)"},
	{sequencer.ErrUnavailable, exitFailed, "check that it is running and that the URL is right; firn sequencer list contacts it too"},
	{firn.ErrBeforeEpoch, exitFailed, "correct the clock, or choose a layout with an earlier epoch"},
	{firn.ErrTimeOver, exitFailed, "choose a layout with more time bits; firn layout shows the last date. With a later epoch, IDs would repeat"},
}

// storeError says what an error of a store, a sequencer or a generator means for
// the user.
func storeError(err error) error {
	var (
		mismatch  *grant.MismatchError
		exhausted *grant.ExhaustedError
	)
	no := func(format string, a ...any) error { return refused(fmt.Sprintf(format, a...), "%w", err) }
	switch {
	case err == nil, errors.As(err, new(*exitError)), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &mismatch) && (mismatch.Field == "nodes" || mismatch.Field == "window"):
		return no("change it with firn sequencer %s %s %s", mismatch.Field, mismatch.Sequencer, mismatch.Want)
	case errors.As(err, &mismatch) && mismatch.Field == "prefix" && mismatch.Have == "none":
		return no("destroy sequencer %s and create it again with --prefix %s: its IDs continue", mismatch.Sequencer, mismatch.Want)
	case errors.As(err, &mismatch):
		return no("a sequencer's %s cannot change: use the existing one (firn sequencer show %s), or choose another name, whose IDs may collide with those of this one", mismatch.Field, mismatch.Sequencer)
	case errors.As(err, &exhausted) && exhausted.Fenced:
		return no("wait until then: IDs begin above the floor that a fence, or firn sequencer create --floor, has set")
	case errors.As(err, &exhausted) && exhausted.Ahead:
		return no("wait until then, or set the clock that is wrong: firn node list shows the members' clocks, and firn node repair gives back node IDs that a clock far ahead has blocked")
	case errors.Is(err, grant.ErrEarly):
		return failed("run it again then; a store that does not have this sequencer yet can use them now, if you create it there with --floor and that time", "%w", err)
	case errors.Is(err, grant.ErrComparingClocks):
		return failed("retry after half a window, when the clocks of other members are known, or do not wait: --allow-clock-ahead", "%w", err)
	}
	for _, known := range storeHints {
		if errors.Is(err, known.err) {
			return &exitError{code: known.code, err: err, hint: known.hint}
		}
	}
	return failed("", "%w", err)
}
