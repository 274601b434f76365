package listen

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// Socket listens on a socket in the file system, which has its mode from the
// beginning. A socket left behind by a killed process is removed; one that is
// in use is not. The umask changes meanwhile: call it before anything creates
// files.
func Socket(path string, mode fs.FileMode) (net.Listener, error) {
	l, err := listenWithMode(path, mode)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	if info, e := os.Lstat(path); e != nil || info.Mode().Type() != fs.ModeSocket {
		return nil, errors.New("the path exists and is not a socket")
	}
	conn, e := net.Dial("unix", path)
	if e == nil {
		_ = conn.Close()
		return nil, errors.New("another program is listening there, possibly another firn serve")
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return listenWithMode(path, mode)
}
