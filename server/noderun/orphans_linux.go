package noderun

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prepareProcess has the kernel kill the command if this process is killed, and has
// processes that the command leaves behind become children of this one, which reaps them.
func prepareProcess(a *syscall.SysProcAttr) {
	a.Pdeathsig = syscall.SIGKILL
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it they are init's
}

// A childInfo is the beginning of siginfo_t as waitid fills it in.
type childInfo struct {
	_   [3]int32
	_   [0]uintptr // the union is aligned as a pointer is
	pid int32
	_   [128]byte
}

// reap reaps children that have ended, except the one that is waited for by itself.
func reap(except int) {
	for {
		var info childInfo
		err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != nil || info.pid == 0 || int(info.pid) == except {
			return
		}
		_, _ = unix.Wait4(int(info.pid), nil, unix.WNOHANG, nil)
	}
}
