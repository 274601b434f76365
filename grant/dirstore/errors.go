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

	// ErrNotStore means that the directory contains other files, or that its
	// marker is invalid.
	ErrNotStore = errors.New("dirstore: the directory is not a store")

	// ErrNewer means that a newer version of this package made the store or one
	// of its records. Nothing was read or written.
	ErrNewer = errors.New("dirstore: made by a newer version")

	// ErrFileSystem means that the directory is on a file system on which a
	// store would not be safe.
	ErrFileSystem = errors.New("dirstore: unsuitable file system")

	// ErrDamaged means that the file of a record does not contain what was
	// written. The value is unknown, so the key can be neither read nor
	// replaced. It also matches grant.ErrDamaged.
	ErrDamaged error = damage("dirstore: damaged record")

	// ErrFailed means that the disk has failed in a way that leaves its content
	// uncertain. From then on the Store refuses all calls; a new Store,
	// preferably in a restarted process, determines what is there.
	ErrFailed = errors.New("dirstore: the disk has failed, and the store refuses all calls")
)

// A damage is an error that also matches grant.ErrDamaged.
type damage string

func (d damage) Error() string { return string(d) }

func (damage) Is(target error) bool { return target == grant.ErrDamaged }

// notSent makes err match grant.ErrNotSent.
func notSent(err error) error {
	if errors.Is(err, grant.ErrNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", grant.ErrNotSent, err)
}
