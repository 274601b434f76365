//go:build unix

package listen

import (
	"io/fs"
	"net"
	"syscall"
)

// listenWithMode listens on a socket with a mode, regardless of the umask. The
// umask belongs to the whole process, so nothing else may create files
// meanwhile.
func listenWithMode(path string, mode fs.FileMode) (net.Listener, error) {
	defer syscall.Umask(syscall.Umask(int(0o777 &^ mode)))
	return net.Listen("unix", path)
}
