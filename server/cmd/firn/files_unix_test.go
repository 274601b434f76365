//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/server/internal/server"
)

// wantRefused wants that error for a file, whatever it is for.
func wantRefused(t *testing.T, file, want string) {
	t.Helper()
	for name, s := range map[string]*serveCmd{
		"tokens":        {Config: server.Config{TokenFile: file}},
		"tls-cert":      {Config: server.Config{TLS: tlsconf.Files{Cert: file, Key: file}}},
		"forward-token": {Config: server.Config{ForwardTokenFile: file}},
	} {
		if err := s.checkFiles().error(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := readConfig(file); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("config: %v, want %q", err, want)
	}
}

// TestUntrustedFiles: commands that make IDs refuse files and stores that every
// user may change, and say how to mend that.
func TestUntrustedFiles(t *testing.T) {
	dir := t.TempDir()
	file, store := filepath.Join(dir, "file"), filepath.Join(dir, "store")
	must.Do(t, errors.Join(os.WriteFile(file, []byte("tokens: []\n"), 0o600), os.Chmod(file, 0o602), os.Mkdir(store, 0o700), os.Chmod(store, 0o703)))
	wantRefused(t, file, "run chmod o-w "+file)
	for _, args := range []string{"next --store URL", "serve --listen 127.0.0.1:0 --store URL", "node run --store URL -- true"} {
		out, err := firnCommand(t.Context(), strings.Replace(args, "URL", "dir:"+store+"?create=true&volatile=true", 1)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "run chmod o-w "+store) {
			t.Errorf("%s: %v, %s", args, err, out)
		}
	}
}
