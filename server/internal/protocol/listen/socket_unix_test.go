//go:build unix

package listen

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSocketMode: a socket has the mode that its address says, and its owner's
// alone otherwise, whatever the umask is.
func TestSocketMode(t *testing.T) {
	dir := t.TempDir()
	for _, umask := range []int{0, 0o077} {
		for text, want := range map[string]fs.FileMode{"a": 0o600, "b?mode=0660": 0o660, "c?mode=777": 0o777} {
			path, mode, err := ParseSocket(filepath.Join(dir, text))
			if err != nil {
				t.Fatal(err)
			}
			var l net.Listener
			func() {
				defer syscall.Umask(syscall.Umask(umask))
				l, err = Socket(path, mode)
			}()
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%s with umask %03o: mode %v, %v, want %v", text, umask, info.Mode().Perm(), err, want)
			}
			_ = l.Close()
		}
	}
}
