package main

import "io/fs"

// groupOf is of systems with groups.
func groupOf(fs.FileInfo) (name string, missing bool) { return "", false }
