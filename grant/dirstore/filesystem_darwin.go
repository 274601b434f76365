package dirstore

import (
	"fmt"
	"syscall"
)

// mntLocal is MNT_LOCAL of sys/mount.h: the file system is local to this
// machine.
const mntLocal = 0x1000

// checkFileSystem returns nil if a store may be on the file system of path.
func checkFileSystem(path string, allowVolatile bool) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return fmt.Errorf("dirstore: statfs %s: %w", path, err)
	}
	var name []byte
	for _, c := range st.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	return fileSystemOf(string(name), st.Flags&mntLocal != 0).check(path, allowVolatile)
}

// fileSystemOf returns the file system with the name that statfs gives.
func fileSystemOf(name string, local bool) fileSystem {
	f := fileSystem{name: name}
	switch {
	case !local:
	case name == "apfs", name == "hfs":
		f.use = durable
	case name == "tmpfs":
		f.use = volatile
	}
	return f
}
