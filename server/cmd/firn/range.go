package main

import (
	"fmt"
	"math/big"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/sqlgen"
	"github.com/firnid/firn/server/internal/ids/textfmt"
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
			a.note("--from %s is before the epoch of layout %s: the range begins at %s", textfmt.Stamp(from), layout,
				textfmt.Stamp(layout.Epoch()))
		}
		isSQL := every != "" || column != ""
		if isSQL && !format.Fixed() && !format.Is(firn.Decimal) {
			return misuse("use --format base62 or another one of one width, if the column has this format",
				"SQL with --format %s: texts of different widths do not sort like the IDs", format)
		}
		first, last := string(lo.Append(nil, format)), string(hi.Append(nil, format))
		switch {
		case every != "":
			p := sqlgen.Periods()[every]
			if err := p.Partitions(a.stdout, layout, from, to, table, format); err != nil {
				return misuse("", "%w", err)
			}
		case column != "":
			fmt.Fprintf(a.stdout, "%s BETWEEN %s AND %s\n", column, sqlgen.Value(lo, format), sqlgen.Value(hi, format))
		case asJSON:
			a.printJSON(map[string]string{
				"layout": layout.String(), "from": textfmt.Stamp(from), "to": textfmt.Stamp(to), "lo": first, "hi": last,
			})
		default:
			var r rows
			r.add("lo", "%s", first)
			r.add("hi", "%s", last)
			r.add("from", "%s", textfmt.Stamp(from))
			r.add("to", "%s", textfmt.Stamp(to))
			r.print(a.stdout, a.style())
		}
		if new(big.Int).SetBytes(hi).BitLen() > 63 && format.Is(firn.Decimal) && isSQL {
			a.note("IDs of 2^63 and above do not fit SQL's bigint; use a numeric column")
		}
		return nil
	})
	layoutVar(cmd, &layout, parseMadeLayout, "layout of the IDs")
	timeVar(cmd, a, &from, "from", "beginning of the range, inclusive")
	timeVar(cmd, a, &to, "to", "end of the range, exclusive")
	formVar(cmd, &format, "format", "f", "output format (default the layout's own)")
	prefixVar(cmd, &prefix, "prefix of typed text")
	textVar(cmd, &column, "sql", "COLUMN", "print COLUMN BETWEEN lo AND hi for a column of this name")
	wordVar(cmd, &every, "partitions", "PERIOD", "print the partitions of a table: day, month or year", "day",
		"month", "year")
	parsedVar(cmd, &table, "table", "TABLE", "with --partitions: name of the partitioned table", sqlgen.ParseTable)
	jsonVar(cmd, &asJSON)
	require(cmd, "from", "to")
	cmd.MarkFlagsMutuallyExclusive("partitions", "sql", "json")
	cmd.MarkFlagsRequiredTogether("partitions", "table")
	return cmd
}
