// Package logwriter writes a log whose reader may stop reading.
package logwriter

import (
	"io"
	"sync"
	"time"
)

const (
	// patience is how long writing a line may take before callers stop waiting
	// for the log.
	patience = 100 * time.Millisecond

	// mostPending is how many bytes of lines are kept while the log is not read.
	mostPending = 1 << 20
)

// A Writer writes the lines of a log without blocking its callers. If the
// reader stops, for example at a full pipe, it keeps some lines and drops the
// others: a server still answers, and a program under a node ID is still
// stopped in time. When lines are read again, one reports how many are missing.
//
// It is safe for concurrent use. It must be made by New, and ends with Close.
type Writer struct {
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

// New returns a Writer of lines to out. missing returns the line that reports
// how many lines are missing.
func New(out io.Writer, missing func(lines int) []byte) *Writer {
	w := &Writer{out: out, missing: missing, written: make(chan struct{}), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write adds a line and waits until it is written, for at most patience.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	if w.closed || len(w.pending)+len(line) > mostPending {
		w.lost++
		w.mu.Unlock()
		return len(line), nil
	}
	w.reportLost()
	w.pending = append(w.pending, line...)
	written, stalled := w.written, w.stalled
	w.mu.Unlock()
	w.signal()
	if stalled {
		return len(line), nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
		w.mu.Lock()
		w.stalled = w.written == written // otherwise it was written just now
		w.mu.Unlock()
	}
	return len(line), nil
}

// reportLost adds the line that reports missing ones. The caller holds mu.
func (w *Writer) reportLost() {
	if w.lost > 0 {
		w.pending = append(w.pending, w.missing(w.lost)...)
		w.lost = 0
	}
}

// signal wakes run.
func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run writes the pending lines.
func (w *Writer) run() {
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

// Close waits until all lines are written, but not for long. Later lines are
// dropped.
func (w *Writer) Close() {
	w.mu.Lock()
	w.reportLost()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	select {
	case <-w.ended:
	case <-time.After(time.Second):
	}
}
