package check

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// A FileError means that the temporary file, in os.TempDir, could not be
// written.
type FileError struct{ Err error }

func (e *FileError) Error() string { return "save the order of the IDs: " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// steps records the steps between strictly increasing keys, so that the keys
// can be replayed. A run of equal steps is stored as one step and a count. IDs
// that a generator makes at once take almost no space, other IDs about four
// bytes each. Beyond stepsInMemory the steps go to a temporary file.
type steps struct {
	buf     []byte
	step    key // the last step, …
	times   uint64
	most    int // bytes of buf; 0: stepsInMemory
	file    *os.File
	writer  *bufio.Writer
	written int64
}

// stepsInMemory bounds the memory for an ordered stream of any length.
const stepsInMemory = 16 << 20

// fileBuffer is the buffer of the temporary file.
const fileBuffer = 256 << 10

// add records a step. The first step is the first key itself, which may be 0.
func (s *steps) add(step key, first bool) error {
	if step == s.step && !first {
		s.times++
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.step, s.times = step, 1
	return nil
}

// flush writes the last step in this form:
//
//	uvarint(step<<1)               one step
//	uvarint(step<<1 | 1), uvarint  a run of equal steps and its length
//	0, uvarint hi, lo, times       a step of more than 63 bits, or of 0
func (s *steps) flush() error {
	if s.times == 0 {
		return nil
	}
	b := s.buf
	if s.step.hi != 0 || s.step.lo>>63 != 0 || s.step.lo == 0 {
		b = append(b, 0)
		b = binary.AppendUvarint(b, s.step.hi)
		b = binary.AppendUvarint(b, s.step.lo)
		b = binary.AppendUvarint(b, s.times)
	} else if s.times == 1 {
		b = binary.AppendUvarint(b, s.step.lo<<1)
	} else {
		b = binary.AppendUvarint(b, s.step.lo<<1|1)
		b = binary.AppendUvarint(b, s.times)
	}
	s.buf, s.times = b, 0
	if len(b) < cmp.Or(s.most, stepsInMemory) {
		return nil
	}
	return s.spill()
}

// spill moves the steps to the temporary file.
func (s *steps) spill() error {
	if s.file == nil {
		f, err := os.CreateTemp("", "firn-check-*")
		if err != nil {
			return &FileError{err}
		}
		s.file, s.writer = f, bufio.NewWriterSize(f, fileBuffer)
		if runtime.GOOS != "windows" {
			// Remove the name now: the file disappears however the process ends.
			if err := os.Remove(f.Name()); err != nil {
				return &FileError{err}
			}
		}
	}
	n, err := s.writer.Write(s.buf)
	s.written += int64(n)
	s.buf = s.buf[:0]
	if err != nil {
		return &FileError{err}
	}
	return nil
}

// close removes the temporary file.
func (s *steps) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if runtime.GOOS == "windows" {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	s.file = nil
	return err
}

// replay reads the steps from the beginning. Nothing may be added afterwards.
func (s *steps) replay() (*stepReader, error) {
	if err := s.flush(); err != nil {
		return nil, err
	}
	if s.file == nil {
		return &stepReader{r: bufio.NewReader(bytes.NewReader(s.buf))}, nil
	}
	if err := s.writer.Flush(); err != nil {
		return nil, &FileError{err}
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the saved order of the IDs: %w", err)
	}
	all := io.MultiReader(io.LimitReader(s.file, s.written), bytes.NewReader(s.buf))
	return &stepReader{r: bufio.NewReaderSize(all, fileBuffer)}, nil
}

// A stepReader returns the steps one by one.
type stepReader struct {
	r     *bufio.Reader
	step  key
	times uint64
	given uint64
}

func (r *stepReader) next() (step key, ok bool, err error) {
	if r.times == 0 {
		v, err := binary.ReadUvarint(r.r)
		if err == io.EOF {
			return key{}, false, nil
		}
		r.step, r.times = key{0, v >> 1}, 1
		switch {
		case err != nil:
		case v == 0:
			var errs [3]error
			r.step.hi, errs[0] = binary.ReadUvarint(r.r)
			r.step.lo, errs[1] = binary.ReadUvarint(r.r)
			r.times, errs[2] = binary.ReadUvarint(r.r)
			err = errors.Join(errs[:]...)
		case v&1 == 1:
			r.times, err = binary.ReadUvarint(r.r)
		}
		if err != nil {
			return key{}, false, fmt.Errorf("read the saved order of the IDs: %w", err)
		}
	}
	r.times--
	r.given++
	return r.step, true, nil
}
