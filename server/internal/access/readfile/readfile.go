// Package readfile reads the small files that a program is given, such as
// tokens and certificates. A path that holds anything else neither blocks the
// program nor fills its memory.
package readfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	most     = 4 << 20         // size of a file
	patience = 5 * time.Second // for the writer of a pipe
)

// Read returns the contents of a file of up to 4 MiB. A pipe, as of a shell's
// <(command), needs a writer, which has 5 s to write everything.
func Read(path string) ([]byte, error) { return read(path, patience, false) }

// ReadTrusted is Read for a file that decides who may do what. It returns an
// error if CheckTrust does.
func ReadTrusted(path string) ([]byte, error) { return read(path, patience, true) }

// Files are files that may change. Their zero value has no files.
type Files struct {
	Paths []string // "" is a file that is not there, and is empty

	sum  [sha256.Size]byte // of the version that was read last
	gone bool              // the caller knows that a file cannot be read
}

// Read is ReadTrusted for all files. changed is true once for each change, and
// once when a file cannot be read any more. With a pipe among them, which gives
// its text once, they never change.
func (f *Files) Read() (data [][]byte, changed bool, err error) {
	all, again := sha256.New(), f.sum != [sha256.Size]byte{}
	for _, path := range f.Paths {
		var text []byte
		if info, err := os.Stat(path); again && err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
			return nil, false, nil
		}
		if path != "" {
			if text, err = ReadTrusted(path); err != nil {
				changed, f.gone = !f.gone, true
				return nil, changed, err
			}
		}
		data = append(data, text)
		fmt.Fprintf(all, "%d\n%s", len(text), text)
	}
	sum := [sha256.Size]byte(all.Sum(nil))
	changed = f.gone || sum != f.sum
	f.sum, f.gone = sum, false
	return data, changed, nil
}

// CheckTrust returns an error if every user may write a file, a directory or a
// pipe, or if it belongs to a user who is neither root nor that of this
// process. Windows has no such modes.
func CheckTrust(path string, info fs.FileInfo) error {
	uid, ok := ownerOf(info)
	mode := info.Mode()
	switch {
	case !ok, !mode.IsRegular() && !mode.IsDir() && mode.Type() != fs.ModeNamedPipe:
		return nil
	case mode&0o002 != 0:
		return fmt.Errorf("%s can be changed by every user (mode %04o, owner %d): run chmod o-w %s", path, mode.Perm(), uid, path)
	case uid != 0 && uid != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d (mode %04o), who is neither root nor the user of this process (%d): run firn as that user, or run chown %[4]d %[1]s", path, uid, mode.Perm(), os.Geteuid())
	}
	return nil
}

func read(path string, patience time.Duration, trusted bool) ([]byte, error) {
	// Opening a pipe would otherwise wait for a writer, and no signal ends that.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if trusted {
		if err := CheckTrust(path, info); err != nil {
			return nil, err
		}
	}
	_ = f.SetReadDeadline(time.Now().Add(patience)) // files that never block have no deadlines
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch pipe := info.Mode()&fs.ModeNamedPipe != 0; {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%s: not read completely within %v", path, patience)
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, fmt.Errorf("%s: larger than %d MiB", path, most>>20)
	case pipe && len(data) == 0:
		return nil, fmt.Errorf("%s: nothing writes to this pipe; use a regular file", path)
	}
	return data, nil
}
