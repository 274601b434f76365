package dirstore

import (
	"errors"
	"fmt"

	"github.com/firnid/firn/grant"
)

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

var (
	// errNotStore: the directory contains other files, or its marker is invalid.
	errNotStore = errors.New("dirstore: the directory is not a store")

	// errNewer: a newer version of this package made the store or a record.
	errNewer = fmt.Errorf("dirstore: %w", grant.ErrNewerVersion)

	// errDamaged: the file of a record does not contain what was written. The
	// value is unknown, so the key can be neither read nor replaced.
	errDamaged = fmt.Errorf("dirstore: %w", grant.ErrDamaged)
)
