package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// maxComplaints is how many invalid IDs are shown.
const maxComplaints = 10

// An idInput reads the IDs of a command: from arguments, files, and the
// standard input. It counts them, and reports texts that are not IDs.
type idInput struct {
	app  *app
	out  *lines.Writer // of the command, flushed before waiting for input
	csv  string        // the column with the IDs; "" if lines have only IDs
	from form.Form
	bits int // of an ID, or 0

	skipsMissing bool // NULL and the like are skipped, as blank lines and empty cells are

	// onBad takes the place of a complaint on stderr.
	onBad func(where lines.Place, err error) error

	tally
	stdin bool // the standard input was read
}

// An idHandler takes the next ID. It returns why the text is not an ID, or an
// error that ends the command.
type idHandler func(p lines.Place, text string) (bad, err error)

// take passes a text on, unless it is bad already.
func (in *idInput) take(p lines.Place, text string, bad error, do idHandler) (err error) {
	in.all++
	if bad == nil {
		bad, err = do(p, text)
	}
	if bad == nil || err != nil {
		return err
	}
	if in.skipsMissing && p.Line > 0 && text != "" && form.IsMissing(text) {
		in.all--
		in.missing++
		return nil
	}
	in.bad++
	if in.onBad != nil {
		return in.onBad(p, bad)
	}
	return in.complain(p, bad)
}

// complain reports an invalid ID, up to maxComplaints of them. It flushes the
// output first, so that both stay in order on a terminal.
func (in *idInput) complain(where lines.Place, err error) error {
	if in.bad > maxComplaints {
		if in.bad == maxComplaints+1 {
			in.app.note("further invalid IDs are counted but not shown")
		}
		return nil
	}
	if e := in.out.Flush(); e != nil {
		return e
	}
	in.app.complain(where.String(), err)
	return nil
}

// badJSON reports texts that are not IDs as JSON, in their place.
func (in *idInput) badJSON(_ lines.Place, err error) error {
	return json.NewEncoder(in.out).Encode(errorJSON(err))
}

// errorJSON returns invalid input for JSON.
func errorJSON(err error) any {
	return map[string]string{"error": textfmt.Message(err)}
}

// csvVar adds --csv.
func csvVar(cmd *cobra.Command, column *string) {
	textVar(cmd, column, "csv", "COLUMN",
		"column of a CSV file with the IDs: its name, or its number from 1")
}

// each calls do for every ID. An argument that is not an ID but names a file is
// read as that file; - is the standard input.
func (in *idInput) each(ctx context.Context, args []string, do idHandler) error {
	files := 0
	for _, arg := range args {
		var err error
		if arg == "-" || in.from.Is(firn.Raw) || in.isFile(arg) {
			files++
			err = in.file(ctx, arg, do)
		} else {
			err = in.take(lines.Place{}, arg, nil, do)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return failed("an argument that is not an ID is read as a file name", "%w", err)
		}
		if err != nil {
			return err
		}
	}
	if in.csv != "" && files == 0 {
		return misuse("name the file, or - for the standard input",
			"--csv %s has no effect on IDs given as arguments", in.csv)
	}
	return in.out.Flush()
}

// isFile reports whether an argument is a file: it is not an ID, and the file
// exists, or it looks like a path.
func (in *idInput) isFile(arg string) bool {
	if _, _, err := in.from.Decode(arg, in.bits); err == nil || arg == "" {
		return false
	}
	if info, err := os.Stat(arg); err == nil {
		return !info.IsDir() || strings.ContainsRune(arg, os.PathSeparator)
	}
	ext := filepath.Ext(arg)
	return strings.ContainsRune(arg, '/') || len(ext) > 1 && (ext[1] < '0' || ext[1] > '9')
}

// file reads the IDs in a file, or in the standard input for -. Those of bytes
// have numbers in place of lines.
func (in *idInput) file(ctx context.Context, name string, do idHandler) error {
	r, name, err := in.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	each := func(n int, text string, bad error) error {
		if text = strings.TrimSpace(text); text == "" && bad == nil {
			in.missing++
			return nil
		}
		return in.take(lines.Place{File: name, Line: n}, text, bad, do)
	}
	switch isRaw := in.from.Is(firn.Raw); {
	case isRaw && in.csv != "":
		return misuse("leave one of them out", "--csv reads text, but --from raw reads bytes")
	case isRaw && in.bits == 0:
		return misuse("--bits 64 or --bits 128", "--from raw: the size of the IDs is needed")
	case isRaw:
		return lines.EachRaw(ctx, r, in.bits/8, in.out, func(n int, id string) error {
			return in.take(lines.Place{File: name, Line: n}, id, nil, do)
		})
	case in.csv == "":
		return lines.EachLine(ctx, r, in.out, each)
	}
	err = lines.EachCell(ctx, r, in.csv, in.out, each)
	if bad, ok := errors.AsType[*lines.ColumnError](err); ok {
		hint := "remove the names' line, and give the column's number from 1"
		if !bad.Repeated {
			hint = "the columns are " + textfmt.FirstFew(bad.Columns, textfmt.Quote)
		}
		return misuse(hint, "%s: %w", lines.Place{File: name, Line: bad.Line}, err)
	}
	return err
}

// open opens a file, or the standard input for -, which has no name.
func (in *idInput) open(name string) (io.ReadCloser, string, error) {
	if name != "-" {
		f, err := os.Open(name)
		return f, name, err
	}
	if in.stdin {
		return nil, "", misuse("", "the standard input (-) can be read only once")
	}
	in.stdin = true
	return io.NopCloser(in.app.stdin), "", nil
}

// A tally counts the IDs, those that could not be read, and fields without one.
type tally struct{ all, bad, missing int }

// result returns nil if all IDs could be read.
func (t tally) result(a *app, what string) error {
	if t.bad == 0 {
		return nil
	}
	if t.all > 1 {
		fmt.Fprintf(a.stderr, "firn: %d of %d %s could not be read\n", t.bad, t.all, what)
	}
	if t.bad > maxComplaints && what == "IDs" {
		fmt.Fprintln(a.stderr,
			"firn: hint: use --csv COLUMN for a column of a CSV file, and --from FORMAT for the format of the IDs")
	}
	return answerNo()
}
