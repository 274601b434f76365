package main

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// logPatience is how long writing a line may take before callers stop waiting
	// for the log.
	logPatience = 100 * time.Millisecond

	// mostLog is how many bytes of lines are kept while the log is not read.
	mostLog = 1 << 20
)

// A logWriter writes the lines of a log without blocking its callers. If the
// reader stops, for example at a full pipe, it keeps some lines and drops the
// others: a server still answers, and a program under a node ID is still
// stopped in time. When lines are read again, one reports how many are missing.
//
// It is safe for concurrent use. Create it with newLogWriter, and close it.
type logWriter struct {
	out     io.Writer
	missing func(lines int) []byte // the line that reports missing lines

	mu      sync.Mutex // guards the fields below
	pending []byte
	lost    int           // lines dropped since the last one kept
	written chan struct{} // closed and replaced when no line is pending
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

// Write adds a line and waits until it is written, for at most logPatience.
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
		w.stalled = w.written == written // otherwise it was written just now
		w.mu.Unlock()
	}
	return len(line), nil
}

// run writes the pending lines.
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
			_, _ = w.out.Write(lines) // an error cannot be reported anywhere
		}
	}
}

// close waits until all lines are written, but not for long. Later lines are
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

// missingLines returns a function that formats the line about missing lines.
func missingLines(handler func(io.Writer) slog.Handler) func(int) []byte {
	return func(lines int) []byte {
		var b bytes.Buffer
		slog.New(handler(&b)).Warn("log lines dropped: nothing read the log", "lines", lines)
		return b.Bytes()
	}
}
