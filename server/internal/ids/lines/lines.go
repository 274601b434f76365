// Package lines reads lines of text and packed IDs, and writes them so that they
// stay whole in a pipe.
package lines

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

const (
	// PipeSize is PIPE_BUF on Linux, and leastPipeSize the minimum in POSIX.
	PipeSize, leastPipeSize = 4096, 512

	// fileBuf is how much is written to a file at once.
	fileBuf = 64 << 10
)

// A Writer writes as many whole lines, or packed IDs of 8 or 16 bytes, at
// once as a pipe takes, one for each Write. Otherwise lines of several
// processes that write into one pipe could be joined in the middle, and the
// result could be the ID of another process. It must be made by NewWriter, and
// flushed at the end.
type Writer struct{ *bufio.Writer }

func NewWriter(w io.Writer) *Writer {
	atOnce := leastPipeSize
	if runtime.GOOS == "linux" {
		atOnce = PipeSize
	}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			atOnce = fileBuf // appended lines stay whole
		}
	}
	return &Writer{bufio.NewWriterSize(w, atOnce)}
}

// Write collects one line or ID, and first writes the others if it does not fit
// beside them.
func (w *Writer) Write(whole []byte) (int, error) {
	if len(whole) > w.Available() {
		if err := w.Flush(); err != nil {
			return 0, err
		}
	}
	return w.Writer.Write(whole)
}

// maxLine is the maximum length of a line; a longer one is not valid input.
const maxLine = 1 << 20

// errLongLine is the error for a line longer than maxLine.
var errLongLine = errors.New("the line is longer than 1 MiB")

// An input flushes the output before it may wait for more.
type input struct {
	io.Reader
	out  *Writer
	mark []byte // to remove at the beginning
}

func (in *input) Read(b []byte) (n int, err error) {
	if err := in.out.Flush(); err != nil {
		return 0, err
	}
	n, err = in.Reader.Read(b)
	n = copy(b, bytes.TrimPrefix(b[:n], in.mark))
	in.mark = nil
	return n, err
}

// byteOrderMark is what Windows programs write in front of text.
const byteOrderMark = "\ufeff"

// Read returns the input r without a mark in front of it. Reads flush out, and
// end when ctx is done, which those of a terminal or a pipe do not: a goroutine
// reads ahead, until the end of the input or of the program. Call stop after the
// last read.
func Read(ctx context.Context, r io.Reader, out *Writer, mark string) (in io.Reader, stop func()) {
	from, to := io.Pipe()
	go func() {
		_, err := io.Copy(to, r)
		if err != nil {
			err = fmt.Errorf("read the input: %w", err)
		}
		to.CloseWithError(err)
	}()
	leave := context.AfterFunc(ctx, func() { to.CloseWithError(context.Cause(ctx)) })
	return &input{from, out, []byte(mark)}, func() {
		leave()
		from.Close()
	}
}

// EachLine calls do for each line of r, with its number from 1, until do
// returns an error. bad is the error of a line that is too long.
func EachLine(ctx context.Context, r io.Reader, out *Writer, do func(n int, line string, bad error) error) error {
	from, stop := Read(ctx, r, out, byteOrderMark)
	defer stop()
	in := bufio.NewReaderSize(from, maxLine+len("\n"))
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		var bad error
		for err == bufio.ErrBufferFull {
			line, bad = nil, errLongLine
			_, err = in.ReadSlice('\n')
		}
		if err != nil && (err != io.EOF || len(line) == 0 && bad == nil) {
			if err == io.EOF {
				err = nil
			}
			return cmp.Or(err, out.Flush())
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if err := do(n, text, bad); err != nil {
			return err
		}
	}
}

// EachRaw calls do for each ID of size bytes, with its number from 1.
func EachRaw(ctx context.Context, r io.Reader, size int, out *Writer, do func(n int, id string) error) error {
	from, stop := Read(ctx, r, out, "")
	defer stop()
	in := bufio.NewReader(from)
	id := make([]byte, size)
	for n := 1; ; n++ {
		switch k, err := io.ReadFull(in, id); {
		case err == io.EOF:
			return out.Flush()
		case err == io.ErrUnexpectedEOF:
			return fmt.Errorf("the input ends after %d bytes of ID %d, which needs %d", k, n, size)
		case err != nil:
			return err
		}
		if err := do(n, string(id)); err != nil {
			return err
		}
	}
}
