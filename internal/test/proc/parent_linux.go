package proc

import (
	"os/exec"
	"syscall"
)

// EndWithParent makes the kernel kill a process if this one is killed, even a
// suspended one.
func EndWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
