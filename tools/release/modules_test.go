package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// user returns the environment of a user with a clean module cache, the modules
// of the release, and those that the proxy has of others.
func user(t *testing.T, r *release) []string {
	t.Helper()
	env, err := r.goEnv(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return append(env,
		"GOMODCACHE="+filepath.Join(testDir, "modules"),
		"GOSUMDB=off",                   // the sums of the other modules are checked elsewhere
		"GOFLAGS=-modcacherw -trimpath", // finds packages compiled for the release again
	)
}

// TestInstall: go install makes firn from only its name and version.
func TestInstall(t *testing.T) {
	r := theRelease(t)
	env := append(user(t, r), "GOBIN="+t.TempDir())
	empty := t.TempDir()
	mustRun(t, empty, env, "go", "install", "github.com/firnid/firn/server/cmd/firn@"+testVersion)
	firn := filepath.Join(strings.TrimPrefix(env[len(env)-1], "GOBIN="), filepath.Base(r.binaries[host()]))
	if got := mustRun(t, empty, nil, firn, "version"); !strings.HasPrefix(got, "firn "+testVersion+" ") {
		t.Errorf("firn version prints %q, want version %s", got, testVersion)
	}
	if got := mustRun(t, empty, nil, firn, "next", "--node", "7", "-n", "3"); len(strings.Fields(got)) != 3 {
		t.Errorf("firn next -n 3 prints %q, want three IDs", got)
	}
}

// TestGet: each module that programs import is available alone, from an empty
// folder, and brings only what it needs.
func TestGet(t *testing.T) {
	r := theRelease(t)
	tried := 0
	for _, m := range r.modules {
		if m.dir == "server" {
			continue // TestInstall
		}
		tried++
		t.Run(filepath.Base(m.path()), func(t *testing.T) {
			env := user(t, r)
			dir := t.TempDir()
			mustRun(t, dir, env, "go", "mod", "init", "example.test/program")
			mustRun(t, dir, env, "go", "get", m.path()+"@"+testVersion)
			program := "package main\n\nimport _ \"" + m.path() + "\"\n\nfunc main() {}\n"
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
				t.Fatal(err)
			}
			packages := strings.Fields(mustRun(t, dir, env, "go", "list", "-deps", "."))
			if !slices.Contains(packages, m.path()) {
				t.Errorf("the packages of the program are %v, want %s among them", packages, m.path())
			}
			if m.dir != "" {
				return
			}
			mustRun(t, dir, env, "go", "build", "-o", os.DevNull, ".")
			modules := strings.Fields(mustRun(t, dir, env, "go", "list", "-m", "all"))
			if want := []string{"example.test/program", m.path(), testVersion}; !slices.Equal(modules, want) {
				t.Errorf("the modules of a program that imports the library are %v, want %v", modules, want)
			}
		})
	}
	t.Logf("report: go install and go get of %d modules from empty folders", tried+1)
}
