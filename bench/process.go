//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/server/e2e/etcdtest"
)

// A process is a program that the run has started and will end.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a program, which is killed if this one dies. Its stderr goes to
// log.
func start(log io.Writer, name string, args ...string) (*process, error) {
	return startCmd(exec.Command(name, args...), log)
}

// startCmd is start for a command that has its input and output already.
func startCmd(cmd *exec.Cmd, log io.Writer) (*process, error) {
	etcdtest.EndWithParent(cmd)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true // so that an interrupt reaches only this program, which ends the other
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // it was asked to stop, or killed
		close(p.ended)
	}()
	return p, nil
}

// end asks the process to stop, waits, and kills it if necessary.
func (p *process) end() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// cpu returns the processor time of all its threads so far; 0 if the system
// does not report it.
func (p *process) cpu() (sum time.Duration) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// resident returns its private memory in MiB; 0 if the system does not report
// it.
func (p *process) resident() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "VmRSS:" {
			kib, _ := strconv.ParseFloat(f[1], 64)
			return kib / 1024
		}
	}
	return 0
}

// A firnServer is a firn serve on loopback.
type firnServer struct {
	*process
	url, address string
}

// serve starts firn serve on a free port, and waits until it serves.
func serve(ctx context.Context, program string, args ...string) (*firnServer, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p, err := start(writer, program, append([]string{"serve", "--listen", "127.0.0.1:0", "--log-format", "json"}, args...)...)
	_ = writer.Close()
	if err != nil {
		_ = reader.Close()
		return nil, err
	}
	type answer struct {
		url string
		err error
	}
	found := make(chan answer, 1)
	go func() { // ends with the process, which closes its end of the pipe
		defer reader.Close()
		lines := bufio.NewScanner(reader)
		var last string
		told := false
		for lines.Scan() {
			last = lines.Text()
			var line struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" && !told {
				told = true
				found <- answer{url: line.URL}
			}
		}
		if !told {
			found <- answer{err: fmt.Errorf("firn serve ended: %s", last)}
		}
	}()
	select {
	case a := <-found:
		if a.err == nil {
			return &firnServer{p, a.url, strings.TrimPrefix(a.url, "http://")}, nil
		}
		err = a.err
	case <-time.After(20 * time.Second):
		err = errors.New("firn serve does not report that it serves")
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.end()
	return nil, err
}

// find returns the path of a program, from PATH or from the directory in which
// Debian installs servers.
func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath("/usr/sbin/" + name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// A fixture lets helpers for tests start servers here. Skips and failures
// become panics, which end the part of the run; see run.part.
type fixture struct {
	testing.TB // for the methods that are not called
	name       string
	mu         sync.Mutex
	cleanups   []func()
}

func (f *fixture) Helper()                        {}
func (f *fixture) Name() string                   { return f.name }
func (f *fixture) Log(...any)                     {}
func (f *fixture) Logf(string, ...any)            {}
func (f *fixture) Error(args ...any)              { panic(errors.New(fmt.Sprint(args...))) }
func (f *fixture) Errorf(format string, a ...any) { panic(fmt.Errorf(format, a...)) }
func (f *fixture) Fatal(args ...any)              { panic(errors.New(fmt.Sprint(args...))) }
func (f *fixture) Fatalf(format string, a ...any) { panic(fmt.Errorf(format, a...)) }
func (f *fixture) Skip(args ...any)               { panic(errors.New(fmt.Sprint(args...))) }
func (f *fixture) Skipf(format string, a ...any)  { panic(fmt.Errorf(format, a...)) }
func (f *fixture) Cleanup(g func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cleanups = append(f.cleanups, g)
}

// close runs the cleanup functions, the last one first.
func (f *fixture) close() {
	for {
		f.mu.Lock()
		n := len(f.cleanups)
		if n == 0 {
			f.mu.Unlock()
			return
		}
		g := f.cleanups[n-1]
		f.cleanups = f.cleanups[:n-1]
		f.mu.Unlock()
		g()
	}
}

// temporary creates a directory for a part of the run.
func temporary(name string) (dir string, remove func()) {
	dir = must(os.MkdirTemp("", "firn-bench-"+name))
	return dir, func() { _ = os.RemoveAll(dir) }
}

// onLinux reports whether /proc has the resource usage of processes.
func onLinux() bool { return runtime.GOOS == "linux" }
