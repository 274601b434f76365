//go:build unix

package auth

import (
	"io/fs"
	"os"
	"syscall"
)

// ownAs gives a file the owner and group of another.
func ownAs(f *os.File, other fs.FileInfo) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	have, ok := is.Sys().(*syscall.Stat_t)
	want, ok2 := other.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
