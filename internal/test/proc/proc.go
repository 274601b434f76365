// Package proc runs servers of others for tests: it finds and starts them,
// kills and suspends them, and cuts connections to them.
package proc

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// Built returns the path of a server that a script of this repository, such as
// etcd.sh, has built. It skips the test in short mode, and if the program is
// missing.
func Built(t testing.TB, script string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a server")
	}
	// The test's directory may be that of any package of any module.
	dir := must.Get(os.Getwd())(t)
	path := filepath.Join("scripts", script)
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("SKIPPED: %s not found: the module is outside its repository", path)
		}
	}
	out, err := exec.Command("sh", filepath.Join(dir, path)).Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		t.Skipf("SKIPPED: no server to test with: %s: %v", path, err)
	}
	return strings.TrimSpace(string(out))
}

// BuildGo builds the main package pkg of the module in a directory, outside of
// go.work, and returns the path of the program.
func BuildGo(t testing.TB, module, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", program, pkg)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s in %s: %v\n%s", pkg, module, err, out)
	}
	return program
}

// EtcdArgs returns the arguments of an etcd of one member whose data is in a
// directory, and which clients reach at a URL.
func EtcdArgs(t testing.TB, data, client string) []string {
	peer := "http://" + FreeAddress(t)
	return []string{
		"--name", "one", "--data-dir", data, "--log-level", "error",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "one=" + peer,
	}
}

// A Process is a program that was started. It ends with this process.
type Process struct {
	// Ended is closed when it has ended.
	Ended chan struct{}

	cmd *exec.Cmd
	log bytes.Buffer
	err error // how it ended
}

// Start starts a program. Its output is in Log.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	return StartCommand(t, exec.Command(name, args...))
}

// StartCommand is Start of a program that needs more than arguments.
func StartCommand(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Ended: make(chan struct{}), cmd: cmd}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	EndWithParent(p.cmd)
	must.Do(t, p.cmd.Start())
	go func() { p.err = p.cmd.Wait(); close(p.Ended) }()
	return p
}

// PID returns its process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends it a signal.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill kills it, even if it is suspended, and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.Ended
}

// Stop sends it a signal that asks it to end, waits until it has ended, and
// returns an error if it did not exit with 0.
func (p *Process) Stop(s os.Signal) error {
	p.Signal(s)
	<-p.Ended
	return p.err
}

// Await waits until ready reports true. It returns false once the process has
// ended, after must.Patience at the latest.
func (p *Process) Await(ready func() bool) bool {
	for begin := time.Now(); !ready(); {
		select {
		case <-p.Ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
		if time.Since(begin) > must.Patience {
			p.Kill()
		}
	}
	return true
}

// AwaitAnswer is Await until a GET of a URL is answered, with the status 200 if
// ok is set. It does not check certificates.
func (p *Process) AwaitAnswer(url string, ok bool) bool {
	anyone := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	return p.Await(func() bool {
		resp, err := (&http.Client{Transport: anyone}).Get(url)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return !ok || resp.StatusCode == http.StatusOK
	})
}

// Log returns the output of a process that has ended.
func (p *Process) Log() string { return p.log.String() }

// FreeAddress returns a loopback address with a free port. Another process may
// take it, but no connection does: the port is below those that systems choose.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.N(22_000))); err == nil {
			defer func() { _ = l.Close() }()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}
