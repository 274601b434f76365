package dirstore

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestRealFileSystems opens stores on file systems that are certainly
// unsuitable.
func TestRealFileSystems(t *testing.T) {
	if _, err := openStore("/proc/self", &Options{Create: true, AllowVolatile: true}); !errors.Is(err, ErrFileSystem) || !strings.Contains(err.Error(), "0x9fa0") {
		t.Errorf("Open in /proc = %v, want ErrFileSystem that names the type", err)
	}
	if _, err := openStore("/sys/kernel/none", &Options{Create: true, AllowVolatile: true}); !errors.Is(err, ErrFileSystem) {
		t.Errorf("Open in /sys = %v, want ErrFileSystem", err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "firn")
	if err != nil {
		t.Skipf("there is no file system in memory: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := openStore(dir, &Options{Create: true}); !errors.Is(err, ErrFileSystem) || !strings.Contains(err.Error(), "tmpfs") {
		t.Errorf("Open in /dev/shm = %v, want ErrFileSystem that says tmpfs", err)
	}
	if got := tree(t, dir); len(got) > 0 {
		t.Errorf("Open has left %q", got)
	}
	s := open(t, dir+"/store")
	if ok, err := s.CAS(t.Context(), "a", nil, []byte("1")); !ok || err != nil {
		t.Errorf("CAS = %v, %v, want true", ok, err)
	}
}
