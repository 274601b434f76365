package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
)

func TestRootOf(t *testing.T) {
	for _, tt := range []struct {
		mounts string
		want   bool
	}{
		{"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n23 22 0:20 / /proc rw - proc proc rw\n", true},
		{"600 500 0:50 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/var/lib/docker\n23 22 0:20 / /data rw - ext4 /dev/sda1 rw\n", false},
		{"1 1 0:2 / / rw - rootfs rootfs rw\n22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n", true},
		{"", false},
		{"nonsense", false},
	} {
		if _, got := rootOf(tt.mounts); got != tt.want {
			t.Errorf("rootOf(%q) = %t, want %t", tt.mounts, got, tt.want)
		}
	}
}

// TestContainerBy: what a container is recognised by, and what is none.
func TestContainerBy(t *testing.T) {
	const (
		disk    = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
		overlay = "600 500 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/x\n"
	)
	for _, tt := range []struct {
		name  string
		env   string
		files map[string]string
		want  string
	}{
		{"a machine", "", map[string]string{"/proc/self/mountinfo": disk, "/proc/self/cgroup": "0::/user.slice\n"}, ""},
		{"no /proc", "", map[string]string{"/.dockerenv": ""}, ""},
		{"an image as a virtual machine", "", map[string]string{"/proc/self/mountinfo": disk, "/.dockerenv": ""}, ""},
		{"a live system", "", map[string]string{"/proc/self/mountinfo": overlay, "/proc/self/cgroup": "0::/init.scope\n"}, ""},
		{"kubernetes", "10.0.0.1", map[string]string{"/proc/self/mountinfo": disk}, "KUBERNETES_SERVICE_HOST is set"},
		{"docker", "", map[string]string{"/proc/self/mountinfo": overlay, "/.dockerenv": ""}, "/.dockerenv exists"},
		{"podman", "", map[string]string{"/proc/self/mountinfo": overlay, "/run/.containerenv": ""}, "/run/.containerenv exists"},
		{"docker on btrfs", "", map[string]string{"/proc/self/mountinfo": "9 1 0:50 /@/docker/btrfs/subvolumes/1f / rw - btrfs /dev/sda2 rw\n", "/.dockerenv": ""}, "its root is a layer of docker"},
		{"containerd", "", map[string]string{"/proc/self/mountinfo": "9 1 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/1/fs\n"}, "its root is a layer of containerd"},
		{"a control group", "", map[string]string{"/proc/self/mountinfo": overlay, "/proc/self/cgroup": "1:cpu:/ecs/task/1f\n"}, "its control group is one of ecs"},
	} {
		got := containerBy(func(name string) string {
			return map[string]string{"KUBERNETES_SERVICE_HOST": tt.env}[name]
		}, func(name string) ([]byte, error) {
			if text, ok := tt.files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		})
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestContainer: no command makes a store of its own in a container.
func TestContainer(t *testing.T) {
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"next"}, {"sequencer", "create", "a"}} {
		a, _, stderr := serveApp(t)
		a.getenv = func(string) string { return "" }
		a.container = func() string { return "/.dockerenv exists" }
		if code := run(t.Context(), a, args); code != exitMisuse {
			t.Errorf("firn %v in a container ends with %d, want %d: %s", args, code, exitMisuse, stderr)
		}
		for _, text := range []string{"/.dockerenv exists", "each replica would make the same IDs", "hint: share one store", "--store", "--node"} {
			if !strings.Contains(stderr.String(), text) {
				t.Errorf("firn %v in a container does not say %q:\n%s", args, text, stderr)
			}
		}
	}
}

// TestDirWords: no error of a directory names an option of the package, which nobody has who
// runs the program.
func TestDirWords(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	type row struct {
		path, want string
		is         error
	}
	rows := []row{
		{filepath.Join(dir, "none") + "?volatile=true", "?create=true makes it", dirstore.ErrNoStore},
		{filepath.Join(dir, "empty") + "?volatile=true", "?create=true makes it", dirstore.ErrNoStore},
	}
	if runtime.GOOS == "linux" {
		rows = append(rows, row{"/proc/x?create=true&volatile=true", "use a local disk", dirstore.ErrFileSystem})
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && runtime.GOOS == "linux" {
		rows = append(rows, row{"/dev/shm/firn-none", "add ?volatile=true", dirstore.ErrFileSystem})
	}
	for _, r := range rows {
		_, err := openStoreURL(t.Context(), "dir:"+r.path, false, storeNews{})
		if err == nil || !errors.Is(err, r.is) || !strings.Contains(err.Error(), r.want) {
			t.Errorf("dir:%s: %v, want %q", r.path, err, r.want)
			continue
		}
		for _, option := range []string{"Options", "AllowVolatile", "AnyFileSystem"} {
			if strings.Contains(err.Error(), option) {
				t.Errorf("dir:%s: %v names %s", r.path, err, option)
			}
		}
	}
}

// TestNameOf: layouts that differ have names that differ and that a store takes.
func TestNameOf(t *testing.T) {
	seen := make(map[string]string)
	for _, text := range []string{
		"default", "default,epoch=0", "default,node-bits=8,seq-bits=14", "hazelcast", "hazelcast,epoch=0", "uuidv7",
		"bits=time:41.node:10.seq:12,unit=1ms,epoch=0", "bits=time:41.node:10.seq:12,unit=2ms,epoch=0", "lable,mode=time-sequential,cluster=3",
	} {
		l, err := firn.ParseLayout(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		name := nameOf(l)
		if err := grant.CheckName(name); err != nil {
			t.Error(err)
		}
		if before, ok := seen[name]; ok && firn.MustParseLayout(before) != l {
			t.Errorf("%s and %s both have the name %s", before, text, name)
		}
		seen[name] = text
	}
	if got := nameOf(firn.Default()); got != "default" {
		t.Errorf("the name of the default is %q", got)
	}
}
