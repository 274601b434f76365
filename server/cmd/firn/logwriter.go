package main

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// logPatience is how long writing a line may take before callers stop waiting
// for it.
const logPatience = 100 * time.Millisecond

// A logWriter writes the lines of a log without blocking its callers. While the
// reader does not read, for example behind a full pipe, it drops lines: a server
// still answers, and a program under a node ID is still stopped in time. When
// lines are read again, one reports how many are missing.
//
// It is safe for concurrent use. It must be made by newLogWriter.
type logWriter struct {
	out     io.Writer
	missing func(lines int) []byte // the line that reports missing lines

	mu   sync.Mutex
	turn chan struct{} // has an element while a line is being written
	lost int           // lines dropped since the last one written
}

func newLogWriter(out io.Writer, missing func(lines int) []byte) *logWriter {
	return &logWriter{out: out, missing: missing, turn: make(chan struct{}, 1)}
}

// Write writes a line, and waits for that no longer than logPatience.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.turn <- struct{}{}:
	default: // an earlier line took too long
		w.lost++
		return len(line), nil
	}
	text := bytes.Clone(line)
	if w.lost > 0 {
		text = append(w.missing(w.lost), text...)
		w.lost = 0
	}
	written := make(chan struct{})
	go func() {
		_, _ = w.out.Write(text) // an error cannot be reported anywhere
		<-w.turn
		close(written)
	}()
	timer := time.NewTimer(logPatience)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	}
	return len(line), nil
}

// Close waits until the last line is written, but not for long, and reports
// missing lines. Later lines are dropped.
func (w *logWriter) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.turn <- struct{}{}:
		if w.lost > 0 {
			_, _ = w.out.Write(w.missing(w.lost))
		}
	case <-time.After(time.Second):
	}
}
