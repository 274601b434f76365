package records

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine is the maximum length of a line; a longer one is not a valid record.
const maxLine = 1 << 20

// errLongLine is the error for a line longer than maxLine.
var errLongLine = errors.New("the line is longer than 1 MiB")

// input is a stream that a goroutine reads ahead, so that waiting for it can be
// cancelled: a read of a terminal or a pipe cannot. That goroutine ends with
// the input, or with the program.
type input struct {
	ctx    context.Context
	chunks chan chunk
	out    Flusher // flushed before waiting
	rest   string  // of the chunk, not returned yet
	ended  bool
}

type chunk struct {
	text string
	err  error
}

// chunkSize is large enough that handing over a chunk costs nothing per line.
const chunkSize = 256 << 10

func readChunks(ctx context.Context, r io.Reader, to chan<- chunk) {
	buf := make([]byte, chunkSize)
	mark := "\ufeff" // which Windows programs write in front of text
	for {
		n, err := r.Read(buf)
		if n == 0 && err == nil {
			continue
		}
		text := strings.TrimPrefix(string(buf[:n]), mark)
		mark = ""
		select {
		case to <- chunk{text, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// fill waits for the next chunk.
func (l *input) fill() error {
	var c chunk
	select {
	case c = <-l.chunks:
	default:
		if err := l.out.Flush(); err != nil {
			return err
		}
		select {
		case c = <-l.chunks:
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
	l.rest = c.text
	if c.err != nil {
		l.ended = true
		if c.err != io.EOF {
			return fmt.Errorf("read the input: %w", c.err)
		}
	}
	return nil
}

// NewReader returns the input r for a parser of its own: reads end when ctx is
// done, and flush the output before they wait. Call stop after the last read.
func NewReader(ctx context.Context, r io.Reader, out Flusher) (from io.Reader, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	in := &input{ctx: ctx, chunks: make(chan chunk, 2), out: out}
	go readChunks(ctx, r, in.chunks)
	return in, stop
}

// Read implements io.Reader.
func (l *input) Read(b []byte) (int, error) {
	for l.rest == "" {
		if l.ended {
			return 0, io.EOF
		}
		if err := l.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// EachRaw calls do for each ID of size bytes, with the number of IDs before it.
func EachRaw(r io.Reader, size int, do func(n int, b []byte) error) error {
	in := bufio.NewReaderSize(r, chunkSize)
	b := make([]byte, size)
	for n := 0; ; n++ {
		switch k, err := io.ReadFull(in, b); {
		case err == io.EOF:
			return nil
		case err == io.ErrUnexpectedEOF:
			return fmt.Errorf("the input ends after %d bytes of ID %d, which needs %d", k, n+1, size)
		case err != nil:
			return fmt.Errorf("read the input: %w", err)
		}
		if err := do(n, b); err != nil {
			return err
		}
	}
}

// A Flusher is an output with a buffer.
type Flusher interface{ Flush() error }

// EachLine calls do for each line of r, with its number from 1, until do
// returns an error. bad is the error of a line that is too long. The output is
// flushed when there is no more input for the moment, and at the end.
func EachLine(ctx context.Context, r io.Reader, out Flusher, do func(n int, text string, bad error) error) error {
	from, stop := NewReader(ctx, r, out)
	defer stop()
	in := bufio.NewReaderSize(from, maxLine+len("\n"))
	for n := 1; ; n++ {
		var bad error
		line, err := in.ReadSlice('\n')
		for err == bufio.ErrBufferFull {
			line, err = in.ReadSlice('\n')
			bad = errLongLine
		}
		switch {
		case err != nil && (err != io.EOF || len(line) == 0 && bad == nil):
			if err == io.EOF {
				err = nil
			}
			return errors.Join(err, out.Flush())
		case bad != nil:
			line = nil
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if err := do(n, text, bad); err != nil {
			return err
		}
	}
}
