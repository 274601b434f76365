package main

import (
	"errors"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/sqlgen"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

func newSQL(a *app) *cobra.Command {
	layout, name := firn.Default(), "firn"
	cmd := &cobra.Command{
		Use:   "sql {postgres|mysql|sqlite|duckdb} [--layout LAYOUT]",
		Short: "Print SQL functions that read IDs in a database",
		Long: `Sql prints functions for postgres or mysql, and macros for duckdb, that return the time, the node
ID and the sequence of an ID, the first and the last ID of a time range, and typed text. For
postgres there are also functions that veil and unveil IDs. They use the extension pgcrypto.

  firn sql postgres --layout default | psql

For sqlite, which has no stored functions, it prints generated columns and conditions.
The functions make no IDs: take those from Firn.`,
		Example: `  firn sql postgres | psql orders
  firn sql mysql --layout twitter --name legacy
  firn sql sqlite --layout js53`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: sqlgen.Databases(),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := sqlgen.Write(a.stdout, args[0], name, layout); err != nil {
				return misuse("", "%w", textfmt.Plain(err))
			}
			return nil
		},
	}
	layoutVar(cmd, &layout, firn.ParseLayout, "layout of the IDs")
	parse := func(s string) (string, error) {
		if !regexp.MustCompile("^[a-z_][a-z0-9_]{0,39}$").MatchString(s) {
			return "", errors.New("it must have 1 to 40 characters of a-z, 0-9 and _, and not begin with a digit")
		}
		return s, nil
	}
	cmd.Flags().Var(&value[string]{&name, parse, asIs, "NAME"}, "name", "beginning of the functions' names")
	return cmd
}
