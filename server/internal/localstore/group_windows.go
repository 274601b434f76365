package localstore

import "io/fs"

// groupOf is for systems with groups.
func groupOf(fs.FileInfo) (name string, missing bool) { return "", false }
