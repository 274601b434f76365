package dirstore

import "fmt"

// A fileSystem is a kind of file system, and what it is good for.
type fileSystem struct {
	name string
	use  use
}

// use says whether a store may be on a file system.
type use byte

const (
	unknownUse use = iota
	durable        // locks exclude, and what is synced is there after a loss of power
	inMemory       // gone when the machine starts again
	layered        // a container's own, as a rule, and gone with it
	remote         // shared with other machines
	hidden         // what is behind it cannot be seen
	torn           // a rename is not safe against a loss of power
	readOnly
)

// check returns nil if a store may be on the file system that path is on.
func (f fileSystem) check(path string, o *Options) error {
	var why string
	switch f.use {
	case durable:
		return nil
	case inMemory, layered:
		if o.AllowVolatile || o.AnyFileSystem {
			return nil
		}
		why = "which is in memory, and empty when the machine starts again"
		if f.use == layered {
			why = "as a container's own directories are: what is stored there is gone with the container, and every other container has its own; mount a volume"
		}
		return fmt.Errorf("%w: %s is on %s, %s: IDs would repeat; use a directory that lasts, or set AllowVolatile", ErrFileSystem, path, f.name, why)
	case remote:
		why = "a file system that several machines share: its locks and fsync do not hold what a store needs; use a local directory for one machine, or etcd or a database for several"
	case hidden:
		why = "behind which there may be anything, another machine too: use a directory on a local disk"
	case torn:
		why = "where a file may be lost or empty if the power fails while it is replaced: use a file system with a journal"
	case readOnly:
		why = "which cannot be written: use a directory on a local disk"
	default:
		why = "of which it is not known whether it is safe: use a local disk with a common file system"
	}
	if o.AnyFileSystem {
		return nil
	}
	return fmt.Errorf("%w: %s is on %s, %s (AnyFileSystem is for who knows better)", ErrFileSystem, path, f.name, why)
}
