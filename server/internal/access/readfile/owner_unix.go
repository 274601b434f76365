//go:build unix

package readfile

import (
	"io/fs"
	"syscall"
)

// OwnerOf returns the user and the group that a file belongs to. ok is false on
// a system that has none with numbers.
func OwnerOf(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}
