//go:build unix

package listen

import "syscall"

// MaxOpenFiles returns how many files this process may have open. Go raises the
// soft limit to the hard limit when it starts.
func MaxOpenFiles() (uint64, error) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err
}
