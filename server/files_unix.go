//go:build unix

package server

import (
	"math"
	"syscall"
)

// openFiles is how many files the system lets this process have open; MaxInt if
// that has no limit, or is not known.
func openFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > math.MaxInt32 {
		return math.MaxInt
	}
	return int(l.Cur)
}
