package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/server/stores"
)

// machineStore is the value of --store for the directory of the machine, which
// its group's users share.
const machineStore = "machine"

// A storeNews receives what users should know about the store that is opened.
type storeNews struct {
	warn    func(text string)          // dangerous properties; nil: the store is not checked
	created func(path string)          // the default or machine directory was empty: it knows of no IDs yet
	another func(path, machine string) // the user's own store is used, but the machine has one too
}

// news returns the messages of commands on stderr.
func (a *app) news() storeNews {
	return storeNews{
		created: func(path string) { a.note("created a new store in %s", path) },
		another: func(path, machine string) {
			a.note("using your own store, %s; its IDs can equal those of the machine's store, %s (--store %s)", path, machine, machineStore)
		},
	}
}

// podHint is for a pod without a store: the namespace, and the manifest.
const podHint = `keep node IDs in this cluster's API server: --store kubernetes://
      after kubectl apply -n %s -f - of the role below; or use etcd or a
      database: --store URL; or give each replica its own node ID: --node N

%s`

// openOwn opens the user's own directory, which it creates at the first use.
func (a *app) openOwn(news storeNews) (grant.Store, error) {
	if why := a.container(); why != "" {
		if a.getenv("KUBERNETES_SERVICE_HOST") != "" {
			namespace, manifest := stores.PodRole()
			return nil, misuse(fmt.Sprintf(podHint, namespace, manifest),
				"this is a pod (%s) without --store or --node: with its own directory, each replica would make the same IDs as the others", why)
		}
		return nil, misuse("share one store between all replicas: --store URL (FIRN_STORE); or give each its own node ID: --node N. To try it: --store 'dir:/tmp/firn?create=true&volatile=true'",
			"this is a container (%s) without --store or --node: with its own directory, each replica would make the same IDs as the others", why)
	}
	path, err := a.ownPath()
	if err != nil {
		return nil, failed("name a store: --store machine, or --store dir:PATH", "%w", err)
	}
	s, err := stores.OpenDir(path, stores.DirOptions{Create: true, Created: news.created})
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, failed("name a store that this user can write: --store machine, or --store dir:PATH", "%w", err)
	case errors.Is(err, dirstore.ErrFileSystem):
		return nil, failed("name a store on a local disk: --store machine, or --store dir:PATH", "%w", err)
	case err != nil:
		return nil, storeError(err)
	}
	if machine, err := a.machinePath(); err == nil && machine != path {
		if _, err := os.Stat(machine); err == nil {
			news.another(path, machine)
		}
	}
	return s, nil
}

// openMachine opens the directory of the machine. It never creates it: only an
// administrator knows which group shares it.
func (a *app) openMachine(news storeNews) (grant.Store, error) {
	if why := a.container(); why != "" {
		return nil, misuse("mount a directory of the machine and use --store dir:PATH; or use a store for several machines: --store URL",
			"--store %s: this is a container (%s), whose directories are not those of the machine", machineStore, why)
	}
	path, err := a.machinePath()
	if err != nil {
		return nil, failed("", "--store %s: %w", machineStore, err)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failed("an administrator has to create it once, for the users of a group: "+makeShared(path),
			"--store %s: the directory %s does not exist", machineStore, path)
	}
	if err == nil {
		var s grant.Store
		if s, err = stores.OpenDir(path, stores.DirOptions{Create: true, Created: news.created}); err == nil {
			return s, nil
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, failed(howToShare(path, info), "--store %s: %w", machineStore, err)
	}
	return nil, storeError(err)
}

// ownPath returns the user's own directory.
func (a *app) ownPath() (string, error) {
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
		return a.machinePath()
	}
	if dir := a.getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "state", "firn"), nil
	}
	return "", errors.New("no directory for the store: neither XDG_STATE_HOME nor HOME is set")
}

// machinePath returns the directory of the machine.
func (a *app) machinePath() (string, error) {
	switch {
	case a.machine != "":
		return a.machine, nil
	case runtime.GOOS != "windows":
		return "/var/lib/firn", nil
	}
	if dir := a.getenv("ProgramData"); dir != "" {
		return filepath.Join(dir, "firn"), nil
	}
	return "", errors.New("no directory of the machine: ProgramData is not set")
}

// makeShared returns the command that creates a directory shared by users.
func makeShared(path string) string {
	if runtime.GOOS == "windows" {
		return fmt.Sprintf(`mkdir "%[1]s" && icacls "%[1]s" /grant "*S-1-5-32-545:(OI)(CI)M"`, path) // Users
	}
	return "sudo install -d -m 2770 -g GROUP " + path
}

// howToShare says how an administrator gives this user access to a directory;
// info is nil if unknown.
func howToShare(path string, info fs.FileInfo) string {
	if runtime.GOOS == "windows" {
		return fmt.Sprintf(`an administrator can let all users write it: icacls "%s" /grant "*S-1-5-32-545:(OI)(CI)M" /T`, path)
	}
	if info != nil && info.Mode()&0o070 == 0o070 && info.Mode()&fs.ModeSetgid != 0 {
		if group, missing := groupOf(info); missing {
			me := "USER"
			if u, err := user.Current(); err == nil {
				me = u.Username
			}
			add := fmt.Sprintf("sudo usermod -aG %s %s", group, me)
			if runtime.GOOS == "darwin" {
				add = fmt.Sprintf("sudo dseditgroup -o edit -a %s -t user %s", me, group)
			}
			return fmt.Sprintf("it belongs to the users of group %s: %s, and log in again", group, add)
		}
	}
	return fmt.Sprintf("an administrator can stop the firn processes that use it, and share it with the users of a group: "+
		"sudo sh -c 'chgrp -R GROUP %[1]s && chmod -R g+rwX %[1]s && chmod 2770 %[1]s'", path)
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
