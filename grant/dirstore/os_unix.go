//go:build linux || darwin

package dirstore

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// readsTakeLock is false: the mode of a record's file shows readers whether
// they must wait.
const readsTakeLock = false

// settledBit is set if the owner may write a file, which is then settled.
const settledBit = 0o200

// settledPerm returns the mode of files in a directory: accessible to its
// owner, and also to its group if the group may write to the directory.
func settledPerm(dir fs.FileInfo) fs.FileMode {
	if dir.Mode()&0o020 != 0 {
		return 0o660
	}
	return 0o600
}

func unsettledPerm(perm fs.FileMode) fs.FileMode { return perm &^ 0o222 }
func isSettled(info fs.FileInfo) bool            { return info.Mode()&settledBit != 0 }

func settle(d *dir, name string) error {
	f, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(d.perm), f.Close())
}

// openFlags keep the open call from waiting for the other end of a pipe.
const openFlags = syscall.O_NONBLOCK

// give changes the owner of a new file to the directory's owner if root created
// it in the directory of another user. Otherwise a single command run by root
// would lock that user out of a record. If root may not change owners, as in
// some containers, root remains the owner.
func give(f *os.File, dir fs.FileInfo) {
	if st, ok := dir.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && os.Geteuid() == 0 {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}

func systemPath(path string) string { return path }

func rename(d *dir, from, to string) error { return d.root.Rename(from, to) }

// syncDirectory is fsync on Linux and F_FULLFSYNC on macOS.
func syncDirectory(f *os.File) error { return f.Sync() }

// tryLock takes the lock of an open file. The lock belongs to this file
// descriptor, not to the process.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch err {
		case nil:
			return true, nil
		case syscall.EWOULDBLOCK:
			return false, nil
		case syscall.EINTR:
			continue
		}
		return false, &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
}

func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// isFull reports whether the disk was full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }

// isBusy is only needed on Windows.
func isBusy(error) bool { return false }
