//go:build !linux && !darwin && !windows

package dirstore

import (
	"errors"
	"fmt"
	"runtime"
)

const readsTakeLock = true

// openDir fails: the guarantees of locks, fsync and rename are unknown here.
func openDir(path string, _ *Options) (disk, error) {
	return nil, fmt.Errorf("dirstore: open %s: %w on %s: dirstore supports Linux, macOS and Windows; use another store",
		path, errors.ErrUnsupported, runtime.GOOS)
}

func isFull(error) bool    { return false }
func isBusy(error) bool    { return false }
func isRefusal(error) bool { return false }
