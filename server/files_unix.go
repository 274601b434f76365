//go:build unix

package server

import (
	"math"
	"syscall"
)

// openFiles returns how many files this process may have open; MaxInt if the
// number is unlimited or unknown.
func openFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > math.MaxInt32 {
		return math.MaxInt
	}
	return int(l.Cur)
}
