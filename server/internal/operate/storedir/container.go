package storedir

import (
	"os"
	"strings"
)

// Container returns the evidence that this process runs in a container, or
// "". A directory in a container is not shared by the machine: each replica has
// its own.
func Container() string { return containerBy(os.Getenv, os.ReadFile) }

// containerBy is Container with its inputs. The files that container engines
// create are not enough, because an image can also be started as a virtual
// machine: there the root is a whole disk.
func containerBy(getenv func(string) string, read func(string) ([]byte, error)) string {
	if getenv("KUBERNETES_SERVICE_HOST") != "" {
		return "KUBERNETES_SERVICE_HOST is set"
	}
	mounts, err := read("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	root, isDisk := rootOf(string(mounts))
	if layer := firstIn(root, "/docker/", "/containers/storage/", "containerd", "/buildkit/"); layer != "" {
		return "its root is a layer of " + strings.Trim(layer, "/")
	}
	if isDisk {
		return ""
	}
	for _, file := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := read(file); err == nil {
			return file + " exists"
		}
	}
	if cgroup, err := read("/proc/self/cgroup"); err == nil {
		of := firstIn(string(cgroup),
			"/docker/", "/docker-", "/kubepods", "/libpod", "cri-containerd-", "/crio-", "/ecs/")
		if of != "" {
			return "its control group is one of " + strings.Trim(of, "/-")
		}
	}
	return ""
}

// firstIn returns the first of the words that is in the text, or "".
func firstIn(text string, words ...string) string {
	for _, w := range words {
		if strings.Contains(text, w) {
			return w
		}
	}
	return ""
}

// rootOf returns the line about the root of these mounts, and whether it is a
// whole file system on a block device. A container's can be a directory of one.
func rootOf(mountinfo string) (root string, isDisk bool) {
	for line := range strings.Lines(mountinfo) {
		// 22 1 254:0 / / rw,relatime - ext4 /dev/vda rw; the last line applies
		before, after, ok := strings.Cut(line, " - ")
		fields, source := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) > 4 && fields[4] == "/" && len(source) > 1 {
			root, isDisk = line, strings.HasPrefix(source[1], "/dev/") && fields[3] == "/"
		}
	}
	return root, isDisk
}
