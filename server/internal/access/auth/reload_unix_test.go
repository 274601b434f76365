//go:build unix

package auth

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReloadOther replaces a token file by a directory and by a pipe without a
// writer. Reload must return, and keep the tokens.
func TestReloadOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	hash := strings.Repeat("ab", 32)
	if err := os.WriteFile(path, []byte("tokens:\n  - {name: a, sha256: "+hash+", role: read}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, replace := range map[string]func() error{
		"is a directory": func() error { return os.Mkdir(path, 0o700) },
		"nothing writes": func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Reload(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if n := f.Set().Len(); n != 1 {
			t.Errorf("%d entries after %q", n, want)
		}
	}
}
