//go:build !windows

package dirstore

import "syscall"

// errNoRoom is what the system says of a full disk.
var errNoRoom error = syscall.ENOSPC
