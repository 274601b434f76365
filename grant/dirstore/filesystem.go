package dirstore

import "fmt"

// A fileSystem is a kind of file system and its suitability for a store.
type fileSystem struct {
	name string
	use  use
}

// A use describes whether a file system can hold a store.
type use byte

const (
	unknownUse use = iota
	durable        // locks exclude, and synced data survives a loss of power
	inMemory       // lost when the machine restarts
	layered        // usually a container's own, and lost with it
	remote         // shared with other machines
	hidden         // what is behind it is unknown
	torn           // a rename is not safe against a loss of power
	readOnly
)

// check returns nil if a store may be on the file system of path.
func (f fileSystem) check(path string, o *Options) error {
	var why string
	switch f.use {
	case durable:
		return nil
	case inMemory, layered:
		if o.AllowVolatile || o.AnyFileSystem {
			return nil
		}
		why = "which is in memory, and empty after a restart of the machine"
		if f.use == layered {
			why = "like a container's own directories: its content is lost with the container, and every other container has its own; mount a volume"
		}
		return fmt.Errorf("%w: %s is on %s, %s: IDs would repeat; use a persistent directory, or set AllowVolatile", ErrFileSystem, path, f.name, why)
	case remote:
		why = "a file system that several machines share: its locks and fsync do not guarantee what a store needs; use a local directory for one machine, or etcd or a database for several"
	case hidden:
		why = "which may be backed by anything, even another machine: use a directory on a local disk"
	case torn:
		why = "where a file may be lost or empty if the power fails while it is replaced: use a file system with a journal"
	case readOnly:
		why = "which is read-only: use a directory on a local disk"
	default:
		why = "which is not known to be safe: use a local disk with a common file system"
	}
	if o.AnyFileSystem {
		return nil
	}
	return fmt.Errorf("%w: %s is on %s, %s (AnyFileSystem overrides this check)", ErrFileSystem, path, f.name, why)
}
