package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
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

// socketMode is the default mode of a socket: only its owner can connect.
const socketMode fs.FileMode = 0o600

// ParseSocket splits the mode off the path of a socket, which then ends with
// ?mode=0660.
func ParseSocket(text string) (path string, mode fs.FileMode, err error) {
	path, octal, given := strings.Cut(text, "?mode=")
	if !given {
		return text, socketMode, nil
	}
	n, err := strconv.ParseUint(octal, 8, 32)
	if err != nil || n > 0o777 {
		return path, 0, fmt.Errorf("mode %q: it must be octal, 0600 to 0777", octal)
	}
	return path, fs.FileMode(n), nil
}

// Reachable returns the address at which programs on this machine reach addr.
func Reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return addr.String()
}
