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

// lines splits a stream into lines, without their ends (\n or \r\n). A
// goroutine reads ahead, so that waiting for input can be cancelled: a read of
// a terminal or a pipe cannot. That goroutine ends with the input, or with the
// program.
type lines struct {
	ctx    context.Context
	chunks chan chunk
	out    Flusher // flushed before waiting for input

	rest    string // of the chunk, not returned yet
	partial []byte // the beginning of a line that ends in the next chunk
	long    bool   // the current line is too long and is skipped
	ended   bool
	err     error // why it ended, other than the end of the input
	number  int   // number of the last returned line
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

// next returns the next line. ok is false at the end; l.err is then the error,
// if any. err is errLongLine for a line that was skipped because of its length.
func (l *lines) next() (line string, err error, ok bool) {
	for {
		if i := strings.IndexByte(l.rest, '\n'); i >= 0 {
			line, l.rest = l.rest[:i], l.rest[i+1:]
			return l.give(line)
		}
		l.partial = append(l.partial, l.rest...)
		l.rest = ""
		if len(l.partial) > maxLine {
			l.partial, l.long = l.partial[:0], true
		}
		if l.ended {
			if len(l.partial) == 0 && !l.long {
				return "", nil, false
			}
			return l.give("")
		}
		if l.err = l.fill(); l.err != nil {
			return "", nil, false
		}
	}
}

// give returns the line that ends with end.
func (l *lines) give(end string) (string, error, bool) {
	l.number++
	line := end
	if len(l.partial) > 0 {
		line = string(append(l.partial, end...))
		l.partial = l.partial[:0]
	}
	if l.long || len(line) > maxLine {
		l.long = false
		return "", errLongLine, true
	}
	return strings.TrimSuffix(line, "\r"), nil, true
}

// fill waits for the next chunk.
func (l *lines) fill() error {
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
func NewReader(ctx context.Context, r io.Reader, out Flusher) (input io.Reader, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	in := &lines{ctx: ctx, chunks: make(chan chunk, 2), out: out}
	go readChunks(ctx, r, in.chunks)
	return in, stop
}

// Read implements io.Reader.
func (l *lines) Read(b []byte) (int, error) {
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
	// The goroutine that reads ahead ends with this input.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	in := &lines{ctx: ctx, chunks: make(chan chunk, 2), out: out}
	go readChunks(ctx, r, in.chunks)
	for {
		text, bad, ok := in.next()
		if !ok {
			return errors.Join(in.err, out.Flush())
		}
		if err := do(in.number, text, bad); err != nil {
			return err
		}
	}
}
