package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// options are the settings of a release.
type options struct {
	version  string // with the v
	repo     string
	out      string
	worktree bool
	targets  []target
	packages bool   // those of other languages too
	key      string // a secret key of minisign, or ""
	log      func(format string, a ...any)
}

// A release is a release in progress.
type release struct {
	options

	// Intermediate files are below work, except for src: that repository
	// contains the commit and the tags, which are pushed from it.
	work, src string

	time    time.Time // of the commit, and of every file
	commit  string
	modules []*goModule

	binaries map[target]string
	docs     docs
}

// A target is a system for which firn is built.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// allTargets are the systems of a release.
var allTargets = [...]target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// parseTargets parses OS/ARCH,…; an empty text means all.
func parseTargets(text string) ([]target, error) {
	if text == "" {
		return allTargets[:], nil
	}
	var all []target
	for part := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(allTargets[:], func(t target) bool { return t.String() == part })
		if i < 0 {
			return nil, fmt.Errorf("unknown target %q: choose from %v", part, allTargets)
		}
		all = append(all, allTargets[i])
	}
	return all, nil
}

// newRelease checks the version.
func newRelease(o options) (*release, error) {
	switch v := o.version; {
	case v == "":
		return nil, errors.New("no version: pass one, as in make release VERSION=v1.2.3")
	case semver.Canonical(v) != v:
		return nil, fmt.Errorf("version %q: write it like v1.2.3 or v1.2.3-rc.1", v)
	case semver.Compare(semver.Major(v), "v1") > 0:
		return nil, fmt.Errorf("version %q: Go needs /%s at the end of every module path first", v, semver.Major(v))
	}
	return &release{
		options:  o,
		work:     filepath.Join(o.out, "work"),
		src:      filepath.Join(o.out, "repository"),
		binaries: make(map[target]string),
	}, nil
}

// number returns the version without the v, for file names and packages.
func (r *release) number() string { return r.version[1:] }

// make makes everything. It starts with an empty directory.
func (r *release) make(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.work, 0o755); err != nil {
		return err
	}
	type step struct {
		name string
		do   func(context.Context) error
	}
	steps := []step{
		{"commit and modules", r.makeModules},
		{"binaries", r.makeBinaries},
		{"manual pages and completions", r.makeDocs},
		{"archives", r.makeArchives},
		{"packages", r.makePackages},
		{"image", r.makeImage},
		{"bills of materials", r.makeSBOMs},
		{"deployment files", r.makeDeploy},
	}
	if r.packages {
		steps = append(steps, step{"packages for other languages", r.makeLanguages})
	}
	steps = append(steps, step{"checksums", r.makeChecksums})
	if r.key != "" {
		steps = append(steps, step{"signature", r.sign})
	}
	begin := time.Now()
	for i, step := range steps {
		r.log("%2d/%d  %s", i+1, len(steps), step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	r.log("done in %v", time.Since(begin).Round(time.Second))
	return os.RemoveAll(r.work)
}
