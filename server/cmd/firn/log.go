package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/internal/operate/logs"
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
	wordVar(cmd, &l.logLevel, "log-level", "LEVEL",
		"minimum level of log messages: debug (every request), info, warn or error",
		"debug", "info", "warn", "error")
}

// setLevel sets the current level to a value of --log-level.
func (l *logFlags) setLevel(word string) { _ = l.level.UnmarshalText([]byte(word)) }

// logger returns a logger that writes to stderr. The log ends with the command,
// after its error was reported.
func (l *logFlags) logger(a *app) *slog.Logger {
	l.setLevel(l.logLevel)
	// With a handler, a write to a pipe without a reader returns an error instead
	// of ending the program. Commands that it starts do not inherit the handler.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var log *slog.Logger
	log, a.log = logs.New(a.stderr, l.logFormat == "json", &l.level)
	return log
}
