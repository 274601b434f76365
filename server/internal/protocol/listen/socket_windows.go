package listen

import (
	"io/fs"
	"net"
)

// listenWithMode listens on a socket. Windows has no modes: the permissions of
// the directory apply.
func listenWithMode(path string, _ fs.FileMode) (net.Listener, error) {
	return net.Listen("unix", path)
}
