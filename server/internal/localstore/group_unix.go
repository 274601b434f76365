//go:build unix

package localstore

import (
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
)

// groupOf returns the group of a directory, and whether this process is not in
// it.
func groupOf(info fs.FileInfo) (name string, missing bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	gid := int(st.Gid)
	name = strconv.Itoa(gid)
	if g, err := user.LookupGroupId(name); err == nil {
		name = g.Name
	}
	mine, err := os.Getgroups()
	return name, err == nil && gid != os.Getegid() && !slices.Contains(mine, gid)
}
