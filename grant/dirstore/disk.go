package dirstore

// A disk is everything that a Store does to files: system calls, without
// decisions. Names are those of files in the store's directory. Tests have a
// disk that crashes.
type disk interface {
	// names returns the names of all files in the directory.
	names() ([]string, error)

	// read returns the content of a file, and whether the file is marked as
	// settled.
	read(name string) (data []byte, settled bool, err error)

	// create creates an empty file that is not settled. It must not exist yet.
	create(name string) (file, error)

	// settle marks a file as settled. The mark need not be durable.
	settle(name string) error

	// rename renames a file, and replaces one that may exist under the new
	// name. Others see one or the other, and nothing in between.
	rename(from, to string) error

	// remove removes a file.
	remove(name string) error

	// directory opens the directory, so that its Sync makes the names of files
	// durable, and what they refer to. Write errors since the call of directory
	// are errors of Sync.
	directory() (file, error)

	// lock opens the file of a lock, and creates it if it is missing.
	lock(name string) (lock, error)

	// close releases the disk.
	close() error
}

// A file is a file being written, or the directory.
type file interface {
	Write(p []byte) (int, error)
	Sync() error
	Close() error
}

// A lock is one holder, or would-be holder, of a lock that excludes all others
// in this process and in others. It ends with the process.
type lock interface {
	// try takes the lock, or returns false if another holder has it.
	try() (bool, error)

	// release gives the lock back if it was taken, and closes it.
	release()
}
