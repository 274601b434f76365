package dirstore

import (
	"errors"
	"fmt"

	"github.com/firnid/firn/grant"
)

// Errors that a caller may want to tell apart. Each comes with the directory or
// file it is about, and with what would be right.
var (
	// ErrNoStore means that the directory does not exist, or has nothing in it,
	// and that Options.Create was not set.
	ErrNoStore = errors.New("dirstore: there is no store")

	// ErrNotStore means that the directory holds other files, or that its
	// marker cannot be read as one.
	ErrNotStore = errors.New("dirstore: the directory is no store")

	// ErrNewer means that a newer version of this package made the store, or a
	// record in it. Nothing was read or written.
	ErrNewer = errors.New("dirstore: made by a newer version")

	// ErrFileSystem means that the directory is on a file system on which a
	// store would not be safe.
	ErrFileSystem = errors.New("dirstore: the file system will not do")

	// ErrDamaged means that a record's file is not what was written. What it
	// held is not known, so its key can be neither read nor replaced. It is
	// grant.ErrDamaged too.
	ErrDamaged error = damage("dirstore: damaged record")

	// ErrFailed means that the disk has failed in a way that leaves open what
	// it holds. The Store refuses service from then on; a new one, best in a
	// process that starts again, finds out what is there.
	ErrFailed = errors.New("dirstore: the disk has failed, and the store refuses service")
)

type damage string

func (d damage) Error() string { return string(d) }

func (damage) Is(target error) bool { return target == grant.ErrDamaged }

// notSent makes err one that is grant.ErrNotSent.
func notSent(err error) error {
	if errors.Is(err, grant.ErrNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", grant.ErrNotSent, err)
}
