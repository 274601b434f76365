package main

import (
	"errors"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/sqlgen"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

func newSQL(a *app) *cobra.Command {
	layout, name := firn.Default(), "firn"
	takes := func(cmd *cobra.Command, args []string) error {
		if err := wantArgs("the database", 1, 1)(cmd, args); err != nil {
			return err
		}
		if !slices.Contains(cmd.ValidArgs, args[0]) {
			return misuse(usage(cmd), "unknown database %q", args[0])
		}
		return nil
	}
	cmd := command("sql", takes, func(_ *cobra.Command, args []string) error {
		if err := sqlgen.Write(a.stdout, args[0], name, layout); err != nil {
			return misuse("", "%w", textfmt.Plain(err))
		}
		return nil
	})
	cmd.ValidArgs = sqlgen.Databases()
	layoutVar(cmd, &layout, firn.ParseLayout, "layout of the IDs")
	parsedVar(cmd, &name, "name", "NAME", "beginning of the functions' names", func(s string) (string, error) {
		if !regexp.MustCompile("^[a-z_][a-z0-9_]{0,39}$").MatchString(s) {
			return "", errors.New("it must have 1 to 40 characters of a-z, 0-9 and _, and not begin with a digit")
		}
		return s, nil
	})
	return cmd
}
