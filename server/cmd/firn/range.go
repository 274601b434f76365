package main

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

func newRange(a *app) *cobra.Command {
	var (
		layout   = firn.Default()
		from, to time.Time
		format   form.Form
		prefix   string
		column   string
		every    string
		table    string
		asJSON   bool
	)
	cmd := command("range", noArgs, func(cmd *cobra.Command, _ []string) error {
		if err := outputForm(cmd, &format, layout, prefix); err != nil {
			return err
		}
		if format.Is(firn.Raw) {
			return misuse("firn range --format hex", "--format raw: range prints text")
		}
		lo, hi, err := form.Range(layout, from, to)
		if err != nil {
			hint := ""
			if !from.Before(to) {
				hint = "--from must be earlier than --to"
			}
			return misuse(hint, "%w", err)
		}
		if from.Before(layout.Epoch()) {
			a.note("--from %s is before the epoch of layout %s: the range begins at %s", stamp(from), layout, stamp(layout.Epoch()))
		}
		first, last := string(lo.Append(nil, format)), string(hi.Append(nil, format))
		switch {
		case every != "":
			if err := printPartitions(a.stdout, layout, from, to, every, table, format); err != nil {
				return err
			}
		case column != "":
			if err := sortsAsText(format); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s BETWEEN %s AND %s\n", column, sqlValue(lo, format), sqlValue(hi, format))
		case asJSON:
			a.printJSON(map[string]string{"layout": layout.String(), "from": stamp(from), "to": stamp(to), "lo": first, "hi": last})
		default:
			var r rows
			r.add("lo", "%s", first)
			r.add("hi", "%s", last)
			r.add("from", "%s", stamp(from))
			r.add("to", "%s", stamp(to))
			r.print(a.stdout, a.style())
		}
		if new(big.Int).SetBytes(hi).BitLen() > 63 && format.Is(firn.Decimal) && (every != "" || column != "") {
			a.note("IDs of 2^63 and above do not fit SQL's bigint; use a numeric column")
		}
		return nil
	})
	layoutVar(cmd, &layout, parseMadeLayout, "layout of the IDs")
	timeVar(cmd, a, &from, "from", "beginning of the range, inclusive")
	timeVar(cmd, a, &to, "to", "end of the range, exclusive")
	formVar(cmd, &format, "format", "f", "output format (default the layout's own)")
	prefixVar(cmd, &prefix, "prefix of typed text")
	cmd.Flags().Var(&value[string]{&column, notEmpty, nil, "COLUMN"}, "sql", "print COLUMN BETWEEN lo AND hi for a column of this name")
	wordVar(cmd, &every, "partitions", "PERIOD", "print the partitions of a table: day, month or year", "day", "month", "year")
	cmd.Flags().Var(&value[string]{&table, parseTable, nil, "TABLE"}, "table", "with --partitions: name of the partitioned table")
	jsonVar(cmd, &asJSON)
	require(cmd, "from", "to")
	cmd.MarkFlagsMutuallyExclusive("partitions", "sql", "json")
	cmd.MarkFlagsRequiredTogether("partitions", "table")
	return cmd
}

func stamp(t time.Time) string { return inspect.Stamp(t, time.Millisecond) }

// sortsAsText returns an error if the texts of a form do not sort like the IDs:
// only those of one width do, and numbers.
func sortsAsText(f form.Form) error {
	if !f.Fixed() && !f.Is(firn.Decimal) {
		return misuse("use --format base62 or another one of one width, if the column has this format",
			"SQL with --format %s: texts of different widths do not sort like the IDs", f)
	}
	return nil
}

// sqlValue returns an ID as SQL.
func sqlValue(id form.ID, f form.Form) string {
	text := string(id.Append(nil, f))
	if f.Is(firn.Decimal) {
		return text
	}
	return "'" + text + "'"
}

// maxPartitions bounds how many partitions are printed at once.
const maxPartitions = 10_000

// A period is the time of a partition, in UTC.
type period struct {
	years, months, days int
	layout              string // of its beginning
}

var periods = map[string]period{"day": {0, 0, 1, "2006_01_02"}, "month": {0, 1, 0, "2006_01"}, "year": {1, 0, 0, "2006"}}

// begin returns the beginning of the period that contains t.
func (p period) begin(t time.Time) (time.Time, error) {
	return time.Parse(p.layout, t.UTC().Format(p.layout))
}

func (p period) next(t time.Time) time.Time { return t.AddDate(p.years, p.months, p.days) }

// name returns the name of a table for the period that begins at t.
func (p period) name(table string, t time.Time) string {
	open, isQuoted := strings.CutSuffix(table, `"`)
	if isQuoted {
		return open + "_" + t.Format(p.layout) + `"`
	}
	return table + "_" + t.Format(p.layout)
}

var tableName = regexp.MustCompile(`^(?:(?:[\pL_][\pL\pN_$]*|"[^"]+")\.)?([\pL_][\pL\pN_$]*|"[^"]+")$`)

// parseTable parses the name of a table. PostgreSQL cuts names after 63 bytes,
// which would give all partitions of a longer one the same name.
func parseTable(s string) (string, error) {
	const most = 63 - len("_2006_01_02")
	parts := tableName.FindStringSubmatch(s)
	switch {
	case parts == nil:
		return s, errors.New(`it must be a name, as in SQL: orders, shop.orders or '"Order"'`)
	case len(strings.Trim(parts[1], `"`)) > most:
		return s, fmt.Errorf("the name must have at most %d bytes, so that those of partitions fit PostgreSQL's 63", most)
	}
	return s, nil
}

// printPartitions prints a statement of PostgreSQL for each period that
// overlaps the range.
func printPartitions(out io.Writer, l firn.Layout, from, to time.Time, every, table string, f form.Form) error {
	if err := sortsAsText(f); err != nil {
		return err
	}
	lowest := func(from time.Time) (string, error) {
		lo, _, err := form.Range(l, from, from.AddDate(1, 0, 0))
		if err != nil {
			return "", err
		}
		return sqlValue(lo, f), nil
	}
	p := periods[every]
	if from.Before(l.Epoch()) {
		from = l.Epoch()
	}
	at, err := p.begin(from)
	if err != nil {
		return misuse("", "no partition can begin at %s", stamp(from))
	}
	lo, err := lowest(at)
	for n := 0; err == nil && at.Before(to); n++ {
		if n == maxPartitions {
			return misuse("use a shorter range or longer partitions", "the range has more than %d partitions", maxPartitions)
		}
		end := p.next(at)
		hi := "MAXVALUE"
		if !end.After(l.Last()) {
			hi, err = lowest(end)
		}
		fmt.Fprintf(out, "CREATE TABLE IF NOT EXISTS %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s);\n", p.name(table, at), table, lo, hi)
		if hi == "MAXVALUE" {
			break
		}
		at, lo = end, hi
	}
	return err
}
