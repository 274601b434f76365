package storedir

import (
	"io/fs"
	"testing"
)

// TestContainerBy: what shows that this is a container, and what does not.
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
		{"a disk above the first root", "", map[string]string{"/proc/self/mountinfo": "1 1 0:2 / / rw - rootfs rootfs rw\n" + disk, "/.dockerenv": ""}, ""},
		{"a volume on a disk", "", map[string]string{"/proc/self/mountinfo": overlay + "23 22 0:20 / /data rw - ext4 /dev/sda1 rw\n", "/.dockerenv": ""}, "/.dockerenv exists"},
		{"a live system", "", map[string]string{"/proc/self/mountinfo": overlay, "/proc/self/cgroup": "0::/init.scope\n"}, ""},
		{"kubernetes", "10.0.0.1", map[string]string{"/proc/self/mountinfo": disk}, "KUBERNETES_SERVICE_HOST is set"},
		{"docker", "", map[string]string{"/proc/self/mountinfo": overlay, "/.dockerenv": ""}, "/.dockerenv exists"},
		{"podman", "", map[string]string{"/proc/self/mountinfo": overlay, "/run/.containerenv": ""}, "/run/.containerenv exists"},
		{"docker on btrfs", "", map[string]string{"/proc/self/mountinfo": "9 1 0:50 /@/docker/btrfs/subvolumes/1f / rw - btrfs /dev/sda2 rw\n", "/.dockerenv": ""}, "its root is a layer of docker"},
		{"docker on vfs", "", map[string]string{"/proc/self/mountinfo": "9 1 254:0 /data/vfs/dir/1f / rw - ext4 /dev/vda rw\n", "/.dockerenv": ""}, "/.dockerenv exists"},
		{"a machine on btrfs", "", map[string]string{"/proc/self/mountinfo": "9 1 0:50 /@ / rw - btrfs /dev/sda2 rw\n", "/proc/self/cgroup": "0::/user.slice\n"}, ""},
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
