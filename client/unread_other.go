//go:build !unix || aix

package client

import "syscall"

// isUnread reports nothing on this system.
func isUnread(syscall.RawConn) bool { return false }
