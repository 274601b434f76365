package dirstore

import (
	"fmt"
	"syscall"
)

// mntLocal is MNT_LOCAL of sys/mount.h: the file system is local to this
// machine.
const mntLocal = 0x1000

// checkFileSystem returns nil if a store may be on the file system of path.
func checkFileSystem(path string, o *Options) error {
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
	return fileSystemOf(string(name), st.Flags&mntLocal != 0).check(path, o)
}

// fileSystemOf returns the file system with the name that statfs gives.
func fileSystemOf(name string, local bool) fileSystem {
	f := fileSystem{name: name}
	switch {
	case !local:
		f.use = remote
	case name == "apfs", name == "hfs":
		f.use = durable
	case name == "tmpfs":
		f.use = inMemory
	case name == "nfs", name == "smbfs", name == "afpfs", name == "webdav", name == "acfs", name == "ftp":
		f.use = remote
	case name == "osxfuse", name == "macfuse", name == "fuse", name == "fusefs", name == "virtiofs":
		f.use = hidden
	case name == "msdos", name == "exfat":
		f.use = torn
	case name == "cd9660", name == "udf":
		f.use = readOnly
	}
	return f
}
