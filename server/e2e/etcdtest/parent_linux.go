package etcdtest

import (
	"os/exec"
	"syscall"
)

// EndWithParent has a process killed should the test be, also one that is
// stopped.
func EndWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
