//go:build !linux && !darwin && !windows

package dirstore

import (
	"errors"
	"fmt"
	"runtime"
)

const readsTakeLock = true

// openDir refuses: what locks, fsync and rename hold here is not known.
func openDir(path string, _ *Options) (disk, error) {
	return nil, fmt.Errorf("dirstore: open %s: %w on %s: it runs on Linux, macOS and Windows; use another store here", path, errors.ErrUnsupported, runtime.GOOS)
}

func isFull(error) bool    { return false }
func isBusy(error) bool    { return false }
func isRefusal(error) bool { return false }

func isUnshared(error) bool { return false }
