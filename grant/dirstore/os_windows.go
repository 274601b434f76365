package dirstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

// readsTakeLock is true: a file that is being read cannot be replaced, and
// there is no mark.
const readsTakeLock = true

// settledPerm and unsettledPerm make no difference: every file counts as
// settled. A rename that is written through has no moment at which others see it
// before it is durable. A process that is terminated does not leave the call
// before it is complete, and readers wait for the lock of the writer.
func settledPerm(fs.FileInfo) fs.FileMode        { return 0o600 }
func unsettledPerm(perm fs.FileMode) fs.FileMode { return perm }
func isSettled(fs.FileInfo) bool                 { return true }

func settle(*dir, string) error { return nil }

// openFlags is 0: a directory has no pipes.
const openFlags = 0

// give does nothing: permissions of a file are inherited from its directory.
func give(*os.File, fs.FileInfo) {}

// systemPath returns the path in the form without the limit of 260 characters.
func systemPath(path string) string {
	if strings.HasPrefix(path, `\\`) {
		return path
	}
	return `\\?\` + path
}

var (
	kernel32         = syscall.NewLazyDLL("kernel32.dll")
	procMoveFileEx   = kernel32.NewProc("MoveFileExW")
	procLockFileEx   = kernel32.NewProc("LockFileEx")
	procUnlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	moveReplaceExisting = 0x1
	moveWriteThrough    = 0x8

	lockFailImmediately = 0x1
	lockExclusive       = 0x2

	errorSharingViolation = syscall.Errno(32)
	errorLockViolation    = syscall.Errno(33)
	errorHandleDiskFull   = syscall.Errno(39)
	errorDiskFull         = syscall.Errno(112)
	errorWriteProtect     = syscall.Errno(19)
	errorDiskQuota        = syscall.Errno(1295)
)

// rename returns when the rename is on disk. NTFS writes name changes in order,
// so those made before it are on disk too.
func rename(d *dir, from, to string) error {
	from, to = filepath.Join(d.path, from), filepath.Join(d.path, to)
	f, err := syscall.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	t, err := syscall.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	ok, _, errno := procMoveFileEx.Call(uintptr(unsafe.Pointer(f)), uintptr(unsafe.Pointer(t)),
		moveReplaceExisting|moveWriteThrough)
	if ok == 0 {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: errno}
	}
	return nil
}

// syncDirectory does nothing: Windows cannot sync a directory; see rename.
func syncDirectory(*os.File) error { return nil }

// tryLock locks the first byte of a file, which need not exist.
func tryLock(f *os.File) (bool, error) {
	var at syscall.Overlapped
	ok, _, errno := procLockFileEx.Call(f.Fd(), lockExclusive|lockFailImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return true, nil
	case errors.Is(errno, errorLockViolation), errors.Is(errno, syscall.ERROR_IO_PENDING):
		return false, nil
	}
	return false, &fs.PathError{Op: "LockFileEx", Path: f.Name(), Err: errno}
}

func unlock(f *os.File) {
	var at syscall.Overlapped
	_, _, _ = procUnlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&at)))
}

func isFull(err error) bool {
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull) || errors.Is(err, errorDiskQuota)
}

func isReadOnly(err error) bool { return errors.Is(err, errorWriteProtect) }

// isBusy reports whether another process has a file open. If that is a virus
// scanner, the error may also be a missing permission.
func isBusy(err error) bool {
	return errors.Is(err, errorSharingViolation) || errors.Is(err, errorLockViolation) ||
		errors.Is(err, syscall.ERROR_ACCESS_DENIED)
}
