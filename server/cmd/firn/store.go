package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/config"
	"github.com/firnid/firn/server/stores"
)

// storeEnv is the environment variable that --store is taken from.
const storeEnv = "FIRN_STORE"

// storeHelp is the part of a long help that says what --store takes.
const storeHelp = `Node IDs are kept in a store. Processes that share a store never make the same
ID of a sequencer; processes with different stores can.

Without --store and FIRN_STORE the store is a directory of the user who runs firn:
$STATE_DIRECTORY, which systemd sets, $XDG_STATE_HOME/firn, ~/.local/state/firn, or
/var/lib/firn for root; on Windows %LOCALAPPDATA%\firn. The commands of one user share it. Those of another user, under
sudo or in a service do not: give them all the same --store or FIRN_STORE.

  machine                  the directory /var/lib/firn (Windows: %ProgramData%\firn), for
                           all users of this machine who are in its group
  dir:PATH                 a directory, for the processes of one machine
    ?create=true makes it where there is none yet, ?volatile=true takes one that
    is lost with the machine or container
` + stores.Help

// storeVar adds --store.
func storeVar(cmd *cobra.Command, store *string) {
	cmd.Flags().Var(&value[string]{store, notEmpty, nil, "URL"}, "store", "where node IDs are kept: machine, or a URL (default $"+storeEnv+", or the user's own directory)")
}

// openStore opens the store that url names, or else the one of the environment,
// or the user's own directory. create allows to make what is not there.
func (a *app) openStore(ctx context.Context, url string, create bool, news storeNews) (grant.Store, error) {
	if url == "" {
		url = a.getenv(storeEnv)
		if err := checkWholePath(url); err != nil {
			return nil, fmt.Errorf("%s: %w", storeEnv, err)
		}
	}
	switch url {
	case "":
		return a.openOwn(news)
	case machineStore:
		return a.openMachine(news)
	}
	return openStoreURL(ctx, url, create, news)
}

// openStoreURL opens the store of a URL.
func openStoreURL(ctx context.Context, text string, create bool, news storeNews) (grant.Store, error) {
	s, err := stores.Open(ctx, text, stores.Options{Warn: news.warn, Create: create})
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, urlError(err)
}

// checkStoreURL finds what is wrong with the URL of a store, which is not
// asked.
func checkStoreURL(text string) error {
	if text == machineStore {
		return nil
	}
	if err := stores.Check(text); err != nil {
		return urlError(err)
	}
	return nil
}

// urlError is an error of stores, with its hint.
func urlError(err error) error {
	var e *stores.Error
	switch {
	case errors.As(err, &e) && e.URL:
		return misuse(e.Hint, "--store: %w", err)
	case e != nil && e.Dir && e.Hint == "":
		return storeError(e.Err)
	case e != nil:
		return failed(e.Hint, "%w", err)
	}
	return failed("", "%w", err)
}

// nameOf is the sequencer that IDs of a layout come from where no name is
// given. Layouts that differ need names that differ, as a sequencer has one
// layout.
func nameOf(l firn.Layout) string {
	if l == firn.Default() {
		return "default"
	}
	name := l.Preset()
	if name == "" {
		name = "layout"
	}
	if firn.MustParseLayout(orDefault(l.Preset())) == l {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(l.String()))
	return fmt.Sprintf("%s-%08x", name, h.Sum32())
}

// orDefault is the name of a preset.
func orDefault(preset string) string {
	if preset == "" {
		return "default"
	}
	return preset
}

// parseNodes reads --nodes.
func parseNodes(s string) (*sequencer.Range, error) {
	lo, hi, err := config.ParseNodes(s)
	return &sequencer.Range{Lo: lo, Hi: hi}, err
}

// nodesVar adds --nodes.
func nodesVar(cmd *cobra.Command, r **sequencer.Range) {
	cmd.Flags().Var(&value[*sequencer.Range]{r, parseNodes, nil, "LO..HI"}, "nodes", "node IDs that may be taken from the store (default all of the layout)")
}

// closing bounds how long a command takes to give its node ID back.
const closing = 5 * time.Second

// storeError says what an error of a store or a sequencer means for the user.
func storeError(err error) error {
	var (
		exit      *exitError
		mismatch  *grant.MismatchError
		exhausted *grant.ExhaustedError
		ahead     *grant.ClockAheadError
	)
	no := func(hint string) error { return &exitError{exitNo, err, hint} }
	switch {
	case err == nil, errors.As(err, &exit), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, grant.ErrNotFound):
		return no("firn sequencer list shows those there are; firn sequencer create makes one")
	case errors.As(err, &mismatch):
		return no(fmt.Sprintf("the %s of a sequencer never changes: take it as it is (firn sequencer show %s), or choose another name", mismatch.Field, mismatch.Sequencer))
	case errors.Is(err, grant.ErrDestroyed):
		return no("firn sequencer create makes it again: its IDs go on above the old ones")
	case errors.Is(err, grant.ErrDetached):
		return no("firn sequencer attach makes it usable again")
	case errors.As(err, &exhausted) && exhausted.Ahead:
		return no("wait until then; if the sequencer was not fenced (firn sequencer show), a clock is wrong: firn node list shows those of the members, and firn node repair gives back what one far ahead has blocked")
	case errors.Is(err, grant.ErrNodesExhausted):
		return no("firn node list shows who holds them; those of processes that crashed are free when their windows end")
	case errors.Is(err, grant.ErrClockBehind):
		return failed("compare this machine's clock with a time server. If it is right, firn node repair gives back what a wrong clock has blocked; --allow-clock-behind makes IDs anyway, out of order", "%w", err)
	case errors.As(err, &ahead) && ahead.Comparing:
		return failed("whether others agree is known within half a window: try again then; --allow-clock-ahead does not wait", "%w", err)
	case errors.Is(err, grant.ErrClockAhead):
		return failed("set the clock of this machine (NTP). If it is right, set that of the store's host; --allow-clock-ahead acquires one anyway, which is then blocked until the time that this clock shows", "%w", err)
	case errors.Is(err, grant.ErrRolledBack):
		return failed("firn node fence NAME shows what it would do, and does it with --apply; docs/operations.md has the drill", "%w", err)
	case errors.Is(err, grant.ErrNewerVersion), errors.Is(err, dirstore.ErrNewer):
		return failed("use the newer firn; nothing was changed", "%w", err)
	case errors.Is(err, grant.ErrDamaged), errors.Is(err, dirstore.ErrDamaged):
		return failed("nothing was changed. Do not delete it: what it held would be handed out again. Restore the store from a backup and run firn node fence; docs/operations.md has the drill", "%w", err)
	case errors.Is(err, dirstore.ErrFailed):
		return failed("the system's log says what the disk did; firn can go on in a new process when it works again", "%w", err)
	case errors.Is(err, syscall.ENOSPC):
		return failed("make room on that disk; nothing was changed", "%w", err)
	case errors.Is(err, fs.ErrPermission):
		return failed("it belongs to another user: run firn as that user, share the directory through a group (docs/operations.md says how), or name another with --store", "%w", err)
	case errors.Is(err, sequencer.ErrUnavailable):
		return failed("is it there, and is the URL right? firn sequencer list asks it too", "%w", err)
	}
	return generatorError(err)
}
