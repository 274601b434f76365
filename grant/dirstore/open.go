package dirstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Options are what Open can be told. The zero Options and nil mean the
// defaults.
type Options struct {
	// Create makes the directory, with mode 0700, and the store in it, where
	// there is none yet. Without it a path with a typing error, or a volume
	// that is not mounted, is an error that is ErrNoStore, and not a new store
	// that knows of no ID ever made.
	Create bool

	// AllowVolatile accepts a directory that does not last: in memory, where
	// it is gone when the machine starts again, or in a container's own layer,
	// where it is gone with the container and no other container sees it. It is
	// right for tests, and where IDs need not differ from those of the life
	// before. All processes must still share the one directory.
	AllowVolatile bool

	// AnyFileSystem accepts any file system, also one that Open does not know
	// or knows to be unfit. Whoever sets it has made sure that locks (flock,
	// LockFileEx) exclude every process that will ever use the directory, on
	// whatever machine, and that fsync and rename keep what they promise when
	// the power fails.
	AnyFileSystem bool
}

// Open opens the store in a directory. Many Stores, of one process or several,
// may have the same directory open.
//
// All processes must be able to read and write the store's files. That is so
// for processes of one user. For several users, make a directory that belongs
// to a group they share, with mode 2770: the files are then the group's too.
// Files that root makes in the directory of another user belong to that user.
func Open(path string, o *Options) (*Store, error) {
	if o == nil {
		o = new(Options)
	}
	if path == "" {
		return nil, errors.New("dirstore: the path of the directory is empty")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("dirstore: %w", err)
	}
	d, err := openDir(path, o)
	if err != nil {
		return nil, err
	}
	s, err := openDisk(d, path, o.Create)
	if err != nil {
		_ = d.close()
		return nil, err
	}
	return s, nil
}

// openDisk opens the store on a disk.
func openDisk(d disk, path string, create bool) (*Store, error) {
	s := &Store{disk: d, path: path, closing: make(chan struct{})}
	found, err := s.readMarker()
	if err != nil {
		return nil, err
	}
	if !found {
		if err := s.mayCreate(create); err != nil {
			// Unless another process has created it a moment ago.
			if again, markerErr := s.readMarker(); !again || markerErr != nil {
				return nil, err
			}
		}
	}
	if err := s.prepare(found); err != nil {
		return nil, err
	}
	s.sweep()
	return s, nil
}

// prepare probes the directory, and makes the store if it is not there yet.
func (s *Store) prepare(found bool) error {
	// The marker's own lock. Whoever has it does not keep it: it is waited for
	// without a context, but not for ever.
	limit := 10 * time.Second
	if found {
		limit = 100 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	unlock, err := s.lock(ctx, "")
	if found && errors.Is(err, context.DeadlineExceeded) {
		return nil // another process probes, and has perhaps been stopped there
	}
	if err != nil {
		return fmt.Errorf("dirstore: open %s: %w", s.path, err)
	}
	defer unlock()
	if err := s.probe(); err != nil {
		return fmt.Errorf("dirstore: open %s: %w", s.path, err)
	}
	if found, err = s.readMarker(); found || err != nil {
		return err
	}
	if err := s.writeMarker(); err != nil {
		return fmt.Errorf("dirstore: create %s: %w", s.path, err)
	}
	return nil
}

// The marker begins with markerForm; the rest is for people. A later form of
// the store has a greater number.
const (
	markerForm    = "firn dirstore format "
	markerVersion = 1
	markerText    = `
This directory is a store of Firn, for processes of one machine. Its files say which IDs may have been made. Do not change, remove,
copy or restore them while a process uses them.
`
)

// readMarker reports whether the directory is a store that this package knows.
func (s *Store) readMarker() (found bool, err error) {
	data, _, err := s.disk.read(markerName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("dirstore: open %s: %w", s.path, err)
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	number, ok := strings.CutPrefix(string(line), markerForm)
	version, err := strconv.ParseUint(number, 10, 31)
	if !ok || err != nil || version == 0 {
		return false, fmt.Errorf("%w: %s: its file %s does not say %q", ErrNotStore, s.path, markerName, markerForm+"1")
	}
	if version > markerVersion {
		return false, fmt.Errorf("%w: %s has format %d, and this one knows format %d: use the newer version with it",
			ErrNewer, s.path, version, markerVersion)
	}
	return true, nil
}

// mayCreate returns nil if a store may be made in the directory.
func (s *Store) mayCreate(create bool) error {
	files, err := s.disk.names()
	if err != nil {
		return fmt.Errorf("dirstore: open %s: %w", s.path, err)
	}
	for _, f := range files {
		switch {
		case f == lockPrefix, f == tempPrefix: // of somebody who creates it, or died over it
		case f == "lost+found", strings.HasPrefix(f, "."): // of the system
		default:
			return fmt.Errorf("%w: %s has no file %s, but others, such as %s: choose another directory, or an empty one below it",
				ErrNotStore, s.path, markerName, f)
		}
	}
	if !create {
		return fmt.Errorf("%w in %s, which is empty: is it the right directory, and mounted? Create it (Options.Create) if no store was there before", ErrNoStore, s.path)
	}
	return nil
}

// writeMarker makes the store, durably. Whatever becomes durable in the
// directory later, the marker is there before.
func (s *Store) writeMarker() error {
	if err := s.writeFile(tempPrefix, fmt.Appendf(nil, "%s%d\n%s", markerForm, markerVersion, markerText)); err != nil {
		_ = s.disk.remove(tempPrefix)
		return err
	}
	dir, err := s.disk.directory()
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := s.disk.rename(tempPrefix, markerName); err != nil {
		_ = s.disk.remove(tempPrefix)
		return err
	}
	if err := dir.Sync(); err != nil {
		return err
	}
	_ = s.disk.settle(markerName)
	return nil
}

// probe finds out now, and not at the first CAS, whether files can be made and
// locks exclude. It is called under the marker's lock.
func (s *Store) probe() error {
	again, err := s.disk.lock(lockPrefix)
	if err != nil {
		return err
	}
	ok, err := again.try()
	again.release()
	if err != nil {
		return err
	}
	if ok {
		return fmt.Errorf("%w: a lock there can be taken twice", ErrFileSystem)
	}
	if err := s.disk.remove(tempPrefix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.disk.create(tempPrefix)
	if isFull(err) {
		return nil // what is there can be read; each CAS says that it is full
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return s.disk.remove(tempPrefix)
}

// sweep removes what processes that died were writing. Whoever writes such a
// file holds its record's lock; what cannot be locked at once is left alone.
func (s *Store) sweep() {
	files, err := s.disk.names()
	if err != nil {
		return // nothing depends on it
	}
	for _, f := range files {
		name, ok := strings.CutPrefix(f, tempPrefix)
		if !ok || name == "" {
			continue
		}
		l, err := s.disk.lock(lockPrefix + name)
		if err != nil {
			continue
		}
		if ok, err := l.try(); ok && err == nil {
			_ = s.disk.remove(f)
		}
		l.release()
	}
}
