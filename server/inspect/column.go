package inspect

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// A Column finds the ID in each line of a text written by a database,
// spreadsheet or program: plain, in quotes, with spaces, with a header, in the
// tables of psql and mysql, or in a column of CSV. Set the fields before the
// first line. It is for one text, and not safe for concurrent use.
type Column struct {
	// Name is the column with the IDs: its name in the header, or its number from
	// 1. If it is empty, each line holds only an ID.
	Name string

	// From and Bits describe the IDs, as for Decode. They help to tell whether the
	// first line is a header.
	From Encoding
	Bits int

	Header string // the text that was taken for the header, or ""

	begun bool   // a line that is not blank was read
	found bool   // and an ID was found
	table bool   // and a rule or the end of a table
	sep   string // between columns, or ""
	boxed bool   // separators also at both ends
	index int    // of the column
	part  string // a record whose quoted text continues on the next line
}

// A ColumnError means that the text does not have the expected columns: no
// further line can be read.
type ColumnError struct {
	Reason  string
	Columns []string // the cells of the first line
}

func (e *ColumnError) Error() string { return e.Reason }

// maxRecord is the maximum length of a record that spans several lines.
const maxRecord = 1 << 20

// blanks are characters that surround IDs but are never part of one.
const blanks = " \t\r\n\"'`,;|[](){}<>\u00a0\u200b\ufeff│"

// Find returns the ID in the next line. ok is false if the line has none: it is
// blank, a header, a rule, or the end of a table. A *ColumnError ends the text;
// after another error the next line can be read.
func (c *Column) Find(line string) (id string, ok bool, err error) {
	if c.part != "" {
		line, c.part = c.part+"\n"+line, ""
	}
	if isFurniture(line) {
		c.table = c.table || strings.TrimSpace(line) != ""
		return "", false, nil
	}
	first := !c.begun
	if first {
		if err := c.begin(line); err != nil {
			return "", false, err
		}
		if c.Header != "" {
			return "", false, nil
		}
	}
	text := line
	if c.Name != "" {
		if c.quoted() && strings.Count(line, `"`)%2 == 1 && len(line) < maxRecord {
			c.part = line
			return "", false, nil
		}
		if text, ok = c.cell(line); !ok {
			return "", false, fmt.Errorf("column %d not found in the line", c.index+1)
		}
	}
	text = trim(text)
	switch {
	case text == "", text == c.Header && c.Header != "", isNull(text):
		return "", false, nil
	case first && c.isHeader(text):
		c.Header = text
		return "", false, nil
	}
	c.found = true
	return text, true, nil
}

// End returns the header if nothing followed it, outside of tables: then it was
// not a header but an invalid ID.
func (c *Column) End() (text string, ok bool) {
	return c.Header, c.Header != "" && !c.found && !c.table && c.Name == ""
}

// Pasted finds the IDs in pasted text: a column as Column reads it, or several
// IDs per line. It returns at most most IDs.
func Pasted(text string, most int) (ids []string) {
	var c Column
	add := func(found string) {
		for _, id := range strings.FieldsFunc(found, func(r rune) bool { return r < ' ' || strings.ContainsRune(blanks, r) }) {
			if len(ids) < most && !isNull(id) {
				ids = append(ids, id)
			}
		}
	}
	for line := range strings.Lines(text) {
		found, ok, err := c.Find(strings.TrimRight(line, "\r\n"))
		switch {
		case err != nil:
			add(line) // the line has several IDs
		case ok:
			add(found)
		}
		if len(ids) == most {
			return ids
		}
	}
	if found, ok := c.End(); ok {
		add(found)
	}
	return ids
}

// begin analyzes the first line.
func (c *Column) begin(line string) error {
	c.begun = true
	c.sep = separator(line)
	inner := strings.TrimSpace(line)
	c.boxed = len(inner) > 1 && (c.sep == "|" || c.sep == "│") && strings.HasPrefix(inner, c.sep) && strings.HasSuffix(inner, c.sep)
	var cells []string
	for i := 0; ; i++ {
		c.index = i
		cell, ok := c.cell(line)
		if !ok {
			break
		}
		cells = append(cells, trim(cell))
	}
	if c.Name == "" {
		filled := 0
		for _, cell := range cells {
			if cell != "" {
				filled++
			}
		}
		if filled > 1 {
			return &ColumnError{fmt.Sprintf("the first line has %d columns", len(cells)), cells}
		}
		return nil
	}
	if n, err := strconv.Atoi(c.Name); err == nil {
		if n < 1 || n > len(cells) {
			return &ColumnError{fmt.Sprintf("column %d not found: the first line has %s", n, count(len(cells), "column")), cells}
		}
		c.index = n - 1
		return nil
	}
	for i, cell := range cells {
		if strings.EqualFold(cell, c.Name) {
			c.index, c.Header = i, cell
			return nil
		}
	}
	return &ColumnError{fmt.Sprintf("column %s not found in the first line", Quote(c.Name)), cells}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// quoted reports whether cells may be in quotes, with separators inside.
func (c *Column) quoted() bool { return c.sep != "|" && c.sep != "│" }

// separator returns the most frequent separator between the cells of a line.
func separator(line string) string {
	best, most := "", 0
	for _, sep := range []string{"\t", "|", "│", ";", ","} {
		n, inQuotes := 0, false
		for rest := line; rest != ""; {
			switch {
			case rest[0] == '"':
				inQuotes = !inQuotes
				rest = rest[1:]
			case !inQuotes && strings.HasPrefix(rest, sep):
				n++
				rest = rest[len(sep):]
			default:
				rest = rest[1:]
			}
		}
		if n > most {
			best, most = sep, n
		}
	}
	return best
}

// cell returns the cell of the Column in a line.
func (c *Column) cell(line string) (string, bool) {
	if c.sep == "" {
		return line, c.index == 0
	}
	if c.boxed {
		line = strings.TrimSpace(line)
		line = strings.TrimSuffix(strings.TrimPrefix(line, c.sep), c.sep)
	}
	for i := 0; ; i++ {
		end := -1
		start := strings.TrimLeft(line, " \ufeff")
		if c.quoted() && strings.HasPrefix(start, `"`) {
			// Skip to the closing quote; two quotes are one inside.
			at := len(line) - len(start) + 1
			for at < len(line) {
				if line[at] != '"' {
					at++
				} else if at+1 < len(line) && line[at+1] == '"' {
					at += 2
				} else {
					break
				}
			}
			if at < len(line) {
				if end = strings.Index(line[at:], c.sep); end >= 0 {
					end += at
				}
			}
		} else {
			end = strings.Index(line, c.sep)
		}
		if i == c.index {
			if end >= 0 {
				line = line[:end]
			}
			return line, true
		}
		if end < 0 {
			return "", false
		}
		line = line[end+len(c.sep):]
	}
}

// trim removes what surrounds an ID.
func trim(text string) string {
	if n := len(text); n > 0 && isPlain(text[0]) && isPlain(text[n-1]) {
		return text
	}
	return strings.Trim(text, blanks)
}

func isPlain(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}

// isNull reports whether a cell has no value, in the notation of a database.
func isNull(text string) bool {
	switch text {
	case "NULL", "null", `\N`, "<null>", "NaN":
		return true
	}
	return false
}

// isFurniture reports whether a line is part of a table but not of its cells: a
// rule, or the number of rows.
func isFurniture(line string) bool {
	if line != "" && line[0] >= '0' && line[0] <= '9' && !strings.HasSuffix(line, ")") {
		return false // fast path for IDs
	}
	line = strings.TrimSpace(line)
	if strings.Trim(line, "-+=|:─│┌┐└┘├┤┬┴┼═║╔╗╚╝╠╣╦╩╬╞╡╪ ") == "" {
		return true
	}
	if inner, ok := strings.CutPrefix(line, "("); ok && inner != "" && inner[0] >= '0' && inner[0] <= '9' {
		return strings.HasSuffix(inner, ")") && strings.Contains(inner, " ") && !strings.Contains(inner, ",")
	}
	return strings.Contains(line, " row in set (") || strings.Contains(line, " rows in set (")
}

// isHeader reports whether the first text is the name of a column.
func (c *Column) isHeader(text string) bool {
	if strings.EqualFold(text, "id") {
		return true
	}
	if r := rune(text[0]); len(text) > 64 || !unicode.IsLetter(r) && r != '_' && r != '?' && r < 0x80 {
		return false
	}
	_, _, err := Decode(text, c.From, c.Bits)
	var doubt *AmbiguousError
	if !errors.As(err, &doubt) {
		return err != nil && !hasDigitsOf(text)
	}
	// A word as long as an ID: column names have no digits and one case, or end
	// with Id.
	return !hasDigitsOf(text) && (strings.ToLower(text) == text || strings.ToUpper(text) == text || strings.HasSuffix(strings.ToLower(text), "id"))
}

// hasDigitsOf reports whether a text has more digits than column names have.
func hasDigitsOf(text string) bool {
	n := 0
	for i := range len(text) {
		if text[i] >= '0' && text[i] <= '9' {
			n++
		}
	}
	return n > 2
}
