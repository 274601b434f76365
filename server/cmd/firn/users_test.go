//go:build linux || darwin

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/distinct"
)

// Users of the tests, and a group that all but the last are in. They need no
// entry in the system's lists.
const (
	userAna, userBen, userCarl = 64101, 64102, 64103
	groupOfBoth                = 64110
)

// A household is a machine with these users, each with a home, and a directory
// that is the machine's.
type household struct {
	t            *testing.T
	exe, machine string
	homes        map[uint32]string
}

func newHousehold(t *testing.T) *household {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of several users")
	}
	top := t.TempDir()
	h := &household{t: t, exe: filepath.Join(top, "firn"), machine: filepath.Join(top, "var", "firn"), homes: make(map[uint32]string)}
	exe := must.Get(os.Executable())(t)
	data := must.Get(os.ReadFile(exe))(t)
	err := errors.Join(os.Chmod(filepath.Dir(top), 0o755), os.WriteFile(h.exe, data, 0o755), os.Mkdir(filepath.Dir(h.machine), 0o755))
	for _, uid := range []uint32{userAna, userBen, userCarl} {
		home := filepath.Join(top, "home"+string(rune('a'+uid-userAna)))
		h.homes[uid] = home
		err = errors.Join(err, os.Mkdir(home, 0o700), os.Chown(home, int(uid), int(uid)))
	}
	must.Do(t, err)
	return h
}

// share makes the machine's directory as the hint says.
func (h *household) share(mode fs.FileMode) {
	h.t.Helper()
	err := os.MkdirAll(h.machine, 0o700)
	if err = errors.Join(err, os.Chown(h.machine, 0, groupOfBoth), os.Chmod(h.machine, mode)); err != nil {
		h.t.Fatal(err)
	}
}

// A userCommand is a command that a user has typed.
type userCommand struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// start has a user type a command, with the strictest umask.
func (h *household) start(uid uint32, env []string, args ...string) *userCommand {
	h.t.Helper()
	groups := []uint32{groupOfBoth}
	if uid == userCarl {
		groups = []uint32{uid}
	}
	p := &userCommand{cmd: exec.CommandContext(h.t.Context(), "sh", "-c", `umask 077; exec "$0" "$@"`, h.exe)}
	p.cmd.Args = append(p.cmd.Args, args...)
	p.cmd.Env = append([]string{"HOME=" + h.homes[uid], machineEnv + "=" + h.machine, "GORACE=atexit_sleep_ms=0"}, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: groups}}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = h.homes[uid], &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		h.t.Skipf("no process of another user can be started: %v", err)
	}
	return p
}

// end waits for the command, and returns how it ends.
func (p *userCommand) end() int {
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// TestUsersOfOneMachine: with --store machine no two IDs of two users are
// equal. Without it each user has a store of their own, and a note names the
// machine's.
func TestUsersOfOneMachine(t *testing.T) {
	h := newHousehold(t)
	next := func(uid uint32, env []string, args ...string) *userCommand {
		return h.start(uid, env, append([]string{"next", "-n", "20000"}, args...)...)
	}

	// The directory is not there: no store is made.
	p := next(userAna, nil, "--store", "machine")
	if code := p.end(); code != exitFailed || !strings.Contains(p.stderr.String(), "no such file or directory\nfirn: hint: an administrator") {
		t.Errorf("without the directory it ends with %d: %s", code, &p.stderr)
	}
	if _, err := os.Stat(h.machine); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was made: %v", h.machine, err)
	}

	// It is root's alone.
	h.share(0o700)
	p = next(userAna, nil, "--store", "machine")
	if code := p.end(); code != exitFailed || !strings.Contains(p.stderr.String(), "permission denied") || !strings.Contains(p.stderr.String(), "docs/stores.md") {
		t.Errorf("in root's directory it ends with %d: %s", code, &p.stderr)
	}
	if strings.Contains(p.stderr.String(), "run them as one user") {
		t.Errorf("what to do is printed twice: %s", &p.stderr)
	}

	// All users who are in its group share it, however they name it.
	h.share(0o770 | fs.ModeSetgid)
	var ids distinct.IDs[string]
	var all []*userCommand
	for range 2 {
		all = append(all, next(userAna, nil, "--store", "machine"), next(userBen, []string{"FIRN_STORE=machine"}))
	}
	for _, p := range all {
		if code := p.end(); code != exitFine {
			t.Errorf("it ends with %d: %s", code, &p.stderr)
		}
		ids.Add(t, p.cmd.Dir, strings.Fields(p.stdout.String())...)
	}
	if want := len(all) * 20000; ids.Len() != want {
		t.Errorf("there are %d IDs, want %d", ids.Len(), want)
	}

	// One who is not in the group.
	p = next(userCarl, nil, "--store", "machine")
	if code := p.end(); code != exitFailed || !strings.Contains(p.stderr.String(), "permission denied: every process") {
		t.Errorf("for a user who is not in the group it ends with %d: %s", code, &p.stderr)
	}

	// A service may have no home, or one that is not its own.
	for home, want := range map[string][2]string{
		"":  {"neither XDG_STATE_HOME nor HOME is set", "hint: name a store"},
		"/": {"permission denied", "another store will do: --store machine"},
	} {
		p = next(userAna, []string{"HOME=" + home})
		if code := p.end(); code != exitFailed || !strings.Contains(p.stderr.String(), want[0]) || !strings.Contains(p.stderr.String(), want[1]) {
			t.Errorf("with HOME=%q it ends with %d: %s", home, code, &p.stderr)
		}
	}

	// A store that is named, and one that is not.
	p = next(userBen, nil, "--store", "dir:"+filepath.Join(h.homes[userBen], "x")+"?create=true&volatile=true")
	if code := p.end(); code != exitFine || p.stderr.Len() > 0 {
		t.Errorf("with a store that is named it ends with %d: %s", code, &p.stderr)
	}
	p = next(userBen, nil)
	if code := p.end(); code == exitFailed && strings.Contains(p.stderr.String(), "?volatile=true") {
		t.Skip("the directory of the tests is on a file system that does not last")
	} else if want := "its IDs may collide with those of the machine's store, " + h.machine + " (--store machine)"; code != exitFine || !strings.Contains(p.stderr.String(), want) {
		t.Errorf("without a store it ends with %d: %s, want %q", code, &p.stderr, want)
	}

	// A file older than the sharing: the command in docs/stores.md mends that.
	record := filepath.Join(h.machine, "rec+v1+default+config")
	must.Do(t, errors.Join(os.Chown(record, 0, 0), os.Chmod(record, 0o600)))
	p = next(userAna, nil, "--store", "machine")
	if code := p.end(); code != exitFailed || !strings.Contains(p.stderr.String(), "rec+v1+default+config: permission denied") {
		t.Errorf("with a file that is not the group's it ends with %d: %s", code, &p.stderr)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "stores.md"))
	if err != nil {
		t.Skip("the module stands alone, without docs")
	}
	_, command, _ := strings.Cut(string(page), "sudo sh -c 'chgrp -R firn /var/lib/firn")
	command, _, _ = strings.Cut(command, "'\n")
	command = "chgrp -R 64110 " + h.machine + strings.ReplaceAll(command, "/var/lib/firn", h.machine)
	if out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", command, err, out)
	}
	if p = next(userAna, nil, "--store", "machine"); p.end() != exitFine {
		t.Errorf("after %s: %s", command, &p.stderr)
	}
}
