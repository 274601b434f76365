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

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/server/internal/access/readfile"
	"github.com/firnid/firn/server/internal/localstore"
	"github.com/firnid/firn/server/stores"
)

// machineStore is the value of --store for the directory of the machine, which
// its group's users share.
const machineStore = "machine"

// A storeNews receives what users should know about the store that is opened.
type storeNews struct {
	created func(path string)          // the default or machine directory was empty: it knows of no IDs yet
	another func(path, machine string) // the user's own store is used, but the machine has one too
}

// news returns the messages of commands on stderr.
func (a *app) news() storeNews {
	return storeNews{
		created: func(path string) { a.note("created a new store in %s", path) },
		another: func(path, machine string) {
			a.note("using your own store, %s; its IDs may collide with those of the machine's store, %s (--store %s)", path, machine, machineStore)
		},
	}
}

// podHint is for a pod without a store: the namespace, and the manifest.
const podHint = `keep node IDs in this cluster's API server: --store kubernetes://
      after kubectl apply -n %s -f - of the role below; or use etcd or a
      database: --store URL; or give each replica its own node ID: --node N

%s`

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
		return failed("in a volume that must stay as it is, create a new store in a directory below it: --store 'dir:"+filepath.Join(path, "firn")+"?create=true'", "store: %w", err)
	}
	return nil
}

// openOwn opens the user's own directory, which it creates at the first use.
func (a *app) openOwn(ctx context.Context, news storeNews) (grant.Store, error) {
	if why := a.container(); why != "" {
		if a.getenv("KUBERNETES_SERVICE_HOST") != "" {
			namespace, manifest := localstore.PodRole()
			return nil, misuse(fmt.Sprintf(podHint, namespace, manifest),
				"this is a pod (%s) without --store or --node: with its own directory, each replica would make the same IDs as the others", why)
		}
		return nil, misuse("share one store between all replicas: --store URL (FIRN_STORE); or give each its own node ID: --node N. To try it: --store 'dir:/tmp/firn?create=true&volatile=true'",
			"this is a container (%s) without --store or --node: with its own directory, each replica would make the same IDs as the others", why)
	}
	path, err := a.dirs().Own()
	if err != nil {
		return nil, failed("name a store: --store machine, or --store dir:PATH", "%w", err)
	}
	s, err := openOrCreate(ctx, path, news.created)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, failed("make it writable for this user again. If it was never used, another store will do: --store machine, or --store dir:PATH; otherwise that would repeat IDs", "%w", err)
	case errors.Is(err, dirstore.ErrFileSystem):
		return nil, failed("name a store on a local disk: --store machine, or --store dir:PATH", "%w", err)
	case err != nil:
		return nil, storeError(err)
	}
	if machine, err := a.dirs().Machine(); err == nil && machine != path {
		if _, err := os.Stat(machine); err == nil {
			news.another(path, machine)
		}
	}
	return s, nil
}

// openMachine opens the directory of the machine. It never creates it: only an
// administrator knows which group shares it.
func (a *app) openMachine(ctx context.Context, news storeNews) (grant.Store, error) {
	if why := a.container(); why != "" {
		return nil, misuse("mount a directory of the machine and use --store dir:PATH; or use a store for several machines: --store URL",
			"--store %s: this is a container (%s), whose directories are not those of the machine", machineStore, why)
	}
	path, err := a.dirs().Machine()
	if err != nil {
		return nil, failed("", "--store %s: %w", machineStore, err)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failed("an administrator has to create it once, for the users of a group: "+localstore.MakeShared(path),
			"--store %s: the directory %s does not exist", machineStore, path)
	}
	if err == nil {
		var s grant.Store
		if s, err = openOrCreate(ctx, path, news.created); err == nil {
			return s, nil
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, failed(localstore.HowToShare(path, info), "--store %s: %w", machineStore, err)
	}
	return nil, storeError(err)
}

// openOrCreate opens the store in a directory, and creates it if there is none.
func openOrCreate(ctx context.Context, path string, created func(path string)) (grant.Store, error) {
	s, err := stores.Open(ctx, "dir:"+path)
	if errors.Is(err, dirstore.ErrNoStore) {
		if s, err = stores.Open(ctx, "dir:"+path+"?create=true"); err == nil {
			created(path)
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
		path, err = a.dirs().Own()
	case machineStore:
		path, err = a.dirs().Machine()
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

// dirs returns where the directories of this user and of the machine are.
func (a *app) dirs() localstore.Dirs { return localstore.Dirs{Getenv: a.getenv, OfMachine: a.machine} }

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
