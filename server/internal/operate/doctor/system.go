package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/firnid/firn/server/internal/protocol/listen"
)

// minFree is the free space that the directory of a store, or of an issue log,
// should have. A store needs little, but without any it cannot renew windows.
const minFree = 64 << 20

// space checks the free space of a directory, without any of which something
// happens. Opening a store already refuses unsuitable file systems.
func (r *report) space(directory, otherwise string) {
	there := directory // the nearest directory that exists
	free, err := freeBytes(there)
	for errors.Is(err, os.ErrNotExist) && there != filepath.Dir(there) {
		there = filepath.Dir(there)
		free, err = freeBytes(there)
	}
	switch {
	case err != nil:
		r.add("file system", Unknown, "", "cannot determine the free space of %s: %v", directory, err)
	case free < minFree:
		r.add("file system", Fix, "free some space: without any, "+otherwise, "%s has %d MiB free", directory, free>>20)
	default:
		r.add("file system", OK, "", "%s has %d MiB free", directory, free>>20)
	}
}

// limits compares the limit of open files with the number of connections that
// the server accepts.
func (r *report) limits() {
	if r.config.Connections == 0 {
		return
	}
	most, err := listen.MaxOpenFiles()
	need := listen.FilesFor(len(r.config.Listen), r.config.Connections)
	switch {
	case err != nil:
		r.add("limits", Unknown, "", "cannot determine the limit of open files: %v", err)
	case most < need:
		r.add("limits", Fix,
			fmt.Sprintf("raise the limit to %d (LimitNOFILE= in systemd, ulimit -n in a shell), or "+
				"lower limits.connections", need),
			"a process here may open %d files, too few for %d connections per address", most, r.config.Connections)
	default:
		r.add("limits", OK, "", "a process here may open %d files", most)
	}
}
