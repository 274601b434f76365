package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/server/internal/access/readfile"
	"github.com/firnid/firn/server/stores"
)

// machineStore is the value of --store for the directory of the machine, which
// its group's users share.
const machineStore = "machine"

// podHint is for a pod without a store.
const podHint = `keep node IDs in this cluster's API server: --store kubernetes://
      after kubectl apply -n NAMESPACE -f deploy/kubernetes/rbac.yaml; see docs/kubernetes.md.
      Or use etcd or a database: --store URL; or give each replica its own node ID: --node N`

// checkDirectory returns an error if users other than those who share a store
// can change it. It is for commands that make IDs: others may look at the store,
// and mend it. Users may share a directory of a group, regardless of its owner.
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
		return failed("in a volume that must stay as it is, create a new store in a directory below it: --store 'dir:"+filepath.Join(path, "firn")+"?create=true'",
			"store: %w", err)
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
		return nil, misuse("share one store between all replicas: --store URL (FIRN_STORE); or give each its own node ID: --node N. To try it: --store 'dir:/tmp/firn?create=true&volatile=true'",
			"this is a container (%s) %s", why, same)
	}
	path, err := a.ownDirectory()
	if err != nil {
		return nil, failed("name a store: --store machine, or --store dir:PATH", "%w", err)
	}
	s, err := openOrCreate(ctx, path, note)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, failed("make it writable for this user again. If it was never used, another store will do: --store machine, or --store dir:PATH; otherwise that would repeat IDs", "%w", err)
	case err != nil:
		return nil, storeError(err)
	}
	if machine, err := a.machineDirectory(); err == nil && machine != path {
		if _, err := os.Stat(machine); err == nil {
			note("using your own store, %s; its IDs may collide with those of the machine's store, %s (--store %s)", path, machine, machineStore)
		}
	}
	return s, nil
}

// shareHint is for the directory of the machine.
const shareHint = `an administrator has to make it, for a group that you are in: see "One machine, several users" in docs/stores.md`

// openMachine opens the directory of the machine. It never creates it: only an
// administrator knows which group shares it.
func (a *app) openMachine(ctx context.Context, note func(format string, args ...any)) (grant.Store, error) {
	if why := a.container(); why != "" {
		return nil, misuse("mount a directory of the machine and use --store dir:PATH; or use a store for several machines: --store URL",
			"--store %s: this is a container (%s), whose directories are not those of the machine", machineStore, why)
	}
	path, err := a.machineDirectory()
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

// openOrCreate opens the store in a directory, and creates it if there is none.
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
		path, err = a.ownDirectory()
	case machineStore:
		path, err = a.machineDirectory()
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

// ownDirectory returns the directory of the current user's store.
func (a *app) ownDirectory() (string, error) {
	if runtime.GOOS == "windows" {
		if dir := a.getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "firn"), nil
		}
		return "", errors.New("no directory for the store: LOCALAPPDATA is not set")
	}
	// For a service with StateDirectory=, the first one.
	if dir, _, _ := strings.Cut(a.getenv("STATE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	if dir := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "firn"), nil
	}
	if os.Geteuid() == 0 {
		return a.machineDirectory()
	}
	if dir := a.getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "state", "firn"), nil
	}
	return "", errors.New("no directory for the store: neither XDG_STATE_HOME nor HOME is set")
}

// machineDirectory returns the directory of the machine's store.
func (a *app) machineDirectory() (string, error) {
	switch {
	case a.machineDir != "":
		return a.machineDir, nil
	case runtime.GOOS != "windows":
		return "/var/lib/firn", nil
	}
	if dir := a.getenv("ProgramData"); dir != "" {
		return filepath.Join(dir, "firn"), nil
	}
	return "", errors.New("no directory of the machine: ProgramData is not set")
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
	return misuse("write the absolute path", "%q: a relative path names a different store in each working directory", text)
}
