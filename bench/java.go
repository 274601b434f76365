//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// javaPeer puts a program in Java into a directory, with the libraries that the
// goals of Maven copy there from its own cache or a registry. It returns the
// words of a command that starts the program.
func javaPeer(ctx context.Context, dir, name string, program []byte, goals ...string) ([]string, error) {
	java, err := find("java")
	if err != nil {
		return nil, err
	}
	mvn, err := find("mvn")
	if err != nil {
		return nil, err
	}
	source, lib := filepath.Join(dir, name), filepath.Join(dir, "lib")
	if err := os.WriteFile(source, program, 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	get := exec.CommandContext(ctx, mvn, append([]string{"-q", "-B", "-DoutputDirectory=" + lib}, goals...)...)
	get.Dir = dir
	if text, err := get.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mvn cannot get the libraries of %s: %w: %.300s", name, err, text)
	}
	return []string{java, "-Xmx256m", "-cp", filepath.Join(lib, "*"), source}, nil
}
