package dirstore

import (
	"fmt"
	"syscall"
	"unsafe"
)

var (
	procGetVolumePathName    = kernel32.NewProc("GetVolumePathNameW")
	procGetVolumeInformation = kernel32.NewProc("GetVolumeInformationW")
	procGetDriveType         = kernel32.NewProc("GetDriveTypeW")
)

// The results of GetDriveType.
const (
	driveRemovable = 2
	driveFixed     = 3
	driveRAMDisk   = 6
)

// checkFileSystem returns nil if a store may be on the volume of path.
func checkFileSystem(path string, allowVolatile bool) error {
	p, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	var root [1 << 15]uint16
	ok, _, errno := procGetVolumePathName.Call(uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&root[0])),
		uintptr(len(root)))
	if ok == 0 {
		return fmt.Errorf("dirstore: volume of %s: %w", path, errno)
	}
	kind, _, _ := procGetDriveType.Call(uintptr(unsafe.Pointer(&root[0])))
	var name [256]uint16
	ok, _, errno = procGetVolumeInformation.Call(uintptr(unsafe.Pointer(&root[0])), 0, 0, 0, 0, 0,
		uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)))
	if ok == 0 {
		return fmt.Errorf("dirstore: file system of %s: %w", path, errno)
	}
	return fileSystemOf(syscall.UTF16ToString(name[:]), int(kind)).check(path, allowVolatile)
}

// fileSystemOf returns the file system with this name, on a volume of this
// kind.
func fileSystemOf(name string, kind int) fileSystem {
	f := fileSystem{name: name}
	switch {
	case kind == driveRAMDisk:
		f.use = volatile
	case kind != driveFixed && kind != driveRemovable: // of another machine, or read-only
	case name == "NTFS", name == "ReFS":
		f.use = durable
	}
	return f
}
