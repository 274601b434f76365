package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/server/internal/access/readfile"
	"github.com/firnid/firn/server/internal/operate/config"
	"github.com/firnid/firn/server/stores"
)

// storeEnv is the environment variable with the default of --store.
const storeEnv = "FIRN_STORE"

// storeVar adds --store.
func storeVar(cmd *cobra.Command, store *string) {
	textVar(cmd, store, "store", "URL",
		"store of node IDs: see firn help stores (default $"+storeEnv+", or the user's own directory)")
}

// onStore returns a command that uses the store of --store and can print JSON.
func (a *app) onStore(path string, takes cobra.PositionalArgs, create bool,
	run func(ctx context.Context, s grant.Store, args []string, asJSON bool) error,
) *cobra.Command {
	var store string
	var asJSON bool
	cmd := command(path, takes, func(cmd *cobra.Command, args []string) error {
		return a.withStore(cmd.Context(), store, create, func(s grant.Store) error {
			return run(asOperator(cmd.Context()), s, args, asJSON)
		})
	})
	storeVar(cmd, &store)
	jsonVar(cmd, &asJSON)
	return cmd
}

// withStore calls f with the store.
func (a *app) withStore(ctx context.Context, url string, create bool, f func(grant.Store) error) error {
	s, err := a.openStore(ctx, url, create, a.note)
	if err != nil {
		return err
	}
	defer s.Close()
	return storeError(f(a.changes.Wrap(s)))
}

// openStore opens the store at url, or that of the environment, or the user's
// own directory. create allows creating a missing store; note prints or logs
// what the user should know about a local one.
func (a *app) openStore(ctx context.Context, url string, create bool, note func(format string, args ...any),
) (grant.Store, error) {
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
	if create && strings.HasPrefix(url, "dir:") && !strings.Contains(url, "create=") {
		before := "?"
		if strings.Contains(url, "?") {
			before = "&"
		}
		url += before + "create=true"
	}
	s, err := stores.Open(ctx, url)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s, urlError("store", err)
}

// checkStoreURL validates the URL of a store, the value of a flag, without
// contacting the store; "" means no store.
func checkStoreURL(flag, text string) error {
	if text == "" || text == machineStore {
		return nil
	}
	return urlError(flag, stores.Check(text))
}

// urlError adds a hint, and the flag with the URL, to an error of stores.
func urlError(flag string, err error) error {
	var e *stores.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e.InvalidURL:
		return wrongFlag(flag, "", e.Hint, "%w", err)
	case e != nil && e.Directory && e.Hint == "":
		return storeError(e.Err)
	case e != nil:
		return failed(e.Hint, "%w", err)
	}
	return failed("", "%w", err)
}

// oneName requires one argument, the name of a sequencer.
func oneName(cmd *cobra.Command, args []string) error {
	if err := wantArgs("the name of the sequencer", 1, 1)(cmd, args); err != nil {
		return err
	}
	if err := grant.CheckName(args[0]); err != nil {
		return misuse("", "%w", err)
	}
	return nil
}

// nodesVar adds --nodes.
func nodesVar(cmd *cobra.Command, r **grant.NodeRange, usage string) {
	cmd.Flags().Var(&value[*grant.NodeRange]{r, config.ParseNodes, nil, "LO..HI"}, "nodes", usage)
}

// joinLimit bounds how long a command waits for a node ID. A server keeps
// trying, but a user at a terminal wants to know what is wrong.
const joinLimit = 10 * time.Second

// storeHints say what to do about errors of a store, a sequencer or a
// generator. The first that matches applies.
var storeHints = []struct {
	err  error
	code int
	hint string
}{
	{grant.ErrEarly, exitFailed, "run it again then; a store that does not have this sequencer yet can use them now, if " +
		"you create it there with --floor and that time"},
	{grant.ErrComparingClocks, exitFailed, "retry after half a window, when the clocks of other members are known, or " +
		"do not wait: --allow-clock-ahead"},
	{grant.ErrNotFound, exitNo, "run firn sequencer list for all sequencers, or create it with firn sequencer create"},
	{grant.ErrDestroyed, exitNo, "create it again with firn sequencer create: its IDs continue above the old ones"},
	{grant.ErrMismatch, exitNo, ""}, // its text says what to do
	{grant.ErrMoved, exitNo,
		"use --store with that URL (its password is not shown), or FIRN_STORE; firn sequencer move brings it back"},
	{grant.ErrDetached, exitNo, "make it usable again with firn sequencer attach"},
	{grant.ErrNodesExhausted, exitNo,
		"run firn node list for their holders; node IDs of crashed processes are free when their windows end"},
	{grant.ErrClockBehind, exitFailed,
		"compare this machine's clock with a time server. If it is right, firn node repair gives back what a wrong " +
			"clock has blocked; --allow-clock-behind makes IDs anyway, out of order"},
	{grant.ErrClockAhead, exitFailed,
		"correct the clock of this machine (NTP). If it is right, correct that of the store's host. " +
			"--allow-clock-ahead acquires a node ID anyway, which is then blocked until the time that this clock shows"},
	{grant.ErrStoreWentBack, exitFailed,
		"run firn node fence NAME to see the changes, and again with --apply to make them; see docs/restore.md"},
	{grant.ErrNewerVersion, exitFailed, "use a newer firn; nothing was changed"},
	{grant.ErrDamaged, exitFailed,
		"the record is unchanged. Do not delete it: its IDs would be handed out again; see \"Damaged and newer " +
			"records\" in docs/runbooks.md"},
	{dirstore.ErrFailed, exitFailed,
		"check the system's log for errors of the disk, and start firn again when the disk works"},
	{syscall.ENOSPC, exitFailed, "free some space on that disk; nothing was changed"},
	{fs.ErrPermission, exitFailed,
		"it belongs to another user: run firn as that user, or share the directory with a group (see docs/stores.md)"},
	{firn.ErrUnavailable, exitFailed,
		"check that it is running and that the URL is right; firn sequencer list contacts it too"},
	{firn.ErrBeforeEpoch, exitFailed, "correct the clock, or choose a layout with an earlier epoch"},
	{firn.ErrTimeOver, exitFailed,
		"choose a layout with more time bits; firn layout shows the last date. With a later epoch, IDs would repeat"},
}

// storeError says what an error of a store, a sequencer or a generator means
// for the user.
func storeError(err error) error {
	var exhausted *grant.NodesExhaustedError
	switch {
	case err == nil, errors.As(err, new(*exitError)), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &exhausted) && exhausted.Fenced:
		return refused("wait until then: IDs begin above the floor that a fence, or firn sequencer create --floor, "+
			"has set", "%w", err)
	case errors.As(err, &exhausted) && exhausted.Ahead:
		return refused("wait until then, or set the clock that is wrong: firn node list shows the members' clocks, "+
			"and firn node repair gives back node IDs that a clock far ahead has blocked", "%w", err)
	}
	for _, known := range storeHints {
		if errors.Is(err, known.err) {
			return &exitError{code: known.code, err: err, hint: known.hint}
		}
	}
	return failed("", "%w", err)
}

// machineStore is the value of --store for the directory of the machine, which
// its group's users share.
const machineStore = "machine"

// podHint is for a pod without a store.
const podHint = `keep node IDs in this cluster's API server: --store kubernetes://
      after kubectl apply -n NAMESPACE -f deploy/kubernetes/rbac.yaml; see docs/kubernetes.md.
      Or use etcd or a database: --store URL; or give each replica its own node ID: --node N`

// checkDirectory returns an error if users other than those who share a store
// can change it. It is for commands that make IDs: others may look at the
// store, and mend it. Users may share a directory of a group, regardless of its
// owner.
func (a *app) checkDirectory(url string) error {
	path := a.directoryOf(url)
	info, err := os.Stat(path)
	if path == "" || err != nil {
		return nil // opening it has the error
	}
	if info.Mode()&0o022 == 0o020 {
		return nil
	}
	if err := readfile.CheckTrust(path, info); err != nil {
		return failed("in a volume that must stay as it is, create a new store in a directory below it: "+
			"--store 'dir:"+filepath.Join(path, "firn")+"?create=true'", "store: %w", err)
	}
	return nil
}

// openOwn opens the user's own directory, which it creates at the first use.
// note prints or logs what the user should know about it.
func (a *app) openOwn(ctx context.Context, note func(format string, args ...any)) (grant.Store, error) {
	if why := a.container(); why != "" {
		const same = "without --store or --node: with its own directory, each replica would make the same IDs as the others"
		if a.getenv("KUBERNETES_SERVICE_HOST") != "" {
			return nil, misuse(podHint, "this is a pod (%s) %s", why, same)
		}
		return nil, misuse("share one store between all replicas: --store URL (FIRN_STORE); or give each its own "+
			"node ID: --node N. To try it: --store 'dir:/tmp/firn?create=true&volatile=true'",
			"this is a container (%s) %s", why, same)
	}
	path, err := a.directories.Own()
	if err != nil {
		return nil, failed("name a store: --store machine, or --store dir:PATH", "%w", err)
	}
	s, err := openOrCreate(ctx, path, note)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, failed("make it writable for this user again. If it was never used, another store will do: "+
			"--store machine, or --store dir:PATH; otherwise that would repeat IDs", "%w", err)
	case err != nil:
		return nil, storeError(err)
	}
	if machine, err := a.directories.Machine(); err == nil && machine != path {
		if _, err := os.Stat(machine); err == nil {
			note("using your own store, %s; its IDs may collide with those of the machine's store, %s (--store %s)",
				path, machine, machineStore)
		}
	}
	return s, nil
}

// shareHint is for the directory of the machine.
const shareHint = `an administrator has to make it, for a group that you are in: ` +
	`see "One machine, several users" in docs/stores.md`

// openMachine opens the directory of the machine. It never creates it: only an
// administrator knows which group shares it.
func (a *app) openMachine(ctx context.Context, note func(format string, args ...any)) (grant.Store, error) {
	if why := a.container(); why != "" {
		return nil, misuse("mount a directory of the machine and use --store dir:PATH; or use a store for "+
			"several machines: --store URL",
			"--store %s: this is a container (%s), whose directories are not those of the machine", machineStore, why)
	}
	path, err := a.directories.Machine()
	if err == nil {
		_, err = os.Stat(path)
	}
	var s grant.Store
	if err == nil {
		s, err = openOrCreate(ctx, path, note)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, failed(shareHint, "--store %s: %w", machineStore, err)
	}
	return s, storeError(err)
}

// openOrCreate opens the store in a directory, and creates a missing one.
func openOrCreate(ctx context.Context, path string, note func(format string, args ...any)) (grant.Store, error) {
	s, err := stores.Open(ctx, "dir:"+path)
	if errors.Is(err, dirstore.ErrNoStore) {
		if s, err = stores.Open(ctx, "dir:"+path+"?create=true"); err == nil {
			note("created a new store in %s", path)
		}
	}
	return s, err
}

// storeURL returns the URL of a store: of the one in the environment or the
// user's own for "", and of the machine's.
func (a *app) storeURL(text string) (string, error) {
	var path string
	var err error
	switch text = cmp.Or(text, a.getenv(storeEnv)); text {
	case "":
		path, err = a.directories.Own()
	case machineStore:
		path, err = a.directories.Machine()
	default:
		return text, nil
	}
	return "dir:" + path, err
}

// directoryOf returns the directory of a store, or "" if it is not in one.
func (a *app) directoryOf(text string) string {
	url, err := a.storeURL(text)
	path, isDir := strings.CutPrefix(url, "dir:")
	if err != nil || !isDir {
		return ""
	}
	path, _, _ = strings.Cut(path, "?")
	return path
}

// checkWholePath rejects the URL of a directory that depends on the working
// directory: in a variable or a file it would name a different store for each
// process.
func checkWholePath(text string) error {
	rest, ok := strings.CutPrefix(text, "dir:")
	path, _, _ := strings.Cut(rest, "?")
	if !ok || path == "" || filepath.IsAbs(path) {
		return nil
	}
	return misuse("write the absolute path",
		"%q: a relative path names a different store in each working directory", text)
}
