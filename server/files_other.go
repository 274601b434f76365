//go:build !unix

package server

import "math"

// openFiles is how many files the system lets this process have open: it has no
// limit that connections could reach.
func openFiles() int { return math.MaxInt }
