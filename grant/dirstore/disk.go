package dirstore

// A disk is all that a Store does to files: the calls of the system, and
// nothing that decides. Names are of files in the store's directory. Tests have
// a disk that crashes.
type disk interface {
	// names returns the names of all files in the directory.
	names() ([]string, error)

	// read returns what is in a file, and whether the file is marked as settled.
	read(name string) (data []byte, settled bool, err error)

	// create makes an empty file, not settled. None of that name may exist.
	create(name string) (file, error)

	// settle marks a file as settled. The mark need not be durable.
	settle(name string) error

	// rename puts a file in the place of another, which may exist. Others see
	// either, and nothing in between.
	rename(from, to string) error

	// remove takes a file away.
	remove(name string) error

	// directory opens the directory, for Sync: that makes durable which names
	// there are and what they name. Errors of writing since directory was
	// called are errors of Sync.
	directory() (file, error)

	// lock opens a lock's file, and creates it where there is none.
	lock(name string) (lock, error)

	// close ends the use of the disk.
	close() error
}

// A file is a file that is written, or the directory.
type file interface {
	Write(p []byte) (int, error)
	Sync() error
	Close() error
}

// A lock is one holder, or would-be holder, of a lock that excludes all others,
// of this process and of others. It ends with the process.
type lock interface {
	// try takes the lock, or returns false if somebody else has it.
	try() (bool, error)

	// release gives the lock back, if it was taken, and forgets about it.
	release()
}
