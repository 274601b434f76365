package noderun

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Signals returns the signals that are passed on to the command.
func Signals() []os.Signal { return []os.Signal{os.Interrupt} }

// A process is a command in a job object, which ends with this process.
type process struct {
	id    uint32
	job   windows.Handle
	ended chan struct{} // closed when the command and its whole job have ended
	code  int           // its exit code, once ended is closed

	stopping sync.Once
}

// startProcess starts a command. It calls ended just before the process counts
// as ended.
func startProcess(cmd *exec.Cmd, ended func()) (*process, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	p := &process{id: uint32(cmd.Process.Pid), job: job, ended: make(chan struct{})}
	if err := p.assign(); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = windows.CloseHandle(job)
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		p.code = cmd.ProcessState.ExitCode()
		_ = windows.TerminateJobObject(job, 1) // what outlives the command
		_ = windows.CloseHandle(job)
		ended()
		close(p.ended)
	}()
	return p, nil
}

// assign puts the command into the job.
func (p *process) assign() error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, p.id)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	return windows.AssignProcessToJobObject(p.job, h)
}

// signal passes an interrupt on as a ctrl-Break, the only one that a separate
// process group gets.
func (p *process) signal(os.Signal) {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, p.id)
}

// stop ends the command: with a ctrl-Break, and by terminating its job after
// the grace period or once hurry reports true. It returns when the command has
// ended.
func (p *process) stop(grace time.Duration, hurry func() bool) {
	p.stopping.Do(func() {
		p.signal(os.Interrupt)
		poll := time.NewTicker(10 * time.Millisecond)
		defer poll.Stop()
		for begin := time.Now(); !p.hasEnded(); {
			if time.Since(begin) >= grace || hurry() {
				_ = windows.TerminateJobObject(p.job, 1)
			}
			select {
			case <-p.ended:
			case <-poll.C:
			}
		}
	})
	<-p.ended
}
