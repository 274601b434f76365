//go:build unix && !aix

package client

import "syscall"

// isUnread reports whether bytes have arrived on a connection that were not
// read yet, or its end. It does not wait.
func isUnread(conn syscall.RawConn) bool {
	unread := true
	err := conn.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		unread = err != syscall.EAGAIN && err != syscall.EINTR
	})
	return unread || err != nil
}
