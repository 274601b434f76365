package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/stores"
)

// storeEnv is the environment variable that --store is taken from.
const storeEnv = "FIRN_STORE"

// storeHelp is the part of a long help that says what --store takes.
const storeHelp = `Node numbers are kept in a store, so that nobody has to think of one. Without
--store and FIRN_STORE that is a directory of the user's own: the one that
XDG_STATE_HOME/firn or ~/.local/state/firn names, or /var/lib/firn for root. All
firn commands of this machine share it, and never give the same ID.

  dir:PATH                 a directory, for the processes of one machine
    ?create=true makes it where there is none yet, ?volatile=true takes one that
    is lost with the machine or container
` + stores.Help

// storeVar adds --store.
func storeVar(cmd *cobra.Command, store *string) {
	cmd.Flags().Var(&value[string]{store, notEmpty, nil, "URL"}, "store", "where node numbers are kept (default $"+storeEnv+", or the user's own directory)")
}

// openStore opens the store that url names, or else the one of the environment,
// or the user's own directory. create allows to make what is not there.
func (a *app) openStore(ctx context.Context, url string, create bool, warn func(string)) (grant.Store, error) {
	if url == "" {
		url = a.getenv(storeEnv)
	}
	if url != "" {
		return openStoreURL(ctx, url, create, warn)
	}
	if why := a.container(); why != "" {
		return nil, misuse("share one store between all replicas: --store URL; or give each a number of its own: --node N. For a trial, --store 'dir:/tmp/firn?create=true&volatile=true'",
			"this is a container (%s), and neither --store nor --node is given: with a directory of its own each replica would make the same IDs as the others", why)
	}
	path, err := a.statePath()
	if err != nil {
		return nil, failed("--store dir:PATH names one", "%w", err)
	}
	return openDir(path, true, false)
}

// statePath is the directory of the user's own.
func (a *app) statePath() (string, error) {
	if runtime.GOOS == "windows" {
		if dir := a.getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "firn"), nil
		}
		return "", errors.New("LOCALAPPDATA is not set, so there is no directory for the state")
	}
	if dir := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "firn"), nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/firn", nil
	}
	if dir := a.getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "state", "firn"), nil
	}
	return "", errors.New("neither XDG_STATE_HOME nor HOME is set, so there is no directory for the state")
}

// openStoreURL opens the store of a URL. warn is told what is dangerous about it.
func openStoreURL(ctx context.Context, text string, create bool, warn func(string)) (grant.Store, error) {
	kind, rest, ok := strings.Cut(text, ":")
	if !ok || kind != "dir" {
		s, err := stores.Open(ctx, text, stores.Options{Warn: warn})
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		return nil, urlError(err)
	}
	path, dirCreate, volatile, err := parseDir(text, rest)
	if err != nil {
		return nil, err
	}
	return openDir(path, create || dirCreate, volatile)
}

// checkStoreURL finds what is wrong with the URL of a store, which is not asked.
func checkStoreURL(text string) error {
	if rest, ok := strings.CutPrefix(text, "dir:"); ok {
		_, _, _, err := parseDir(text, rest)
		return err
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
	case e != nil:
		return failed(e.Hint, "%w", err)
	}
	return failed("", "%w", err)
}

// parseDir reads what follows dir: in the URL of a store.
func parseDir(text, rest string) (path string, create, volatile bool, err error) {
	path, query, _ := strings.Cut(rest, "?")
	if path == "" {
		return "", false, false, misuse("it is dir:PATH, such as dir:/var/lib/firn", "--store: %q: there is no path", text)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", false, false, misuse("", "--store: %q: %w", text, err)
	}
	for key := range values {
		set, err := strconv.ParseBool(values.Get(key))
		if err != nil {
			return "", false, false, misuse("", "--store: %q: %s is %q: it is true or false", text, key, values.Get(key))
		}
		switch key {
		case "create":
			create = set
		case "volatile":
			volatile = set
		default:
			return "", false, false, misuse("there are create and volatile", "--store: %q: there is no parameter %q", text, key)
		}
	}
	return path, create, volatile, nil
}

func openDir(path string, create, volatile bool) (grant.Store, error) {
	s, err := dirstore.Open(path, &dirstore.Options{Create: create, AllowVolatile: volatile})
	if err != nil {
		err = &inWords{dirWords.Replace(err.Error()), err}
		if errors.Is(err, dirstore.ErrNoStore) {
			return nil, failed(fmt.Sprintf("is it mounted, and the path right? To make a new one: --store 'dir:%s?create=true'", path), "%w", err)
		}
		return nil, storeError(err)
	}
	return s, nil
}

// dirWords puts what users of the program can say in place of what users of the package
// can; TestDirWords.
var dirWords = strings.NewReplacer(
	"Create it (Options.Create) if no store was there before", "If no store was there before, ?create=true makes it",
	"set AllowVolatile", "add ?volatile=true where that does not matter",
	" (AnyFileSystem is for who knows better)", "",
)

// An inWords is an error in other words.
type inWords struct {
	text string
	err  error
}

func (e *inWords) Error() string { return e.text }

func (e *inWords) Unwrap() error { return e.err }

// inContainer says by what a container is recognised, or "".
func inContainer() string { return containerBy(os.Getenv, os.ReadFile) }

// containerBy is inContainer with what it looks at. A file that container
// engines leave is not enough, as an image may be started as a virtual machine of
// its own: there the root is a disk.
func containerBy(getenv func(string) string, read func(string) ([]byte, error)) string {
	if getenv("KUBERNETES_SERVICE_HOST") != "" {
		return "KUBERNETES_SERVICE_HOST is set"
	}
	mounts, err := read("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	root, isDisk := rootOf(string(mounts))
	if layer := firstIn(root, "/docker/", "/containers/storage/", "containerd", "/buildkit/"); layer != "" {
		return "its root is a layer of " + strings.Trim(layer, "/")
	}
	if isDisk {
		return ""
	}
	for _, file := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := read(file); err == nil {
			return file + " exists"
		}
	}
	if cgroup, err := read("/proc/self/cgroup"); err == nil {
		if of := firstIn(string(cgroup), "/docker/", "/docker-", "/kubepods", "/libpod", "cri-containerd-", "/crio-", "/ecs/"); of != "" {
			return "its control group is one of " + strings.Trim(of, "/-")
		}
	}
	return ""
}

// firstIn is the first of the words that the text has, or "".
func firstIn(text string, words ...string) string {
	for _, w := range words {
		if strings.Contains(text, w) {
			return w
		}
	}
	return ""
}

// rootOf is the line about the root of these mounts, and whether that is a block
// device.
func rootOf(mountinfo string) (root string, isDisk bool) {
	for line := range strings.Lines(mountinfo) {
		// 22 1 254:0 / / rw,relatime - ext4 /dev/vda rw; the last one counts
		before, after, ok := strings.Cut(line, " - ")
		fields, source := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) > 4 && fields[4] == "/" && len(source) > 1 {
			root, isDisk = line, strings.HasPrefix(source[1], "/dev/")
		}
	}
	return root, isDisk
}

// nameOf is the sequencer that IDs of a layout come from where no name is given.
// Layouts that differ need names that differ, as a sequencer has one layout.
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
	lo, hi, ok := strings.Cut(s, "..")
	r := new(sequencer.Range)
	var err error
	if r.Lo, err = parseNumber(lo); err == nil && ok {
		r.Hi, err = parseNumber(hi)
	}
	switch {
	case !ok:
		return nil, errors.New("it is LO..HI, such as 0..511: both ends are needed, so that two clusters cannot overlap unseen")
	case err != nil:
		return nil, err
	case r.Lo > r.Hi:
		return nil, fmt.Errorf("%d is above %d", r.Lo, r.Hi)
	}
	return r, nil
}

// nodesVar adds --nodes.
func nodesVar(cmd *cobra.Command, r **sequencer.Range) {
	cmd.Flags().Var(&value[*sequencer.Range]{r, parseNodes, nil, "LO..HI"}, "nodes", "node numbers that may be taken from the store (default all of the layout)")
}

// behindVar adds --allow-clock-behind.
func behindVar(cmd *cobra.Command, allow *bool) {
	cmd.Flags().BoolVar(allow, "allow-clock-behind", false, "take a number although this clock is more than 10s behind those of others")
}

// closing bounds how long a command takes to give its node number back.
const closing = 5 * time.Second

// storeError says what an error of a store or a sequencer means for the user.
func storeError(err error) error {
	var (
		exit      *exitError
		mismatch  *grant.MismatchError
		exhausted *grant.ExhaustedError
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
		return no("wait until then; if the sequencer was not fenced (firn sequencer show), set this machine's clock")
	case errors.Is(err, grant.ErrNodesExhausted):
		return no("firn node list shows who holds them; those of processes that crashed are free when their windows end")
	case errors.Is(err, grant.ErrClockBehind):
		return failed("set the clock of this machine (NTP); --allow-clock-behind goes on all the same, with IDs that are out of order", "%w", err)
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
		return failed("it belongs to another user: run firn as that one, or share the directory through a group (mode 2770); --store names another", "%w", err)
	case errors.Is(err, sequencer.ErrUnavailable):
		return failed("is it there, and is the URL right? firn sequencer list asks it too", "%w", err)
	}
	return generatorError(err)
}
