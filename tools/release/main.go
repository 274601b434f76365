// Command release writes those files of a release for which no program that
// everyone has is at hand: archives, the image, bills of materials and the files
// of deploy/. scripts/release.sh builds everything else and runs it;
// docs/release.md is its manual.
//
// Its output depends only on its input, so anyone can reproduce the same files.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run writes the files.
func run(args []string) error {
	if len(args) < 4 {
		return errors.New("usage: release VERSION COMMIT OUT OS/ARCH…")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH, the time of the commit: %w", err)
	}
	r := &release{version: args[0], commit: args[1], out: args[2], time: time.Unix(seconds, 0).UTC()}
	for _, arg := range args[3:] {
		system, arch, _ := strings.Cut(arg, "/")
		r.targets = append(r.targets, target{system, arch})
	}
	for _, write := range []func() error{r.makeArchives, r.makeImage, r.makeSBOMs, r.makeDeploy} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// A release is a release in progress.
type release struct {
	version string // with the v
	commit  string
	time    time.Time // of the commit, and of every file
	out     string    // where files are written to
	targets []target
}

// src is a directory with the commit.
func (r *release) src() string { return filepath.Join(r.out, "repository") }

// work is a directory with the binaries, and with what archives also contain.
func (r *release) work() string { return filepath.Join(r.out, "parts") }

// A target is a system for which firn is built.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// number returns the version without the v, for file names and packages.
func (r *release) number() string { return r.version[1:] }

// name returns the base name of a target's files, such as
// firn_1.2.3_linux_amd64.
func (r *release) name(t target) string {
	return "firn_" + r.number() + "_" + t.os + "_" + t.arch
}

// binary returns the file of a target's binary.
func (r *release) binary(t target) string {
	name := "firn"
	if t.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.work(), "bin", t.os, t.arch, name)
}
