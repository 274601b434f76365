// Package logs writes the log of a server: lines of text or JSON, without
// characters that a terminal acts on, and without waiting for a reader.
package logs

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/tracing"
	"github.com/firnid/firn/server/internal/protocol/requestid"
)

// New returns a logger that writes text or JSON to out, and its Writer, which
// must be closed at the end.
func New(out io.Writer, inJSON bool, level slog.Leveler) (*slog.Logger, *Writer) {
	o := &slog.HandlerOptions{Level: level}
	handler := func(w io.Writer) slog.Handler {
		if inJSON {
			return slog.NewJSONHandler(visibleJSON{w}, o)
		}
		return slog.NewTextHandler(w, o)
	}
	w := newWriter(out, func(lines int) []byte {
		var b bytes.Buffer
		slog.New(handler(&b)).Warn("log lines dropped: nothing read the log", "lines", lines)
		return b.Bytes()
	})
	return slog.New(requestid.NewHandler(tracing.NewHandler(handler(w)))), w
}

// A visibleJSON writes lines of JSON. It escapes what encoding/json leaves as it
// is and a terminal may act on: DEL, the control codes U+0080 to U+009F, and
// other characters that are not printable, such as marks of direction.
type visibleJSON struct{ io.Writer }

func (v visibleJSON) Write(line []byte) (int, error) {
	_, err := io.WriteString(v.Writer, textfmt.PrintableLines(string(line)))
	return len(line), err
}

// patience is how long writing a line may take before callers stop waiting
// for it.
const patience = 100 * time.Millisecond

// A Writer writes the lines of a log without blocking its callers. While the
// reader does not read, for example behind a full pipe, it drops lines: a server
// still answers, and a program under a node ID is still stopped in time. When
// lines are read again, one reports how many are missing.
//
// It is safe for concurrent use. It must be made by New.
type Writer struct {
	out     io.Writer
	missing func(lines int) []byte // the line that reports missing lines

	mu   sync.Mutex
	turn chan struct{} // has an element while a line is being written
	lost int           // lines dropped since the last one written
}

func newWriter(out io.Writer, missing func(lines int) []byte) *Writer {
	return &Writer{out: out, missing: missing, turn: make(chan struct{}, 1)}
}

// Write writes a line, and waits for that no longer than patience.
func (w *Writer) Write(line []byte) (int, error) {
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
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	}
	return len(line), nil
}

// Close waits until the last line is written, but not for long, and reports
// missing lines. Later lines are dropped.
func (w *Writer) Close() {
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
