//go:build unix && !linux

package noderun

import "syscall"

// prepareProcess does nothing: if this process is killed, the command
// continues, and init adopts what the command leaves behind.
func prepareProcess(*syscall.SysProcAttr) {}
