package kubetest

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the system kill a process if the test dies.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
