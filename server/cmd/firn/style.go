package main

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// A style is how output looks: the colors and boxes that the reader can see.
// The zero style is for pipes and files.
type style struct {
	terminal bool
	colour   bool
	width    int // in columns; 0 if unknown
}

// style returns the style of stdout. NO_COLOR and TERM=dumb are respected.
func (a *app) style() style {
	if !isTerminal(a.stdout.Writer) {
		return style{}
	}
	st := style{terminal: true, colour: a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(a.stdout.Writer.(*os.File).Fd())); err == nil {
		st.width = width
	}
	return st
}

// isTerminal reports whether a stream, such as stderr, is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// fits reports whether a box is not wider than the terminal.
func (st style) fits(box string) bool {
	line, _, _ := strings.Cut(box, "\n")
	return st.width == 0 || utf8.RuneCountInString(line) <= st.width
}

// A terminalText is text for a terminal, with nothing in it but what this program
// means to say.
type terminalText string

func (st style) paint(code, s string) terminalText {
	s = textfmt.Printable(s)
	if !st.colour || s == "" {
		return terminalText(s)
	}
	return terminalText("\x1b[" + code + "m" + s + "\x1b[0m")
}

func (st style) bold(s string) terminalText   { return st.paint("1", s) }
func (st style) dim(s string) terminalText    { return st.paint("2", s) }
func (st style) red(s string) terminalText    { return st.paint("31", s) }
func (st style) green(s string) terminalText  { return st.paint("32", s) }
func (st style) yellow(s string) terminalText { return st.paint("33", s) }

// groupDigits formats a count with spaces between groups of three digits.
func groupDigits(n uint64) string { return textfmt.Grouped(n, " ") }
