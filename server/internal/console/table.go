package console

import (
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// A table is rows of cells under columns. On a narrow screen, each row is a
// block whose cells are labeled.
type table struct {
	Class   string
	Head    string // the class of its head
	Columns []column
	Rows    []row
}

// A column has a name, and a class for its cells: n for numbers.
type column struct{ Name, Class string }

// A row is a row of a table. Its first cell names it.
type row struct {
	Key   string // to find it again when the page changes; empty if it never does
	Class string
	Cells []cell
}

func (c column) attributes() templ.Attributes {
	all := class(c.Class)
	all["data-label"] = c.Name
	return all
}

func (r row) attributes() templ.Attributes {
	all := class(r.Class)
	if r.Key != "" {
		all["data-key"] = r.Key
	}
	return all
}

// A cell has a state, or a text, which may be a link, or a button that copies.
type cell struct {
	State       state
	Text, Small string
	Link        string
	Code        bool
	Copy        string
}

// texts makes cells of texts.
func texts(all ...string) (cells []cell) {
	for _, text := range all {
		cells = append(cells, cell{Text: text})
	}
	return cells
}

// A fact is a value with its name.
type fact struct{ Name, Value string }

// class returns the attribute with the classes of an element: with those of
// names that are not empty.
func class(names ...string) templ.Attributes {
	all := make(templ.Attributes)
	if text := strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == "" }), " "); text != "" {
		all["class"] = text
	}
	return all
}
