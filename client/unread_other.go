//go:build !unix || aix

package client

import "syscall"

const seesUnread = false

func isUnread(syscall.RawConn) bool { return false }
