//go:build !unix

package listen

import "errors"

// MaxOpenFiles returns an error: the system has no limit that connections could
// reach.
func MaxOpenFiles() (uint64, error) { return 0, errors.ErrUnsupported }
