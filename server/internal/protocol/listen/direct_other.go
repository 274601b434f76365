//go:build !linux

package listen

import "net"

// newDirect returns conn: on other systems package net makes the system calls.
func newDirect(conn net.Conn) net.Conn { return conn }
