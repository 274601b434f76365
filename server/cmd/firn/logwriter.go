package main

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// logPatience is how long writing a line may take before callers stop waiting
	// for the log.
	logPatience = 100 * time.Millisecond

	// mostLines is how many lines are kept while the log is not read.
	mostLines = 1000
)

// A logWriter writes the lines of a log without blocking its callers. If the
// reader stops, for example at a full pipe, it keeps some lines and drops the
// others: a server still answers, and a program under a node ID is still
// stopped in time. When lines are read again, one reports how many are missing.
//
// It is safe for concurrent use. It must be made by newLogWriter, and ends with
// Close.
type logWriter struct {
	out     io.Writer
	missing func(lines int) []byte // the line that reports missing lines

	lines   chan logLine
	lost    atomic.Int64 // lines dropped since the last one written
	stalled atomic.Bool  // a line has taken too long
	once    sync.Once
	closing chan struct{}
	ended   chan struct{}
}

// A logLine is a line to write; written is closed when it was.
type logLine struct {
	text    []byte
	written chan struct{}
}

func newLogWriter(out io.Writer, missing func(lines int) []byte) *logWriter {
	w := &logWriter{out: out, missing: missing, lines: make(chan logLine, mostLines), closing: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write adds a line and waits until it is written, for at most logPatience.
func (w *logWriter) Write(line []byte) (int, error) {
	l := logLine{bytes.Clone(line), make(chan struct{})}
	select {
	case <-w.closing:
		return len(line), nil
	default:
	}
	select {
	case w.lines <- l:
	default:
		w.lost.Add(1)
		return len(line), nil
	}
	if w.stalled.Load() {
		return len(line), nil
	}
	timer := time.NewTimer(logPatience)
	defer timer.Stop()
	select {
	case <-l.written:
	case <-w.ended:
	case <-timer.C:
		w.stalled.Store(true)
	}
	return len(line), nil
}

// run writes lines until Close, and then those that are left.
func (w *logWriter) run() {
	defer close(w.ended)
	for {
		select {
		case l := <-w.lines:
			w.write(l)
		case <-w.closing:
			for {
				select {
				case l := <-w.lines:
					w.write(l)
				default:
					w.reportLost()
					return
				}
			}
		}
	}
}

func (w *logWriter) write(l logLine) {
	_, _ = w.out.Write(l.text) // an error cannot be reported anywhere
	close(l.written)
	if len(w.lines) == 0 {
		w.stalled.Store(false)
		w.reportLost()
	}
}

func (w *logWriter) reportLost() {
	if n := w.lost.Swap(0); n > 0 {
		_, _ = w.out.Write(w.missing(int(n)))
	}
}

// Close waits until all lines are written, but not for long. Later lines are
// dropped.
func (w *logWriter) Close() {
	w.once.Do(func() { close(w.closing) })
	select {
	case <-w.ended:
	case <-time.After(time.Second):
	}
}
