//go:build !windows

package dirstore

import "syscall"

// errNoRoom is the system's error for a full disk.
var errNoRoom error = syscall.ENOSPC
