//go:build linux || darwin

package dirstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// Two users of the tests, and the group of both. They need no entry in the
// system's lists.
const (
	userA, userB = 64001, 64002
	sharedGroup  = 64010
	counters     = 200
)

// childEnv is set in processes that tests start, to their role.
const childEnv = "FIRN_DIRSTORE_CHILD"

func TestMain(m *testing.M) {
	roles := map[string]func() error{"share": shareStore, "try": tryStore}
	role := roles[os.Getenv(childEnv)]
	if role == nil {
		os.Exit(m.Run())
	}
	if err := role(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// start starts a process of this binary that uses a directory, as another user
// unless that is nil, with a copy of the binary beside the directory: not every
// user may read the binary. Its output is complete when wait has returned.
func start(t *testing.T, user *syscall.Credential, role, dir string) (out *bytes.Buffer, wait func()) {
	t.Helper()
	exe := must.Get(os.Executable())(t)
	out = new(bytes.Buffer)
	cmd := exec.CommandContext(t.Context(), exe)
	if user != nil {
		data, err := os.ReadFile(exe)
		cmd.Path = filepath.Join(filepath.Dir(dir), "exe")
		if _, missing := os.Stat(cmd.Path); missing != nil && err == nil {
			err = os.WriteFile(cmd.Path, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	}
	cmd.Env = append(os.Environ(), childEnv+"="+role, "FIRN_DIRSTORE_DIR="+dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	if err := cmd.Start(); err != nil {
		t.Skipf("no process of another user can be started: %v", err)
	}
	return out, func() { _ = cmd.Wait() }
}

// shareStore is a role: it adds one to each of many counters. All processes
// reach each of them at about the same time, so that they create its files at
// the same time.
func shareStore() error {
	syscall.Umask(0o077) // the strictest
	dir := os.Getenv("FIRN_DIRSTORE_DIR")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for i := range counters {
		// Each opens the store again, as short commands do.
		s, err := openStore(ctx, dir, &Options{AllowVolatile: true, Create: true})
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		key := fmt.Sprintf("counter/%03d", i)
		for {
			old, err := s.Get(ctx, key)
			if err != nil {
				return err
			}
			n := 0
			if old != nil {
				if n, err = strconv.Atoi(string(old)); err != nil {
					return err
				}
			}
			ok, err := s.CAS(ctx, key, old, strconv.AppendInt(nil, int64(n+1), 10))
			if err != nil {
				return err
			}
			if ok {
				break
			}
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// TestTwoUsers: two users share a directory that belongs to a group of both,
// with mode 2770, with any umask, and lose none of each other's writes.
func TestTwoUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of two users")
	}
	top := t.TempDir()
	dir := filepath.Join(top, "store")
	must.Do(t, errors.Join(os.Chmod(filepath.Dir(top), 0o755),
		os.Mkdir(dir, 0o700), os.Chown(dir, 0, sharedGroup), os.Chmod(dir, 0o770|os.ModeSetgid)))
	var out []*bytes.Buffer
	var waits []func()
	for _, uid := range []uint32{userA, userB, userA, userB} {
		text, wait := start(t, &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{sharedGroup}}, "share", dir)
		out, waits = append(out, text), append(waits, wait)
	}
	for _, wait := range waits {
		wait()
	}
	for _, text := range out {
		if text.Len() > 0 {
			t.Errorf("a process says: %s", text)
		}
	}
	s := open(t, dir)
	for i := range counters {
		key := fmt.Sprintf("counter/%03d", i)
		if v, err := s.Get(t.Context(), key); string(v) != "4" || err != nil {
			t.Errorf("%s = %q, %v, want 4: each of four processes adds one", key, v, err)
		}
	}
	for _, name := range tree(t, dir) {
		info := stat(t, dir+name)
		if gid := info.Sys().(*syscall.Stat_t).Gid; info.Mode().Perm() != 0o660 || gid != sharedGroup {
			t.Errorf("%s has mode %o and group %d, want 660 and %d", name, info.Mode().Perm(), gid, sharedGroup)
		}
	}
}
