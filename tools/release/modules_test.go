package main

import (
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
	settings := strings.Fields(mustRun(t, r.src(), nil, "go", "env", "GOMODCACHE", "GOPROXY"))
	return []string{
		"GOPROXY=file://" + filepath.Join(r.out, "proxy") + ",file://" + filepath.Join(settings[0], "cache", "download") + "," + settings[1],
		"GOMODCACHE=" + filepath.Join(testDir, "modules"),
		"GONOSUMDB=github.com/firnid", "GONOPROXY=none", "GOSUMDB=off", // the sums of the other modules are checked elsewhere
		"GOWORK=off", "CGO_ENABLED=0",
		"GOFLAGS=-modcacherw -trimpath -tags=grpcnotrace", // finds packages compiled for the release again
	}
}

// TestInstall: go install makes firn from only its name and version.
func TestInstall(t *testing.T) {
	r := theRelease(t)
	bin := t.TempDir()
	mustRun(t, t.TempDir(), append(user(t, r), "GOBIN="+bin), "go", "install", "github.com/firnid/firn/server/cmd/firn@"+testVersion)
	firn := filepath.Join(bin, filepath.Base(r.binary(host())))
	if got := mustRun(t, bin, nil, firn, "version"); !strings.HasPrefix(got, "firn "+testVersion+" ") {
		t.Errorf("firn version prints %q, want version %s", got, testVersion)
	}
	if got := mustRun(t, bin, nil, firn, "next", "--node", "7", "-n", "3"); len(strings.Fields(got)) != 3 {
		t.Errorf("firn next -n 3 prints %q, want three IDs", got)
	}
}

// TestGet: each module that programs import is available alone, from an empty
// folder, and brings only what it needs.
func TestGet(t *testing.T) {
	r := theRelease(t)
	for _, module := range []string{"github.com/firnid/firn", "github.com/firnid/firn/etcdstore", "github.com/firnid/firn/kubestore", "github.com/firnid/firn/s3store"} {
		t.Run(filepath.Base(module), func(t *testing.T) {
			env, dir := user(t, r), t.TempDir()
			mustRun(t, dir, env, "go", "mod", "init", "example.test/program")
			mustRun(t, dir, env, "go", "get", module+"@"+testVersion)
			program := "package main\n\nimport _ \"" + module + "\"\n\nfunc main() {}\n"
			write(t, filepath.Join(dir, "main.go"), []byte(program), 0o644)
			packages := strings.Fields(mustRun(t, dir, env, "go", "list", "-deps", "."))
			if !slices.Contains(packages, module) {
				t.Errorf("the packages of the program are %v, want %s among them", packages, module)
			}
			if module != "github.com/firnid/firn" {
				return
			}
			mustRun(t, dir, env, "go", "build", "-o", os.DevNull, ".")
			modules := strings.Fields(mustRun(t, dir, env, "go", "list", "-m", "all"))
			if want := []string{"example.test/program", module, testVersion}; !slices.Equal(modules, want) {
				t.Errorf("the modules of a program that imports the library are %v, want %v", modules, want)
			}
		})
	}
}
