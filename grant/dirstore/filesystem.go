package dirstore

import (
	"fmt"

	"github.com/firnid/firn/grant"
)

// A fileSystem is a kind of file system and its suitability for a store.
type fileSystem struct {
	name string
	use  use
}

// A use describes whether a file system can hold a store.
type use byte

const (
	refused  use = iota // remote, without a journal, or unknown
	durable             // local: locks exclude, and synced data survives a loss of power
	volatile            // lost when the machine or the container restarts
)

// check returns nil if a store may be on the file system of path.
func (f fileSystem) check(path string, allowVolatile bool) error {
	switch {
	case f.use == durable, f.use == volatile && allowVolatile:
		return nil
	case f.use == volatile:
		return fmt.Errorf("%w: %s is on %s, which is lost with the machine or the container, and then IDs repeat: use a "+
			"directory on a disk or a mounted volume, or accept that (AllowVolatile, or ?volatile=true in a URL)",
			grant.ErrUnfit, path, f.name)
	}
	return fmt.Errorf("%w: %s is on %s, which is not known to keep what a store writes: use a directory on a local "+
		"disk with ext4, XFS, Btrfs, ZFS, APFS or NTFS, or, for several machines, etcd or a database", grant.ErrUnfit, path,
		f.name)
}
