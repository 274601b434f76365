package auth

import (
	"io/fs"
	"os"
)

// ownAs does nothing: on Windows a file has the permissions of its directory.
func ownAs(*os.File, fs.FileInfo) error { return nil }
