//go:build unix

package noderun

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Signals returns the signals that are passed on to the command.
func Signals() []os.Signal {
	return []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
		syscall.SIGUSR2}
}

// A process is a command in its own process group.
type process struct {
	group int
	ended chan struct{} // closed when the command and its whole group have ended
	code  int           // its exit code, once ended is closed

	stopping sync.Once
	waited   atomic.Bool // the command itself has ended and is reaped
}

// leftoverTimeout is how long processes of the group that outlive the command
// have to end after SIGTERM.
const leftoverTimeout = 2 * time.Second

// startProcess starts a command. When it has ended, the others of its group are
// ended too. It calls ended just before the process counts as ended.
func startProcess(cmd *exec.Cmd, ended func()) (*process, error) {
	p := &process{ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	prepareProcess(cmd.SysProcAttr)
	if isForeground() {
		// The command reads from the terminal and gets its interrupts. Ctrl-Z
		// would stop only the command and leave the terminal without a reader.
		signal.Ignore(syscall.SIGTSTP)
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(os.Stdin.Fd())
	}
	started := make(chan error)
	go func() {
		// On Linux, the command is killed when this thread ends, not when the
		// process ends. So the thread stays with this goroutine, which outlives
		// the command.
		runtime.LockOSThread()
		err := cmd.Start()
		if err == nil {
			p.group = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.code = p.wait()
		p.waited.Store(true)
		p.end(leftoverTimeout, func() bool { return false })
		ended()
		close(p.ended)
	}()
	return p, <-started
}

// wait waits until the command has ended, and returns its exit code. Meanwhile
// it reaps what the command leaves behind in its group.
func (p *process) wait() int {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGCHLD)
	defer signal.Stop(changed)
	for {
		pid, s := reap(p.group) // by its own ID: it may have left the group
		if pid < 0 {
			return exitUnknown // another part of this program waited for the command
		}
		if pid == 0 {
			pid, s = reap(-p.group)
		}
		switch {
		case pid == p.group:
			return exitCode(s)
		case pid <= 0:
			<-changed
		}
	}
}

// reap reaps a child that has ended. It returns 0 if none has, and a negative
// number if there is no such child.
func reap(which int) (pid int, s syscall.WaitStatus) {
	pid, _ = syscall.Wait4(which, &s, syscall.WNOHANG, nil)
	return pid, s
}

// isForeground reports whether stdin is a terminal that this process may read
// from.
func isForeground() bool {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// exitCode returns the exit code as a shell reports it.
func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return exitSignal + int(s.Signal())
	}
	return s.ExitStatus()
}

// signal passes a signal on to the group.
func (p *process) signal(s os.Signal) {
	if s, ok := s.(syscall.Signal); ok && !p.hasEnded() {
		_ = syscall.Kill(-p.group, s)
	}
}

// stop ends the command: with SIGTERM, and with SIGKILL after the grace period
// or once hurry reports true. It returns when the command has ended.
func (p *process) stop(grace time.Duration, hurry func() bool) {
	p.stopping.Do(func() { p.end(grace, hurry) })
	<-p.ended
}

// end signals the group until no process is left in it.
func (p *process) end(grace time.Duration, hurry func() bool) {
	if p.hasEnded() || syscall.Kill(-p.group, 0) != nil {
		return
	}
	_ = syscall.Kill(-p.group, syscall.SIGTERM)
	_ = syscall.Kill(-p.group, syscall.SIGCONT) // a stopped process would not get it
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for begin := time.Now(); ; {
		if time.Since(begin) >= grace || hurry() {
			_ = syscall.Kill(-p.group, syscall.SIGKILL)
		}
		for more := p.waited.Load(); more; { // an ended process stays in its group until it is reaped
			pid, _ := reap(-p.group)
			more = pid > 0
		}
		if syscall.Kill(-p.group, 0) != nil || p.hasEnded() {
			return
		}
		<-poll.C
	}
}
