package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// languages are the directories below sdk, and the program that each needs.
var languages = [][2]string{{"python", "python3"}, {"typescript", "npm"}, {"java", "mvn"}}

// makeLanguages makes the packages for other languages. Each script also
// installs what it has made into an empty environment. Without the tools of a
// language, its package is left out, and the log says so.
func (r *release) makeLanguages(ctx context.Context) error {
	env := []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix())}
	for _, l := range languages {
		if _, err := exec.LookPath(l[1]); err != nil {
			r.log("       %s: left out, %s is not installed", l[0], l[1])
			continue
		}
		r.log("       %s", l[0])
		if _, err := command(ctx, filepath.Join(r.src, "sdk", l[0]), env, "sh", "build.sh", r.out, r.version); err != nil {
			return fmt.Errorf("%s: %w", l[0], err)
		}
	}
	return nil
}

// sign signs the checksums with minisign, which asks for the key's password.
func (r *release) sign(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "minisign", "-S", "-s", r.key, "-m", filepath.Join(r.out, checksumsName), "-t", "firn "+r.version)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr
	return cmd.Run()
}
