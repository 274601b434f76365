// Command release makes everything that a release of Firn consists of, from one
// commit: modules, binaries, archives, packages, an image and checksums. make
// release runs it; docs/release.md is its manual.
//
// It publishes nothing. Its output depends only on the commit, the version and
// the Go release, so anyone can reproduce the same files.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run parses the flags and makes the release.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var o options
	flags.StringVar(&o.version, "version", "", "`VERSION` of the release, such as v1.2.3")
	flags.StringVar(&o.repo, "repo", ".", "`DIR` of the repository")
	flags.StringVar(&o.out, "out", "", "`DIR` to write to (default build/release/VERSION in the repository)")
	flags.BoolVar(&o.worktree, "worktree", false, "release the working tree instead of the commit, for tests")
	targets := flags.String("targets", "", "`OS/ARCH,…` to build for (default all)")
	flags.BoolVar(&o.packages, "languages", true, "make the packages for other languages too, as far as their tools are installed")
	flags.StringVar(&o.key, "key", "", "secret key `FILE` of minisign, to sign the checksums")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	var err error
	if o.targets, err = parseTargets(*targets); err != nil {
		return err
	}
	if o.repo, err = filepath.Abs(o.repo); err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join(o.repo, "build", "release", o.version)
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return err
	}
	o.log = func(format string, a ...any) { fmt.Fprintf(stderr, "release: "+format+"\n", a...) }
	r, err := newRelease(o)
	if err != nil {
		return err
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is in %s. Nothing is published yet:\n\n  git -C %s push --atomic URL %s\n",
		r.version, r.out, r.src, strings.Join(r.tags(), " "))
	return err
}
