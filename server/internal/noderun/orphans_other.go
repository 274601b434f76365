//go:build unix && !linux

package noderun

import "syscall"

// prepareProcess does nothing: if this process is killed, the command
// continues.
func prepareProcess(*syscall.SysProcAttr) {}

// reap does nothing: init adopts what the command leaves behind.
func reap(int, bool) {}
