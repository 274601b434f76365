package noderun

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareProcess makes the kernel kill the command if this process is killed.
// It also makes processes that the command leaves behind children of this one,
// which reaps them.
func prepareProcess(a *syscall.SysProcAttr) {
	a.Pdeathsig = syscall.SIGKILL
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // otherwise init adopts them
}
