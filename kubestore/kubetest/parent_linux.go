package kubetest

import (
	"os/exec"
	"syscall"
)

// endWithParent has a process killed should the test be.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
