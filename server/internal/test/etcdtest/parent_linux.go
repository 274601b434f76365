package etcdtest

import (
	"os/exec"
	"syscall"
)

// EndWithParent makes the kernel kill a process if the test is killed, even a
// paused one.
func EndWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
