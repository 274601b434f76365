package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// The groups of the help, in order.
const (
	groupIDs    = "ids"
	groupLayout = "layouts"
	groupServer = "server"
	groupOther  = "other"
)

// newRoot makes the command tree. Every subcommand has a file of its own with
// a function that makes it.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "firn",
		Short: "Make, read and explain unique, time-ordered IDs",
		Long: `Firn makes unique, time-ordered IDs, and reads and explains those of a dozen
formats: Hazelcast, Twitter, Discord, flake-idgen, Boundary, UUIDv7, ULID and more.`,
		Example: `  firn next -n 3
  firn inspect 1212092628029698048
  firn range --layout twitter --from 2024-01-01 --to 2024-01-02 --sql id`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := "firn help lists the commands"
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "did you mean firn " + strings.Join(near, " or firn ") + "?"
			}
			return misuse(hint, "there is no command %q", args[0])
		},
		RunE:                       func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: groupIDs, Title: "IDs:"},
		&cobra.Group{ID: groupLayout, Title: "Layouts:"},
		&cobra.Group{ID: groupServer, Title: "Server:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupIDs,
		newNext(a),
		newInspect(a),
		newCompose(a),
		newConvert(a),
		newRange(a),
		newCheck(a),
	)
	add(groupLayout, newLayout(a))
	add(groupServer, newServe(a))
	add(groupOther, newVersion(a))
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	return root
}
