// Package localstore finds the directory in which the command firn keeps node
// IDs if no URL names a store, and says how it can be shared.
package localstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
)

// Dirs finds the directories of stores that no URL names.
type Dirs struct {
	Getenv    func(string) string
	OfMachine string // the directory of the machine; "" means the system's
}

// Own returns the directory of the current user.
func (d Dirs) Own() (string, error) {
	if runtime.GOOS == "windows" {
		if dir := d.Getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "firn"), nil
		}
		return "", errors.New("no directory for the store: LOCALAPPDATA is not set")
	}
	// For a service with StateDirectory=, the first one.
	if dir, _, _ := strings.Cut(d.Getenv("STATE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	if dir := d.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "firn"), nil
	}
	if os.Geteuid() == 0 {
		return d.Machine()
	}
	if dir := d.Getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "state", "firn"), nil
	}
	return "", errors.New("no directory for the store: neither XDG_STATE_HOME nor HOME is set")
}

// Machine returns the directory of the machine.
func (d Dirs) Machine() (string, error) {
	switch {
	case d.OfMachine != "":
		return d.OfMachine, nil
	case runtime.GOOS != "windows":
		return "/var/lib/firn", nil
	}
	if dir := d.Getenv("ProgramData"); dir != "" {
		return filepath.Join(dir, "firn"), nil
	}
	return "", errors.New("no directory of the machine: ProgramData is not set")
}

// MakeShared returns the command that creates a directory shared by users.
func MakeShared(path string) string {
	if runtime.GOOS == "windows" {
		return fmt.Sprintf(`mkdir "%[1]s" && icacls "%[1]s" /grant "*S-1-5-32-545:(OI)(CI)M"`, path) // Users
	}
	return "sudo install -d -m 2770 -g GROUP " + path
}

// HowToShare says how an administrator gives this user access to a directory;
// info is nil if unknown.
func HowToShare(path string, info fs.FileInfo) string {
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
