package noderun

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prepareProcess makes the kernel kill the command if this process is killed.
// It also makes processes that the command leaves behind children of this one,
// which reaps them.
func prepareProcess(a *syscall.SysProcAttr) {
	a.Pdeathsig = syscall.SIGKILL
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // otherwise init adopts them
}

// A childInfo is the beginning of siginfo_t as waitid fills it in.
type childInfo struct {
	_   [3]int32
	_   [0]uintptr // the union is aligned like a pointer
	pid int32
	_   [128]byte
}

// reap reaps the children of a process group that have ended. It leaves the
// leader to the caller of Wait, unless that has returned.
func reap(group int, waited bool) {
	for {
		var info childInfo
		err := unix.Waitid(unix.P_PGID, group, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != nil || info.pid == 0 || int(info.pid) == group && !waited {
			return
		}
		_, _ = unix.Wait4(int(info.pid), nil, unix.WNOHANG, nil)
	}
}
