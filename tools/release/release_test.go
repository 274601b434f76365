package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// testVersion is a version that no release has.
const testVersion = "v0.99.0"

// testDir contains what tests share.
var testDir string

func TestMain(m *testing.M) {
	var err error
	if testDir, err = os.MkdirTemp("", "firn-release-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(testDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// host returns the system on which this program runs.
func host() target { return target{runtime.GOOS, runtime.GOARCH} }

// repository is the directory of the repository.
func repository(t *testing.T) string {
	t.Helper()
	dir := must(filepath.Abs("../.."))(t)
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		t.Skip("no clone of the repository: a release is made from git's objects")
	}
	return dir
}

// command runs a program, and returns what it prints without the last newline.
// Its error contains the program's output.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, exit.Stderr, out)
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// must returns what a call has returned, and ends the test if that is an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		mustDo(t, err)
		return v
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustRun runs a program that must succeed, and returns what it prints.
func mustRun(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	return must(command(t.Context(), dir, env, name, args...))(t)
}

// read reads a file.
func read(t *testing.T, path string) []byte {
	t.Helper()
	return must(os.ReadFile(path))(t)
}

// write writes a file, and makes its directory.
func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	mustDo(t, os.MkdirAll(filepath.Dir(path), 0o755))
	mustDo(t, os.WriteFile(path, data, mode))
}

// worktree commits the files of the working tree to a clone of the repository.
var worktree = sync.OnceValues(func() (string, error) {
	repo, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	clone := filepath.Join(testDir, "clone")
	env := []string{"GIT_DIR=" + filepath.Join(clone, ".git"), "GIT_WORK_TREE=" + repo,
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.test", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.test"}
	for _, c := range []struct {
		env  []string
		args []string
	}{
		{nil, []string{"clone", "-q", "--shared", "--no-checkout", repo, clone}},
		{env, []string{"add", "-A"}},
		{env, []string{"commit", "-q", "--allow-empty", "-m", "The working tree"}},
		{nil, []string{"-C", clone, "reset", "-q", "--hard"}},
	} {
		if _, err := command(context.Background(), repo, c.env, "git", c.args...); err != nil {
			return "", err
		}
	}
	return clone, nil
})

// script runs scripts/release.sh of a clone, for the system on which the test
// runs: for six systems it would take minutes.
func script(ctx context.Context, clone, out, version string) error {
	_, err := command(ctx, clone, []string{"OUT=" + out, "TARGETS=" + host().String(), "LANGUAGES="}, "sh", "scripts/release.sh", version)
	return err
}

var released = sync.OnceValues(func() (*release, error) {
	clone, err := worktree()
	if err != nil {
		return nil, err
	}
	out := filepath.Join(testDir, "release")
	r := &release{version: testVersion, out: out}
	if err := script(context.Background(), clone, out, testVersion); err != nil {
		return nil, err
	}
	line, err := command(context.Background(), r.src(), nil, "git", "show", "-s", "--format=%H %cI")
	if err != nil {
		return nil, err
	}
	commit, date, _ := strings.Cut(line, " ")
	r.commit = commit
	at, err := time.Parse(time.RFC3339, date)
	r.time = at.UTC()
	return r, err
})

// theRelease returns the release of the working tree, which tests share.
func theRelease(t *testing.T) *release {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a release is tested on Linux")
	}
	repository(t)
	return must(released())(t)
}

// TestReproducible makes the release again, elsewhere and from another clone,
// and expects the same files.
func TestReproducible(t *testing.T) {
	r := theRelease(t)
	clone := filepath.Join(t.TempDir(), "a clone with another name")
	mustRun(t, testDir, nil, "git", "clone", "-q", "--shared", filepath.Join(testDir, "clone"), clone)
	out := filepath.Join(t.TempDir(), "out")
	mustDo(t, script(t.Context(), clone, out, testVersion))
	for _, name := range []string{"checksums.txt", "proxy/github.com/firnid/firn/server/@v/" + testVersion + ".zip", "proxy/github.com/firnid/firn/server/@v/" + testVersion + ".info"} {
		if got, want := read(t, filepath.Join(out, name)), read(t, filepath.Join(r.out, name)); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%.2000q\nwant\n%.2000q", name, got, want)
		}
	}
	if got, want := mustRun(t, filepath.Join(out, "repository"), nil, "git", "tag", "--points-at", r.commit), strings.Join(tags(), "\n"); got != want {
		t.Errorf("the commit of the release has the tags\n%s\nwant\n%s", got, want)
	}
	t.Log("report: a release made twice has the same files")
}

// tags are the tags of the published modules.
func tags() []string {
	return []string{"etcdstore/" + testVersion, "kubestore/" + testVersion, "s3store/" + testVersion, "server/" + testVersion, testVersion}
}

// TestChecksums: every file for download is listed, with its sum.
func TestChecksums(t *testing.T) {
	r := theRelease(t)
	var got, want []string
	for line := range strings.Lines(mustRun(t, r.out, nil, "sha256sum", "--check", "--strict", "checksums.txt")) {
		name, _, _ := strings.Cut(line, ":")
		got = append(got, name)
	}
	entries := must(os.ReadDir(r.out))(t)
	kinds := make(map[string]bool)
	for _, e := range entries {
		if !e.IsDir() && e.Name() != "checksums.txt" {
			want = append(want, e.Name())
			kinds[filepath.Ext(e.Name())] = true
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the checksums are of %v, want %v", got, want)
	}
	for _, kind := range []string{".deb", ".gz", ".json", ".rpm", ".tar", ".tgz"} {
		if !kinds[kind] {
			t.Errorf("the release has no %s: %v", kind, want)
		}
	}
}

// TestRefusals: versions that Go would not find, or would take for something
// else, are rejected. A release contains only what was committed, and what go
// install accepts.
func TestRefusals(t *testing.T) {
	theRelease(t)
	clone := filepath.Join(t.TempDir(), "clone")
	mustRun(t, testDir, nil, "git", "clone", "-q", "--shared", filepath.Join(testDir, "clone"), clone)
	refused := func(version, want string) {
		t.Helper()
		if err := script(t.Context(), clone, filepath.Join(t.TempDir(), "out"), version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %q: error %v, want one with %q", version, err, want)
		}
	}
	refused("", "usage")
	for _, version := range []string{"1.2.3", "v1.2", "v01.2.3", "v1.2.3+git"} {
		refused(version, "write it like")
	}
	refused("v2.0.0", "/v2")

	name := filepath.Join(clone, "server", "go.mod")
	write(t, name, append(read(t, name), "\nreplace example.test/other => ../other\n"...), 0o644)
	refused("v1.2.3-rc.1", "server/go.mod") // it is not committed
	mustRun(t, clone, nil, "git", "-c", "user.name=A", "-c", "user.email=a@example.test", "commit", "-q", "-a", "-m", "x")
	refused("v1.2.3-rc.1", "replace example.test/other")
}
