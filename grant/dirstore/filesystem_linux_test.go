package dirstore

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// The numbers are those of statfs(2); this repeats a few important ones.
func TestFileSystemOf(t *testing.T) {
	for magic, want := range map[uint32]fileSystem{
		0xEF53:     {"ext4", durable},
		0x58465342: {"XFS", durable},
		0x9123683E: {"Btrfs", durable},
		0x01021994: {"tmpfs", inMemory},
		0x794C7630: {"overlayfs", layered},
		0x6969:     {"NFS", remote},
		0xFF534D42: {"CIFS", remote},
		0xFE534D42: {"SMB", remote},
		0x01021997: {"9p", remote},
		0x65735546: {"FUSE", hidden},
		0x4D44:     {"FAT", torn},
		0x12345678: {"a file system of type 0x12345678", unknownUse},
	} {
		if got := fileSystemOf(magic); got != want {
			t.Errorf("fileSystemOf(%#x) = %v, want %v", magic, got, want)
		}
	}
}

// TestRealFileSystems opens stores on file systems that are certainly
// unsuitable.
func TestRealFileSystems(t *testing.T) {
	if _, err := Open("/proc/self", &Options{Create: true, AllowVolatile: true}); !errors.Is(err, ErrFileSystem) || !strings.Contains(err.Error(), "0x9fa0") {
		t.Errorf("Open in /proc = %v, want ErrFileSystem that names the type", err)
	}
	if _, err := Open("/sys/kernel/none", &Options{Create: true, AllowVolatile: true}); !errors.Is(err, ErrFileSystem) {
		t.Errorf("Open in /sys = %v, want ErrFileSystem", err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "firn")
	if err != nil {
		t.Skipf("there is no file system in memory: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := Open(dir, &Options{Create: true}); !errors.Is(err, ErrFileSystem) || !strings.Contains(err.Error(), "tmpfs") {
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
