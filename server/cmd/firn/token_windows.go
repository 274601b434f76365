package main

import (
	"io/fs"
	"os"
)

// ownAs does nothing: a file has the rights of its directory here.
func ownAs(*os.File, fs.FileInfo) error { return nil }
