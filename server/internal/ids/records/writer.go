// Package records reads and writes streams of records: lines, or IDs of a fixed
// size. Records that are written into a pipe stay whole.
package records

import (
	"io"
	"os"
	"runtime"
)

const (
	// pipeBuf is PIPE_BUF on Linux, and leastPipeBuf the minimum in POSIX.
	pipeBuf, leastPipeBuf = 4096, 512

	// fileBuf is how much is written to a file at once.
	fileBuf = 64 << 10
)

// A Writer collects records (lines, or IDs of 8 or 16 bytes) and writes as many
// whole records at once as fit. Otherwise lines of several processes that write
// into one pipe could be joined in the middle, and the result could be the ID
// of another process. It must be made by NewWriter.
type Writer struct {
	w      io.Writer
	atOnce int
	buf    []byte
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer {
	r := &Writer{w: w, atOnce: leastPipeBuf}
	if runtime.GOOS == "linux" {
		r.atOnce = pipeBuf
	}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			r.atOnce = fileBuf // appended records stay whole
		}
	}
	return r
}

// Begin returns the buffer to append a record to, and End takes it back.
func (r *Writer) Begin() []byte { return r.buf }

// End first writes the previous records if the appended record does not fit
// beside them.
func (r *Writer) End(buf []byte) error {
	whole := len(r.buf)
	if r.buf = buf; len(buf) <= r.atOnce || whole == 0 {
		return nil
	}
	_, err := r.w.Write(buf[:whole])
	r.buf = buf[:copy(buf, buf[whole:])]
	return err
}

// Write collects one record.
func (r *Writer) Write(record []byte) (int, error) {
	if err := r.End(append(r.Begin(), record...)); err != nil {
		return 0, err
	}
	return len(record), nil
}

// Flush writes what is left.
func (r *Writer) Flush() error {
	if len(r.buf) == 0 {
		return nil
	}
	_, err := r.w.Write(r.buf)
	r.buf = r.buf[:0]
	return err
}
