package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
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

// repository is the directory of the repository.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		t.Skip("no clone of the repository: a release is made from git's objects")
	}
	return dir
}

var released = sync.OnceValues(func() (*release, error) {
	repo, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	return makeTestRelease(context.Background(), repo, filepath.Join(testDir, "release"))
})

// makeTestRelease makes a release of the working tree for the system on which
// the test runs: for six systems it would take minutes.
func makeTestRelease(ctx context.Context, repo, out string) (*release, error) {
	r, err := newRelease(options{
		version: testVersion, repo: repo, out: out, worktree: true, targets: []target{host()},
		log: func(string, ...any) {},
	})
	if err != nil {
		return nil, err
	}
	return r, r.make(ctx)
}

// theRelease returns the release that tests share.
func theRelease(t *testing.T) *release {
	t.Helper()
	repository(t)
	r, err := released()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// read reads a file.
func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// mustRun runs a program that must succeed, and returns what it prints.
func mustRun(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), dir, env, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReproducible makes the release again, elsewhere and from a clone, and
// expects the same files.
func TestReproducible(t *testing.T) {
	r := theRelease(t)
	clone := filepath.Join(t.TempDir(), "a clone with another name")
	// The commit before that of the release is the tree that was released.
	mustRun(t, testDir, nil, "git", "clone", "-q", "--shared", r.src, clone)
	mustRun(t, clone, nil, "git", "checkout", "-q", "--detach", r.commit+"^")
	out := filepath.Join(t.TempDir(), "out")
	again, err := newRelease(options{version: testVersion, repo: clone, out: out, targets: []target{host()}, log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(out) })
	if again.commit != r.commit {
		t.Errorf("the commit of the release is %s, and was %s", again.commit, r.commit)
	}
	got, want := string(read(t, filepath.Join(out, checksumsName))), string(read(t, filepath.Join(r.out, checksumsName)))
	if got != want {
		t.Errorf("checksums (-first +second):\n-%s\n+%s", strings.ReplaceAll(want, "\n", "\n-"), strings.ReplaceAll(got, "\n", "\n+"))
	}
	for _, suffix := range []string{".zip", ".mod", ".info"} {
		name := filepath.Join("proxy", "github.com", "firnid", "firn", "server", "@v", testVersion+suffix)
		if !bytes.Equal(read(t, filepath.Join(out, name)), read(t, filepath.Join(r.out, name))) {
			t.Errorf("%s differs", name)
		}
	}
	t.Logf("report: a release made twice has the same %d files", strings.Count(want, "\n"))
}

// TestChecksums: every file for download is listed, with its sum.
func TestChecksums(t *testing.T) {
	r := theRelease(t)
	var want []string
	entries, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && e.Name() != checksumsName {
			want = append(want, fmt.Sprintf("%x  %s", sha256.Sum256(read(t, filepath.Join(r.out, e.Name()))), e.Name()))
		}
	}
	got := strings.Split(strings.TrimSpace(string(read(t, filepath.Join(r.out, checksumsName)))), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", checksumsName, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	kinds := make(map[string]bool)
	for _, line := range want {
		kinds[filepath.Ext(line)] = true
	}
	wantKinds := []string{".gz", ".json", ".tar", ".tgz"}
	if runtime.GOOS == "linux" {
		wantKinds = append(wantKinds, ".deb", ".rpm")
	}
	for _, kind := range wantKinds {
		if !kinds[kind] {
			t.Errorf("the release has no %s: %v", kind, kinds)
		}
	}
}

// TestVersions: versions that Go would not find, or would take for something
// else, are rejected at once.
func TestVersions(t *testing.T) {
	for version, want := range map[string]string{
		"":           "no version",
		"1.2.3":      "write it like",
		"v1.2":       "write it like",
		"v01.2.3":    "write it like",
		"v1.2.3+git": "write it like",
		"v2.0.0":     "/v2",
	} {
		if _, err := newRelease(options{version: version}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %q: error %v, want one with %q", version, err, want)
		}
	}
	for _, version := range []string{"v0.1.0", "v1.2.3", "v1.2.3-rc.1"} {
		if _, err := newRelease(options{version: version}); err != nil {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// TestRefusals: a release contains only what was committed, and what go install
// accepts.
func TestRefusals(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "repo")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(repo, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.work", "go 1.26.0\n\nuse (\n\t.\n\t./sub\n)\n")
	write("go.mod", "module example.test/m\n\ngo 1.26.0\n")
	write("m.go", "package m\n")
	write("LICENSE", "a licence\n")
	write("sub/go.mod", "module example.test/m/sub\n\ngo 1.26.0\n\nrequire example.test/m v0.0.0\n\nreplace example.test/m => ../\n")
	write("sub/go.sum", "")
	write("sub/s.go", "package sub\n\nimport _ \"example.test/m\"\n")
	commit := func() {
		t.Helper()
		mustRun(t, repo, nil, "git", "add", "-A")
		mustRun(t, repo, nil, "git", "-c", "user.name=A", "-c", "user.email=a@example.test", "commit", "-q", "-m", "x")
	}
	mustRun(t, repo, nil, "git", "init", "-q")
	commit()
	modules := func() (*release, error) {
		out := filepath.Join(t.TempDir(), "out")
		r, err := newRelease(options{version: testVersion, repo: repo, out: out, log: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(r.work, 0o755); err != nil {
			t.Fatal(err)
		}
		return r, r.makeModules(t.Context())
	}
	r, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mustRun(t, r.src, nil, "git", "tag", "--points-at", "HEAD"), "sub/"+testVersion+"\n"+testVersion; got != want {
		t.Errorf("tags %q, want %q", got, want)
	}
	if changes := mustRun(t, r.src, nil, "git", "status", "--porcelain"); changes != "" {
		t.Errorf("the repository of the release has changes:\n%s", changes)
	}
	mod := string(read(t, filepath.Join(r.src, "sub", "go.mod")))
	if strings.Contains(mod, "replace") || !strings.Contains(mod, "example.test/m "+testVersion) {
		t.Errorf("go.mod of sub:\n%s\nwant example.test/m %s, not replaced", mod, testVersion)
	}

	write("m.go", "package m // changed\n")
	if _, err := modules(); err == nil || !strings.Contains(err.Error(), "m.go") {
		t.Errorf("release with a changed m.go: error %v, want one that names the file", err)
	}
	write("sub/go.mod", "module example.test/m/sub\n\ngo 1.26.0\n\nrequire example.test/m v0.0.0\n\nreplace example.test/m => ../\n\nreplace example.test/other => ../other\n")
	commit()
	if _, err := modules(); err == nil || !strings.Contains(err.Error(), "example.test/other") {
		t.Errorf("release with a replaced module: error %v, want one that names it", err)
	}
	write("go.mod", "module example.test/m\n\ngo 1.26.0\n\nrequire example.test/m/sub v0.0.0\n")
	commit()
	if _, err := modules(); err == nil || !strings.Contains(err.Error(), "must list before") {
		t.Errorf("release of modules that require each other: error %v, want one that says so", err)
	}
}
