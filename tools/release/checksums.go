package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checksumsName is the name of a file for sha256sum -c.
const checksumsName = "checksums.txt"

// makeChecksums writes the SHA-256 of every file that users download.
func (r *release) makeChecksums(context.Context) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries { // in order
		if e.IsDir() {
			continue
		}
		sum, err := sumOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, checksumsName), []byte(text.String()), 0o644)
}

// sumOf returns the SHA-256 of a file, in hex.
func sumOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}
