// Package readfile reads the small files that a program is given, such as
// tokens and certificates. A path that holds anything else neither blocks the
// program nor fills its memory.
package readfile

import (
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
func Read(path string) ([]byte, error) { return read(path, patience) }

func read(path string, patience time.Duration) ([]byte, error) {
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
