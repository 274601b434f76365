package proc

import (
	"os/exec"
	"syscall"
)

// EndWithParent makes the kernel kill a process if this one is killed, even a
// suspended one.
func EndWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
