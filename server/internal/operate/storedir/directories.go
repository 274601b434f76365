// Package storedir finds the directories of a machine's stores, and whether the
// process runs in a container, whose directories are not the machine's.
package storedir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Paths are those in which stores of this machine lie.
type Paths struct {
	Getenv func(string) string
	Shared string // the machine's; "" for the system's
}

// Own returns the directory of the current user's store.
func (d *Paths) Own() (string, error) {
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

// Machine returns the directory of the machine's store.
func (d *Paths) Machine() (string, error) {
	switch {
	case d.Shared != "":
		return d.Shared, nil
	case runtime.GOOS != "windows":
		return "/var/lib/firn", nil
	}
	if dir := d.Getenv("ProgramData"); dir != "" {
		return filepath.Join(dir, "firn"), nil
	}
	return "", errors.New("no directory of the machine: ProgramData is not set")
}
