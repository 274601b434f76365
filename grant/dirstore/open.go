package dirstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/firnid/firn/grant"
)

// Options configure Open. Nil and the zero Options mean the defaults.
type Options struct {
	// Create creates the directory, with mode 0700, and the store in it if they
	// do not exist. Without it, a mistyped path or a volume that is not mounted
	// gives an error that matches ErrNoStore, instead of a new store that knows
	// no earlier ID.
	Create bool

	// AllowVolatile accepts a directory that is not persistent: in memory,
	// where it is lost when the machine restarts, or in a container's own
	// layer, where it is lost with the container and no other container sees
	// it. It is suitable for tests, and if IDs may repeat those from before the
	// loss. All processes must still share the one directory.
	AllowVolatile bool
}

// Open opens the store in a directory. Several Stores, in one process or many,
// may have the same directory open. ctx limits the wait for another process
// that is creating the store.
//
// All processes must be able to read and write the store's files, as processes
// of one user can. For several users, create a directory that belongs to a
// group they share, with mode 2770: the files then also belong to the group.
// Files that root creates in the directory of another user belong to that user.
//
// The Store is safe for concurrent use by multiple goroutines, and by several
// processes of one machine.
//
// An applied CAS is durable: it survives a crash of the process or the system
// and a loss of power, provided that the disk keeps what it has reported as
// written. Get and CAS are linearizable across all processes, and so is List
// for each key. A value that Get or List shows, or that makes CAS fail, is
// durable.
//
// While another process holds the record's lock, a call waits as long as its
// context allows. A process that is killed leaves no lock. A process that is
// suspended keeps those that it holds, which are at most those of the records
// that it was writing. If the disk does not answer, the call returns soon after
// its context is done, and its operation keeps the lock until the disk answers.
//
// The error matches grant.ErrUnfit if the file system may lose what is written,
// and ErrNoStore if there is no store. By grant.As, the Store is also a
// grant.Clock and Paced.
func Open(ctx context.Context, path string, o *Options) (grant.Store, error) {
	s, err := openStore(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openStore(ctx context.Context, path string, o *Options) (*store, error) {
	o = cmp.Or(o, new(Options))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if path == "" {
		return nil, fmt.Errorf("%w: the path of the directory is empty", grant.ErrOptions)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("dirstore: %w", err)
	}
	d, err := openDir(path, o)
	if err != nil {
		return nil, err
	}
	s, err := openDisk(ctx, d, path, o.Create)
	if err != nil {
		_ = d.close()
		return nil, err
	}
	return s, nil
}

// openDisk opens the store on a disk.
func openDisk(ctx context.Context, d disk, path string, create bool) (*store, error) {
	s := &store{disk: d, path: path}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	found, err := s.readMarker()
	if err == nil && !found {
		err = s.create(ctx, create)
	}
	if err != nil {
		return nil, err
	}
	if err := s.probe(); err != nil {
		return nil, fmt.Errorf("dirstore: open %s: %w", path, err)
	}
	return s, nil
}

// create creates the store, unless another process does.
func (s *store) create(ctx context.Context, allowed bool) error {
	if err := s.mayCreate(allowed); err != nil {
		// Unless another process has just created it.
		if found, markerErr := s.readMarker(); found && markerErr == nil {
			return nil
		}
		return err
	}
	unlock, err := s.lock(ctx, "")
	if err != nil {
		return fmt.Errorf("dirstore: create %s: %w", s.path, err)
	}
	defer unlock()
	if found, err := s.readMarker(); found || err != nil {
		return err
	}
	if err := s.writeMarker(); err != nil {
		return fmt.Errorf("dirstore: create %s: %w", s.path, err)
	}
	return nil
}

// The marker begins with markerForm; the rest is for people. A later version of
// the format has a greater number.
const (
	markerForm    = "firn dirstore format "
	markerVersion = 1
	markerText    = `
This directory is a store of Firn, for processes of one machine. Its files say which IDs may have been made. Do not change, remove,
copy or restore them while a process uses them.
`
)

// readMarker reports whether the directory is a store that this package can
// use.
func (s *store) readMarker() (found bool, err error) {
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
		return false, fmt.Errorf("%w: %s: its file %s does not begin with %q. If this was a store, a new one would repeat "+
			"IDs: restore the whole directory from a backup, and fence its sequencers (firn node fence)", errNotStore, s.path,
			markerName, markerForm+"1")
	}
	if version > markerVersion {
		return false, fmt.Errorf("dirstore: %s has format %d, and this version only knows format %d: %w",
			s.path, version, markerVersion, grant.ErrNewerVersion)
	}
	return true, nil
}

// mayCreate returns nil if a store may be created in the directory.
func (s *store) mayCreate(create bool) error {
	files, err := s.disk.names()
	if err != nil {
		return fmt.Errorf("dirstore: open %s: %w", s.path, err)
	}
	for _, f := range files {
		switch {
		case f == lockPrefix, f == tempPrefix: // left by a process that creates it, or died doing so
		case f == "lost+found", strings.HasPrefix(f, "."): // of the operating system
		case strings.HasPrefix(f, recordPrefix), strings.HasPrefix(f, lockPrefix), strings.HasPrefix(f, tempPrefix):
			return fmt.Errorf("%w: %s has lost its file %s but has others of a store, such as %s. A new store, here or "+
				"elsewhere, would repeat IDs: stop all processes, restore the whole directory from a backup, and fence its "+
				"sequencers (firn node fence)",
				errNotStore, s.path, markerName, f)
		default:
			return fmt.Errorf("%w: %s has no file %s but contains others, such as %s: choose another directory, or an empty "+
				"subdirectory",
				errNotStore, s.path, markerName, f)
		}
	}
	if !create {
		return fmt.Errorf("%w in %s, which is empty: is it the right directory, and mounted? If no store was there "+
			"before, create one (Create, or ?create=true in a URL)", ErrNoStore, s.path)
	}
	return nil
}

// writeMarker creates the store, durably. The marker is durable before anything
// else in the directory.
func (s *store) writeMarker() error {
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

// probe checks early, before the first CAS, whether files can be created. The
// name of its file is that of no key. Several processes may probe at once.
func (s *store) probe() error {
	const name = tempPrefix + "~"
	f, err := s.disk.create(name)
	switch {
	case isFull(err):
		return nil // the content can be read, and each CAS will report the full disk
	case err == nil:
		err = f.Close()
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	if err == nil {
		err = s.disk.remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
