package main

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// inRoot returns a command that runs in a directory as if it were the system's
// root.
func inRoot(ctx context.Context, t *testing.T, root string, config *v1.ConfigFile, command []string, env ...string) *exec.Cmd {
	t.Helper()
	user, group, ok := strings.Cut(config.Config.User, ":")
	uid, err1 := strconv.ParseUint(user, 10, 32)
	gid, err2 := strconv.ParseUint(group, 10, 32)
	if !ok || err1 != nil || err2 != nil || uid == 0 {
		t.Fatalf("the user of the image is %q, want numbers, and not root", config.Config.User)
	}
	return chrooted(ctx, t, root, uint32(uid), uint32(gid), command, env...)
}

// chrooted returns a command that runs in a directory as if it were the
// system's root.
func chrooted(ctx context.Context, t *testing.T, root string, uid, gid uint32, command []string, env ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run a program in another root")
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd
}
