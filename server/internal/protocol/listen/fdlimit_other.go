//go:build !unix

package listen

import "errors"

// OpenFiles returns an error: the system has no limit that connections could
// reach.
func OpenFiles() (uint64, error) { return 0, errors.ErrUnsupported }
