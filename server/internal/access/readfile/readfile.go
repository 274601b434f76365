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
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	maxSize   = 4 << 20         // of a file
	pipeLimit = 5 * time.Second // for the writer of a pipe
)

// Read returns the contents of a file of up to 4 MiB. A pipe, as of a shell's
// <(command), needs a writer, which has 5 s to write everything.
func Read(path string) ([]byte, error) { return read(path, pipeLimit, false) }

// ReadTrusted is Read for a file that decides who may do what. It returns an
// error if CheckTrust does.
func ReadTrusted(path string) ([]byte, error) { return read(path, pipeLimit, true) }

// A Content is what a program has read in files that may change. It must be
// made by Open, and is safe for concurrent use.
type Content[T any] struct {
	paths []string
	parse func(texts [][]byte) (T, error)
	value atomic.Pointer[T]

	mu   sync.Mutex        // guards the fields below
	sum  [sha256.Size]byte // of the version that was read last
	gone bool              // Reload has reported that a file cannot be read
}

// Open reads files as ReadTrusted does, and parses their texts. The path "" is
// a file that is not there, and is empty.
func Open[T any](parse func(texts [][]byte) (T, error), paths ...string) (*Content[T], error) {
	c := &Content[T]{paths: paths, parse: parse}
	if _, err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Get returns what was read last without an error.
func (c *Content[T]) Get() T { return *c.value.Load() }

// Reload reads the files again if one has changed, and reports whether one has.
// After an error the previous content remains; changed is then true once for
// each change, and once when a file cannot be read any more. A pipe gives its
// text once: with one among them, the files never change.
func (c *Content[T]) Reload() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var texts [][]byte
	all := sha256.New()
	for _, path := range c.paths {
		var text []byte
		if info, err := os.Stat(path); c.value.Load() != nil && err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
			return false, nil
		}
		if path != "" {
			if text, err = ReadTrusted(path); err != nil {
				changed, c.gone = !c.gone, true
				return changed, err
			}
		}
		texts = append(texts, text)
		fmt.Fprintf(all, "%d\n%s", len(text), text)
	}
	sum := [sha256.Size]byte(all.Sum(nil))
	if !c.gone && sum == c.sum {
		return false, nil
	}
	c.sum, c.gone = sum, false
	value, err := c.parse(texts)
	if err == nil {
		c.value.Store(&value)
	}
	return true, err
}

// CheckTrust returns an error if every user may write a file, a directory or a
// pipe, or if it belongs to a user who is neither root nor that of this
// process. Windows has no such modes.
func CheckTrust(path string, info fs.FileInfo) error {
	uid, _, ok := OwnerOf(info)
	mode := info.Mode()
	switch {
	case !ok, !mode.IsRegular() && !mode.IsDir() && mode.Type() != fs.ModeNamedPipe:
		return nil
	case mode&0o002 != 0:
		return fmt.Errorf("%s can be changed by every user (mode %04o, owner %d): run chmod o-w %s", path, mode.Perm(),
			uid, path)
	case uid != 0 && uid != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d (mode %04o), who is neither root nor the user of this process (%d): run "+
			"firn as that user, or run chown %[4]d %[1]s", path, uid, mode.Perm(), os.Geteuid())
	}
	return nil
}

func read(path string, limit time.Duration, trusted bool) ([]byte, error) {
	// Opening a pipe would otherwise wait for a writer, and no signal ends that.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: the user that runs firn must be able to read it", err)
	}
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
	_ = f.SetReadDeadline(time.Now().Add(limit)) // files that never block have no deadlines
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	switch pipe := info.Mode()&fs.ModeNamedPipe != 0; {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%s: not read completely within %v", path, limit)
	case err != nil:
		return nil, err
	case int64(len(data)) > maxSize:
		return nil, fmt.Errorf("%s: larger than %d MiB", path, maxSize>>20)
	case pipe && len(data) == 0:
		return nil, fmt.Errorf("%s: nothing writes to this pipe; use a regular file", path)
	}
	return data, nil
}
