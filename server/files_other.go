//go:build !unix

package server

import "math"

// openFiles returns how many files this process may have open. The system has
// no limit that connections could reach.
func openFiles() int { return math.MaxInt }
