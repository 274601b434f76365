//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firnid/firn/server/tlsconf"
)

// TestFilesThatBlock starts with a pipe without a writer in place of each file.
// Opening it must not block, because no signal would end that.
func TestFilesThatBlock(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "nothing writes to this pipe"
	for name, s := range map[string]*serving{
		"tokens":        {tokens: pipe},
		"tls-cert":      {tls: tlsconf.Files{Cert: pipe, Key: pipe}},
		"forward-token": {forwardToken: pipe},
	} {
		_, wrong := s.readGuard(nil)
		if err := wrong.error(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, _, err := readConfig(pipe); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("config: %v, want %q", err, want)
	}
}
