package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// rows are lines of a key and a value, with the values aligned.
type rows struct {
	keys, values []string
}

func (r *rows) add(key, format string, a ...any) {
	r.keys = append(r.keys, key)
	for _, v := range a {
		if _, ok := v.(terminalText); ok {
			r.values = append(r.values, fmt.Sprintf(format, a...))
			return
		}
	}
	r.values = append(r.values, textfmt.Printable(fmt.Sprintf(format, a...)))
}

// print writes the rows. On a terminal, an empty or repeated key is not
// printed.
func (r *rows) print(w io.Writer, st style) {
	width := 0
	for _, k := range r.keys {
		width = max(width, len(k))
	}
	for i, k := range r.keys {
		if st.terminal && i > 0 && r.keys[i-1] == k {
			k = ""
		}
		fmt.Fprintf(w, "%s  %s\n", st.dim(fmt.Sprintf("%-*s", width, k)), r.values[i])
	}
}

// A table is rows of cells; columns are as wide as their widest cell.
type table struct {
	head  []string
	rows  [][]string
	right map[int]bool // columns of numbers
}

func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = textfmt.Printable(cell)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) print(w io.Writer, st style) {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string, paint func(string) terminalText) {
		var b strings.Builder
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			if t.right[i] {
				b.WriteString(fill + cell)
			} else {
				b.WriteString(cell + fill)
			}
		}
		fmt.Fprintln(w, paint(strings.TrimRight(b.String(), " ")))
	}
	line(t.head, st.dim)
	for _, row := range t.rows {
		line(row, func(s string) terminalText { return terminalText(s) })
	}
}

// printJSON prints a value as a line of JSON.
func (a *app) printJSON(v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	a.stdout.err = cmp.Or(a.stdout.err, e.Encode(v))
	fmt.Fprint(a.stdout, textfmt.PrintableLines(b.String()))
}

// A listing prints records: each as JSON, or all as a table.
type listing struct {
	table
	app    *app
	asJSON bool
	broken bool // a record cannot be read
}

// list returns an empty listing with these columns.
func (a *app) list(asJSON bool, head ...string) listing {
	return listing{table: table{head: head}, app: a, asJSON: asJSON}
}

// add adds a record, as v in JSON.
func (l *listing) add(v any, cells ...string) {
	if l.asJSON {
		l.app.printJSON(v)
	} else {
		l.table.add(cells...)
	}
}

// damaged reports a record that cannot be read, as v with the error in JSON.
func (l *listing) damaged(name string, err error, v map[string]any) {
	l.broken = true
	if l.asJSON {
		v["error"] = err.Error()
		l.app.printJSON(v)
	} else {
		l.app.complain(name, err)
	}
}

// end prints the table, or a note if it is empty. The answer is no if a record
// is damaged.
func (l *listing) end(empty string) error {
	switch {
	case l.asJSON:
	case len(l.rows) > 0:
		l.print(l.app.stdout, l.app.style())
	case empty != "" && !l.broken:
		l.app.note("%s", empty)
	}
	if l.broken {
		return answerNo()
	}
	return nil
}

// addDamaged adds records that cannot be read.
func (r *rows) addDamaged(damaged []error) {
	for _, err := range damaged {
		r.add("damaged", "%s; left unchanged: no member can acquire that node ID", textfmt.Message(err))
	}
}
