package dirstore

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
)

// TestRealFileSystems opens stores on file systems that are certainly
// unsuitable.
func TestRealFileSystems(t *testing.T) {
	if _, err := openStore(t.Context(), "/proc/self", &Options{Create: true, AllowVolatile: true}); !errors.Is(err, grant.ErrUnfit) || !strings.Contains(err.Error(), "0x9fa0") {
		t.Errorf("Open in /proc = %v, want ErrUnfit that names the type", err)
	}
	if _, err := openStore(t.Context(), "/sys/kernel/none", &Options{Create: true, AllowVolatile: true}); !errors.Is(err, grant.ErrUnfit) {
		t.Errorf("Open in /sys = %v, want ErrUnfit", err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "firn")
	if err != nil {
		t.Skipf("there is no file system in memory: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := openStore(t.Context(), dir, &Options{Create: true}); !errors.Is(err, grant.ErrUnfit) || !strings.Contains(err.Error(), "tmpfs") {
		t.Errorf("Open in /dev/shm = %v, want ErrUnfit that says tmpfs", err)
	}
	if got := tree(t, dir); len(got) > 0 {
		t.Errorf("Open has left %q", got)
	}
	s := open(t, dir+"/store")
	mustCAS(t, s, "a", "", "1")
}
