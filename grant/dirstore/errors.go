package dirstore

import "errors"

// Errors that a caller may want to distinguish. Each comes with the directory
// or file and with what to do.
var (
	// ErrNoStore means that the directory does not exist or is empty, and that
	// Options.Create was not set.
	ErrNoStore = errors.New("dirstore: no store found")

	// ErrFailed means that the disk has failed in a way that leaves its content
	// uncertain. From then on the Store refuses all calls; a new Store,
	// preferably in a restarted process, determines what is there.
	ErrFailed = errors.New("dirstore: the disk has failed, and the store refuses all calls")
)

// errNotStore: the directory contains other files, or its marker is invalid.
var errNotStore = errors.New("dirstore: the directory is not a store")
