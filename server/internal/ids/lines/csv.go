package lines

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// A cellReader removes the quotes of cells such as ="123", which are not CSV.
type cellReader struct {
	in   *bufio.Reader
	rest []byte
}

var formula = regexp.MustCompile(`(^|,)="([^",]+)"`)

func (r *cellReader) Read(b []byte) (n int, err error) {
	if len(r.rest) == 0 {
		r.rest, err = r.in.ReadSlice('\n') // or a part of a long line
		r.rest = formula.ReplaceAll(r.rest, []byte("$1$2"))
	}
	if n = copy(b, r.rest); n > 0 || err == bufio.ErrBufferFull {
		err = nil
	}
	r.rest = r.rest[n:]
	return n, err
}

// A ColumnError says that no column has a name, or that several have it.
type ColumnError struct {
	Line     int // of the names
	Column   string
	Columns  []string
	Repeated bool
}

func (e *ColumnError) Error() string {
	if e.Repeated {
		return "several columns are named " + textfmt.Quote(e.Column)
	}
	return fmt.Sprintf("column %s not found", textfmt.Quote(e.Column))
}

// EachCell is like EachLine for the cells in a column of CSV: the column has a
// name in the first line, or a number from 1 in a file without names.
func EachCell(ctx context.Context, r io.Reader, name string, out *Writer,
	do func(line int, text string, bad error) error,
) error {
	from, stop := Read(ctx, r, out, byteOrderMark)
	defer stop()
	table := csv.NewReader(&cellReader{in: bufio.NewReader(from)})
	table.FieldsPerRecord, table.ReuseRecord = -1, true
	column, _ := strconv.Atoi(name)
	column--
	for {
		cells, err := table.Read()
		if err == io.EOF {
			return out.Flush()
		}
		line, text := 0, ""
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
			line, err = bad.Line, bad.Err
		} else if err != nil {
			return err
		} else if line, _ = table.FieldPos(0); column < 0 {
			column = slices.Index(cells, name)
			if column < 0 || slices.Contains(cells[column+1:], name) {
				return &ColumnError{line, name, cells, column >= 0}
			}
			continue
		} else if column < len(cells) {
			text = cells[column]
		} else {
			err = fmt.Errorf("the line has %d of %d columns", len(cells), column+1)
		}
		if err := do(line, text, err); err != nil {
			return err
		}
	}
}
