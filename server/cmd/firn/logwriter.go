package main

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// logPatience is how long a line may take to be written before nothing waits
	// for the log any more.
	logPatience = 100 * time.Millisecond

	// mostLog is how many bytes of lines are kept while nobody reads the log.
	mostLog = 1 << 20
)

// A logWriter writes the lines of a log. If whoever reads them stops, as a pipe
// that is full does, it keeps some lines and drops others, and its callers go
// on: a server answers, and a program under a node ID is stopped in time. When
// lines are read again, one says how many are missing.
//
// It is safe for use by many goroutines at once, must be made by newLogWriter,
// and ends with close.
type logWriter struct {
	out     io.Writer
	missing func(lines int) []byte // the line about lines that are missing

	mu      sync.Mutex // guards what follows
	pending []byte
	lost    int           // lines, since the last that was kept
	written chan struct{} // closed, and replaced, when nothing is pending any more
	stalled bool          // a line has taken too long
	wake    chan struct{} // of size 1
	closed  bool
	ended   chan struct{}
}

func newLogWriter(out io.Writer, missing func(lines int) []byte) *logWriter {
	w := &logWriter{out: out, missing: missing, written: make(chan struct{}), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write takes a line, and waits until it is written, but not for long.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	if w.closed || len(w.pending)+len(line) > mostLog {
		w.lost++
		w.mu.Unlock()
		return len(line), nil
	}
	if w.lost > 0 && !w.closed {
		w.pending = append(w.pending, w.missing(w.lost)...)
		w.lost = 0
	}
	w.pending = append(w.pending, line...)
	written, stalled := w.written, w.stalled
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	if stalled {
		return len(line), nil
	}
	patience := time.NewTimer(logPatience)
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
		w.mu.Lock()
		w.stalled = w.written == written // otherwise it was, in that moment
		w.mu.Unlock()
	}
	return len(line), nil
}

// run writes what is pending.
func (w *logWriter) run() {
	defer close(w.ended)
	for range w.wake {
		for {
			w.mu.Lock()
			lines := w.pending
			w.pending = nil
			if len(lines) == 0 {
				w.stalled = false
				close(w.written)
				w.written = make(chan struct{})
				done := w.closed
				w.mu.Unlock()
				if done {
					return
				}
				break
			}
			w.mu.Unlock()
			_, _ = w.out.Write(lines) // there is nowhere to say that it failed
		}
	}
}

// close waits until all lines are written, but not for long. Later ones are
// dropped.
func (w *logWriter) close() {
	w.mu.Lock()
	if w.lost > 0 {
		w.pending = append(w.pending, w.missing(w.lost)...)
	}
	w.closed = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	select {
	case <-w.ended:
	case <-time.After(time.Second):
	}
}

// missingLines is the line of a log about lines that are missing.
func missingLines(handler func(io.Writer) slog.Handler) func(int) []byte {
	return func(lines int) []byte {
		var b bytes.Buffer
		slog.New(handler(&b)).Warn("log lines dropped: nothing read the log", "lines", lines)
		return b.Bytes()
	}
}
