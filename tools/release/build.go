package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// program is the package of the binary, in the module server.
const program = "./cmd/firn"

// makeBinaries builds firn for each target, from the tagged commit and the
// modules of the release: the same as go install …, without symbols.
func (r *release) makeBinaries(ctx context.Context) error {
	for _, t := range r.targets {
		r.log("       %s", t)
		path, err := r.build(ctx, t)
		if err != nil {
			return err
		}
		r.binaries[t] = path
	}
	return nil
}

// build builds firn for one target.
func (r *release) build(ctx context.Context, t target) (string, error) {
	path := filepath.Join(r.work, "bin", t.os+"_"+t.arch, "firn")
	if t.os == "windows" {
		path += ".exe"
	}
	env, err := r.goEnv(ctx)
	if err != nil {
		return "", err
	}
	env = append(env, "GOOS="+t.os, "GOARCH="+t.arch)
	_, err = command(ctx, filepath.Join(r.src, "server"), env, "go", "build", "-trimpath", "-buildvcs=true",
		"-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", path, program)
	return path, err
}

// host returns the system on which this program runs.
func host() target { return target{runtime.GOOS, runtime.GOARCH} }

// goEnv returns the environment in which the go command uses the modules of the
// release, and no settings of the caller that would change a binary. It has a
// separate module cache, so that another release of the same version cannot be
// found in it, nor this one in the caller's.
func (r *release) goEnv(ctx context.Context) ([]string, error) {
	out, err := command(ctx, r.src, []string{"GOWORK=off"}, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	cache, proxy, ok := strings.Cut(out, "\n")
	if !ok {
		return nil, fmt.Errorf("go env: unexpected answer %q", out)
	}
	return []string{
		"GOPROXY=" + fileURL(filepath.Join(r.out, "proxy")) + "," + fileURL(filepath.Join(cache, "cache", "download")) + "," + proxy,
		"GONOSUMDB=github.com/firnid", "GONOPROXY=", "GOPRIVATE=",
		"GOMODCACHE=" + filepath.Join(r.work, "modules"),
		"GOWORK=off", "GOFLAGS=-modcacherw", "GOENV=off",
		"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GODEBUG=",
	}, nil
}

// fileURL returns the URL of a directory.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return "file://" + path
}

// hostBinary returns firn for the system on which this program runs.
func (r *release) hostBinary(ctx context.Context) (string, error) {
	if path, ok := r.binaries[host()]; ok {
		return path, nil
	}
	return r.build(ctx, host())
}

// A docs holds the documentation that firn prints, by file name.
type docs struct {
	man         map[string][]byte // firn.1, firn-serve.1, …
	completions map[string][]byte // by shell
}

// makeDocs lets firn print its manual pages and completions.
func (r *release) makeDocs(ctx context.Context) error {
	firn, err := r.hostBinary(ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.work, "man")
	if _, err := command(ctx, r.work, nil, firn, "man", "--dir", dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	r.docs.man = make(map[string][]byte)
	for _, e := range entries {
		if r.docs.man[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	r.docs.completions = make(map[string][]byte)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text, err := command(ctx, r.work, nil, firn, "completion", shell)
		if err != nil {
			return err
		}
		r.docs.completions[shell] = []byte(text + "\n")
	}
	return nil
}
