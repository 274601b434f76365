//go:build linux || darwin || windows

package dirstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/firnid/firn/grant"
)

// A dir is a disk in a real directory. It accesses files through the directory
// that was opened, whatever is at the directory's path by now.
type dir struct {
	path string
	root *os.Root
	info fs.FileInfo // of root
	perm fs.FileMode // of settled files
}

// openDir opens a directory, and creates it if that is requested. It creates
// nothing on an unsuitable file system.
func openDir(path string, o *Options) (*dir, error) {
	// The file system is that of the nearest directory that exists.
	there := path
	for {
		if _, err := os.Lstat(there); !errors.Is(err, fs.ErrNotExist) || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	info, err := os.Stat(there)
	if err != nil {
		return nil, fmt.Errorf("dirstore: open %s: %w", path, explain(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a directory", errNotStore, there)
	}
	if err := checkFileSystem(there, o.AllowVolatile); err != nil {
		return nil, err
	}
	if there != path && !o.Create {
		return nil, fmt.Errorf("%w: %s does not exist: is the path right, and the volume mounted? If no store was there "+
			"before, create one (Create, or ?create=true in a URL)",
			ErrNoStore, path)
	}
	if o.Create {
		if err := makeDir(there, path); err != nil {
			return nil, fmt.Errorf("dirstore: create %s: %w", path, explain(err))
		}
	}
	path = systemPath(path)
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("dirstore: open %s: %w", path, explain(err))
	}
	info, err = root.Stat(".")
	if err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("dirstore: open %s: %w", path, explain(err))
	}
	return &dir{path: path, root: root, info: info, perm: settledPerm(info)}, nil
}

// makeDir creates a directory, and those above it up to one that exists, and
// makes their names durable. The existing one may have just been created, by
// hand or by a process that died at this point; if its parent cannot be read,
// that is not an error.
func makeDir(existing, path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for {
		f, err := os.Open(filepath.Dir(path))
		if err == nil {
			err = errors.Join(syncDirectory(f), f.Close())
		}
		if path == existing {
			if errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return err
		}
		if err != nil {
			return err
		}
		path = filepath.Dir(path)
	}
}

// same returns an error if the path no longer leads to the directory that was
// opened. Then it was unmounted, removed, or replaced by a copy, which others
// may use.
func (d *dir) same() error {
	info, err := os.Stat(d.path)
	if err == nil && !os.SameFile(info, d.info) {
		return fmt.Errorf("dirstore: %s is no longer the directory that was opened (restored, mounted?): restart this "+
			"program to use it", d.path)
	}
	if err != nil {
		// Not wrapped, because a missing directory must not look like a missing
		// file.
		return fmt.Errorf("dirstore: the directory %s disappeared while it was in use (unmounted, removed, restored?): %v",
			d.path, err)
	}
	return nil
}

func (d *dir) names() ([]string, error) {
	if err := d.same(); err != nil {
		return nil, err
	}
	f, err := d.root.Open(".")
	if err != nil {
		return nil, d.explain(err)
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(d.explain(err), f.Close())
}

func (d *dir) read(name string) (data []byte, settled bool, err error) {
	data, settled, err = d.readFile(name)
	if gone := d.same(); gone != nil {
		return nil, false, gone
	}
	return data, settled, d.explain(err)
}

func (d *dir) readFile(name string) (data []byte, settled bool, err error) {
	f, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }()
	// The mark and the content of one file, whatever its name is by now.
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if size := info.Size(); size > maxFile {
		return nil, false, fmt.Errorf("dirstore: %s has %d bytes: %w", filepath.Join(d.path, name), size, grant.ErrDamaged)
	}
	data = make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, false, fmt.Errorf("read %s: %w", name, err)
	}
	return data, isSettled(info), nil
}

// maxFile exceeds the size of any file of a store.
const maxFile = 1 << 16

// open opens a regular file. Anything else, such as a pipe that another user of
// the group has put there, might block, or lead to another file.
func (d *dir) open(name string, flag int) (*os.File, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("dirstore: %s is not a regular file but has mode %v, remove it: %w",
			filepath.Join(d.path, name), info.Mode(), grant.ErrDamaged)
	}
	return d.root.OpenFile(name, flag|openFlags, 0)
}

func (d *dir) create(name string) (file, error) {
	f, err := d.createFile(name, os.O_WRONLY, unsettledPerm(d.perm))
	if err != nil {
		return nil, d.explain(err)
	}
	return f, nil
}

// createFile creates a file with a mode, for the directory's group regardless of
// the umask.
func (d *dir) createFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := d.root.OpenFile(name, flag|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	give(f, d.info)
	if perm&0o070 != 0 {
		if err := f.Chmod(perm); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}

func (d *dir) settle(name string) error { return settle(d, name) }

func (d *dir) rename(from, to string) error {
	if err := d.same(); err != nil {
		return grant.NotSent(err)
	}
	return d.explain(rename(d, from, to))
}

func (d *dir) remove(name string) error { return d.explain(d.root.Remove(name)) }

func (d *dir) directory() (file, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, d.explain(err)
	}
	return directoryFile{f}, nil
}

// A directoryFile is the open directory.
type directoryFile struct{ *os.File }

func (f directoryFile) Sync() error { return syncDirectory(f.File) }

func (d *dir) lock(name string) (lock, error) {
	f, err := d.open(name, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.same(); err != nil {
			return nil, err
		}
		f, err = d.createFile(name, os.O_RDWR, d.perm)
		if errors.Is(err, fs.ErrExist) { // another process has created it meanwhile
			f, err = d.open(name, os.O_RDWR)
		}
	}
	if err != nil {
		return nil, d.explain(err)
	}
	// A process of this user may have died before it shared the file with the
	// group. Another user's file cannot be changed.
	if info, err := f.Stat(); err == nil && d.perm&0o070 != 0 && info.Mode().Perm() != d.perm {
		_ = f.Chmod(d.perm)
	}
	return &fileLock{f, name, d}, nil
}

func (d *dir) close() error { return d.root.Close() }

// A fileLock is a lock on an empty file, which is never removed.
type fileLock struct {
	file *os.File
	name string
	dir  *dir
}

// try takes the lock if it is free. If somebody has removed the file since it was
// opened, other processes lock another one, and the call fails.
func (l *fileLock) try() (bool, error) {
	ok, err := tryLock(l.file)
	if !ok || err != nil {
		return false, l.dir.explain(err)
	}
	mine, err := l.file.Stat()
	if err != nil {
		return false, l.dir.explain(err)
	}
	if named, err := l.dir.root.Stat(l.name); err != nil || !os.SameFile(mine, named) {
		return false, fmt.Errorf("dirstore: %s was removed or replaced while in use: leave the files of the store alone",
			filepath.Join(l.dir.path, l.name))
	}
	return true, nil
}

// release unlocks the file before it closes it, because a child process that is
// just being started may have it open too.
func (l *fileLock) release() {
	unlock(l.file)
	_ = l.file.Close()
}

// isRefusal reports whether rename certainly changed nothing.
func isRefusal(err error) bool {
	return errors.Is(err, grant.ErrNotSent) || isFull(err) || isBusy(err) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, fs.ErrNotExist) || isReadOnly(err)
}

// explain adds the path to an error and, if known, what to do about it.
func (d *dir) explain(err error) error {
	at, isPath := errors.AsType[*fs.PathError](err)
	between, isLink := errors.AsType[*os.LinkError](err)
	if isPath && !filepath.IsAbs(at.Path) || isLink && !filepath.IsAbs(between.Old) {
		err = fmt.Errorf("dirstore: %s: %w", d.path, err)
	}
	return explain(err)
}

func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case isReadOnly(err):
		return fmt.Errorf("%w: the store must be on a file system that is mounted for writing", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: every process that uses the store must be able to read and write it, as one user or in a "+
			"group with mode 2770", err)
	case isFull(err):
		return fmt.Errorf("%w: free some space or inodes, or raise the quota; nothing was changed", err)
	}
	return err
}
