// Command firn makes, reads and explains unique, time-ordered IDs.
//
// There is a file for each subcommand or group of them; root.go ties them
// together, and help has their texts. The commands read flags and print. The
// packages below ids provide what they print about IDs; package server is what
// serve runs.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/logs"
	"github.com/firnid/firn/server/internal/operate/storedir"
	"github.com/firnid/firn/server/internal/service"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func main() { os.Exit(execute(storedir.Container, "", nil)) }

// execute runs the program. container detects a container; machine is the
// directory of the machine, "" for the system's; clock is the clock of the
// program, nil for the system's.
func execute(container func() string, machine string, clock func() time.Time) (code int) {
	now := clock
	if now == nil {
		now = time.Now
	}
	ctx, stop := untilSignal(context.Background(), nil, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, &app{
		stdin:  os.Stdin,
		stdout: &output{Writer: os.Stdout},
		stderr: os.Stderr,
		now:    now,
		getenv: os.Getenv,

		clock: clock,

		container:   container,
		directories: storedir.Paths{Shared: machine},
	}, os.Args[1:])
}

// An app is the environment of the commands.
type app struct {
	stdin       io.Reader
	stdout      *output
	stderr      io.Writer
	now         func() time.Time
	clock       func() time.Time // of members of a store; nil means the system's, which they read faster
	getenv      func(string) string
	container   func() string // the evidence of a container, or ""
	directories storedir.Paths
	log         *logs.Writer         // of a command that logs, also for its error; nil for others
	changes     service.WriteOutcome // of the stores of withStore and openPlace

	started time.Time // the time to which all times of a command are relative
	args    []string  // the command line
}

// Exit codes.
const (
	exitFine        = 0
	exitNo          = 1   // the answer is no: not an ID, duplicates found, a detached sequencer
	exitMisuse      = 2   // invalid flags or arguments
	exitFailed      = 3   // failed: a file, the network, a store
	exitSignal      = 128 // + the signal that interrupted the command, as in shells
	exitInterrupted = exitSignal + 2
)

// run runs one command and returns the exit code.
func run(ctx context.Context, a *app, args []string) int {
	a.started, a.args = a.now(), args
	a.directories.Getenv = a.getenv
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if a.stdout.err != nil {
		err = failed("", "%w", a.stdout.err)
	} else if err != nil && !errors.As(err, new(*exitError)) {
		err = misuse(usage(cmd), "%w", err)
	}
	code := exitCode(err)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil && code == exitFailed {
		code = exitInterrupted
		if by, ok := errors.AsType[*interruption](context.Cause(ctx)); ok {
			code = by.code()
		}
	}
	a.report(err)
	if a.log != nil {
		a.log.Close()
	}
	return code
}

// An output keeps the first error of writing, which run returns: what prints
// need not look at errors.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// An exitError is an error with an exit code.
type exitError struct {
	code int
	err  error  // nil: nothing more to print
	hint string // what to do, or ""

	flag, value string // the flag whose value is wrong, if any, and the value, if that helps
}

func (e *exitError) Error() string {
	switch {
	case e.err == nil:
		return fmt.Sprintf("exit %d", e.code)
	case e.flag == "":
		return e.err.Error()
	case e.value == "":
		return fmt.Sprintf("--%s: %s", e.flag, textfmt.Message(e.err))
	}
	return fmt.Sprintf("--%s %q: %s", e.flag, e.value, textfmt.Message(e.err))
}

func (e *exitError) Unwrap() error { return e.err }

// misuse returns the error for invalid flags or arguments. hint is shown below
// it; "" means none.
func misuse(hint string, format string, a ...any) error {
	return &exitError{code: exitMisuse, err: fmt.Errorf(format, a...), hint: hint}
}

// wrongFlag is misuse for the value of a flag, which is "" if that does not
// help.
func wrongFlag(flag, value, hint, format string, a ...any) *exitError {
	return &exitError{code: exitMisuse, err: fmt.Errorf(format, a...), hint: hint, flag: flag, value: value}
}

// failed returns the error for something that could not be done.
func failed(hint string, format string, a ...any) error {
	return &exitError{code: exitFailed, err: fmt.Errorf(format, a...), hint: hint}
}

// refused returns the error for an answer of no that needs a message.
func refused(hint string, format string, a ...any) error {
	return &exitError{code: exitNo, err: fmt.Errorf(format, a...), hint: hint}
}

// asFailure returns an error of a command that has failed, with the code of a
// failure unless it has another. Other errors are cobra's: the command line
// is invalid.
func asFailure(err error) error {
	if err == nil || errors.As(err, new(*exitError)) {
		return err
	}
	return failed("", "%w", err)
}

// answerNo ends the program with 1 and no message.
func answerNo() error { return &exitError{code: exitNo} }

// exitCode returns the exit code for err.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil, isBrokenPipe(err):
		return exitFine
	case errors.As(err, &e):
		return e.code
	}
	return exitFailed
}

// isBrokenPipe reports whether the reader of the output has gone, such as head
// after ten lines. On systems with SIGPIPE, that ends the program earlier.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// report prints an error on stderr, with its hint.
func (a *app) report(err error) {
	var e *exitError
	switch isExit := errors.As(err, &e); {
	case err == nil, isBrokenPipe(err), isExit && e.err == nil:
		return
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.errors(), "firn: interrupted")
		return
	}
	a.complain("", err)
	if e != nil && e.hint != "" {
		fmt.Fprintln(a.errors(), "firn: hint:", textfmt.PrintableLines(e.hint))
	}
}

// errors returns where errors are reported: stderr, or the log on it.
func (a *app) errors() io.Writer {
	if a.log != nil {
		return a.log
	}
	return a.stderr
}

// complain prints an error on stderr; where names the place that it concerns,
// if any.
func (a *app) complain(where string, err error) {
	text := textfmt.Message(err)
	if where != "" {
		text = where + ": " + text
	}
	for i, line := range strings.Split(text, "\n") {
		if line = textfmt.Printable(line); i > 0 {
			line = "      " + line
		} else {
			line = "firn: " + line
		}
		fmt.Fprintln(a.errors(), line)
	}
}

// note prints a message on stderr that is not an error.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.stderr, "firn: note: %s\n", textfmt.PrintableLines(fmt.Sprintf(format, args...)))
}
