package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/operate/doctor"
)

// A failingWriter fails with an error: syscall.EPIPE is a pipe whose reader has
// gone, syscall.ENOSPC a file on a full disk.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// inspectOutput is what inspect shows of an ID to a reader with this look.
func inspectOutput(t *testing.T, l style, layout, id string) string {
	t.Helper()
	c := inspectCmd{style: l}
	c.Now = time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)
	if layout != "" {
		c.Layout = firn.MustParseLayout(layout)
	}
	r := must.Get(inspect.Read(id, c.Options))(t)
	var b bytes.Buffer
	c.print(&b, &r, false)
	return b.String()
}

// TestTerminal looks at what only a terminal shows: boxes, colours, and lists
// where boxes are too wide.
func TestTerminal(t *testing.T) {
	const colour = "\x1b["
	wide := inspectOutput(t, style{terminal: true, colour: true, width: 100}, "", "117398450593894403")
	for _, want := range []string{colour + "1mdefault", "┌───┬", "│ 0 │ time 27989971779 ", "│ node 329 │ seq 3 ", "28 seconds ago"} {
		if !strings.Contains(wide, want) {
			t.Errorf("a terminal does not show %q:\n%s", want, wide)
		}
	}
	if plain := inspectOutput(t, style{terminal: true, width: 100}, "", "117398450593894403"); strings.Contains(plain, colour) || !strings.Contains(plain, "┌───┬") {
		t.Errorf("a terminal without colours shows\n%s", plain)
	}
	narrow := inspectOutput(t, style{terminal: true, width: 50}, "uuidv7", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F")
	if strings.Contains(narrow, "┌") {
		t.Errorf("a narrow terminal shows\n%s", narrow)
	}
	pipe := inspectOutput(t, style{}, "", "117398450593894403")
	if strings.Contains(pipe, colour) || strings.Count(pipe, "\nfor  ") < 1 {
		t.Errorf("a pipe gets\n%s", pipe)
	}
	for line := range strings.Lines(narrow) {
		if n := len([]rune(line)); n > 51 {
			t.Errorf("a terminal of 50 columns gets a line of %d: %s", n, line)
		}
	}

	for _, width := range []int{80, 120, 200} {
		var b bytes.Buffer
		must.Do(t, listPresets(&app{stdout: &output{Writer: &b}}, style{terminal: true, width: width}, false))
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
				t.Errorf("a terminal of %d columns gets a line of %d: %s", width, n, line)
			}
		}
	}
}

// TestForeignText prints text of other programs, such as hosts in records and
// errors of servers, that a terminal would obey.
func TestForeignText(t *testing.T) {
	const evil = "h\x1b[31m\x1b]0;x\a\r\b\u009b2J\u202e\u2028\x7f\xff\U000e0041é漢"
	var b bytes.Buffer
	a := &app{stdout: &output{Writer: &b}, stderr: &b}
	for what, print := range map[string]func(){
		"table":   func() { x := table{head: []string{"HOST"}}; x.add(evil); x.print(&b, style{}) },
		"colored": func() { b.WriteString(string(style{}.red(evil))) },
		"rows":    func() { var r rows; r.add("host", "%s", evil); r.print(&b, style{}) },
		"error":   func() { a.report(failed(evil, "open: %s", evil)) },
		"place":   func() { a.complain(evil, errors.New("x")) },
		"note":    func() { a.note("host %s", evil) },
		"json":    func() { a.printJSON(map[string]string{"host": evil}) },
		"doctor":  func() { a.printFindings([]doctor.Finding{{Text: evil, Fix: evil}}, false) },
		"doctor json": func() {
			a.printFindings([]doctor.Finding{{Text: evil, Fix: evil}}, true)
		},
	} {
		b.Reset()
		print()
		for _, r := range b.String() {
			if r != '\n' && (!unicode.IsPrint(r) || r == utf8.RuneError) && !(strings.Contains(what, "json") && r == utf8.RuneError) {
				t.Errorf("%s: %q has %U", what, &b, r)
			}
		}
		if !strings.Contains(b.String(), `\u001b[31m`) || !strings.Contains(b.String(), "é漢") {
			t.Errorf("%s: %q does not show the text", what, &b)
		}
		if strings.Contains(what, "json") {
			var v any
			if err := json.Unmarshal(b.Bytes(), &v); err != nil || !strings.Contains(fmt.Sprint(v), strings.ToValidUTF8(evil, "\ufffd")) {
				t.Errorf("%s: %v, %q", what, err, v)
			}
		}
	}
}
