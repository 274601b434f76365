package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/internal/operate/tracing"
	"github.com/firnid/firn/server/internal/protocol/requestid"
)

// logFlags say how serve logs, on stderr.
type logFlags struct {
	logFormat string
	logLevel  string

	level slog.LevelVar // the current level
}

func defaultLog() logFlags { return logFlags{logFormat: "text", logLevel: "info"} }

// flags adds the flags of logs.
func (l *logFlags) flags(cmd *cobra.Command) {
	wordVar(cmd, &l.logFormat, "log-format", "FORMAT", "format of the log on stderr: text or json", "text", "json")
	wordVar(cmd, &l.logLevel, "log-level", "LEVEL", "minimum level of log messages: debug (every request), info, warn or error",
		"debug", "info", "warn", "error")
}

// setLevel sets the current level to a value of --log-level.
func (l *logFlags) setLevel(word string) {
	var level slog.Level
	_ = level.UnmarshalText([]byte(word))
	l.level.Set(level)
}

// brokenPipes receives SIGPIPE, and nothing reads it.
var brokenPipes = make(chan os.Signal, 1)

// logger returns a logger that writes to stderr. The log ends with the command,
// after its error was reported.
func (l *logFlags) logger(a *app) *slog.Logger {
	l.setLevel(l.logLevel)
	o := &slog.HandlerOptions{Level: &l.level}
	handler := func(w io.Writer) slog.Handler {
		if l.logFormat == "json" {
			return slog.NewJSONHandler(visibleJSON{w}, o)
		}
		return slog.NewTextHandler(w, o)
	}
	// With a handler, a write to a pipe without a reader returns an error instead
	// of ending the program. Commands that it starts do not inherit the handler.
	signal.Notify(brokenPipes, syscall.SIGPIPE)
	a.log = newLogWriter(a.stderr, func(lines int) []byte {
		var b bytes.Buffer
		slog.New(handler(&b)).Warn("log lines dropped: nothing read the log", "lines", lines)
		return b.Bytes()
	})
	return slog.New(requestid.NewHandler(tracing.NewHandler(handler(a.log))))
}

// A visibleJSON writes lines of JSON. It escapes what encoding/json leaves as it
// is and a terminal may act on: DEL, the control codes U+0080 to U+009F, and
// other characters that are not printable, such as marks of direction.
type visibleJSON struct{ io.Writer }

func (v visibleJSON) Write(line []byte) (int, error) {
	_, err := io.WriteString(v.Writer, plainLines(string(line)))
	return len(line), err
}

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
