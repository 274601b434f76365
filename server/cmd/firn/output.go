package main

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

// A recordWriter collects records (lines, or IDs of 8 or 16 bytes) and writes
// as many whole records at once as fit. Otherwise lines of several processes
// that write into one pipe could be joined in the middle, and the result could
// be the ID of another process. It must be made by newRecordWriter.
type recordWriter struct {
	w      io.Writer
	atOnce int
	buf    []byte
}

func newRecordWriter(w io.Writer) *recordWriter {
	r := &recordWriter{w: w, atOnce: leastPipeBuf}
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

// begin returns the buffer to append a record to, and end takes it back.
func (r *recordWriter) begin() []byte { return r.buf }

// end first writes the previous records if the appended record does not fit
// beside them.
func (r *recordWriter) end(buf []byte) error {
	whole := len(r.buf)
	if r.buf = buf; len(buf) <= r.atOnce || whole == 0 {
		return nil
	}
	_, err := r.w.Write(buf[:whole])
	r.buf = buf[:copy(buf, buf[whole:])]
	return err
}

// Write collects one record.
func (r *recordWriter) Write(record []byte) (int, error) {
	if err := r.end(append(r.begin(), record...)); err != nil {
		return 0, err
	}
	return len(record), nil
}

// Flush writes what is left.
func (r *recordWriter) Flush() error {
	if len(r.buf) == 0 {
		return nil
	}
	_, err := r.w.Write(r.buf)
	r.buf = r.buf[:0]
	return err
}
