//go:build unix

package main

import (
	"io/fs"
	"net"
	"syscall"
)

// listenWithMode listens on a socket with a mode, regardless of the umask. The
// umask belongs to the whole process: serve listens before it does anything
// else.
func listenWithMode(path string, mode fs.FileMode) (net.Listener, error) {
	defer syscall.Umask(syscall.Umask(int(0o777 &^ mode)))
	return net.Listen("unix", path)
}
