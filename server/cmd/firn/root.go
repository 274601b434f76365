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
	root := parent(&cobra.Command{
		Use:   "firn",
		Short: "Make, read and explain unique, time-ordered IDs",
		Long: `Firn makes unique, time-ordered IDs, and reads and explains those of a dozen
formats: Hazelcast, Twitter, Discord, flake-idgen, Boundary, UUIDv7, ULID and more.

The exit code is 0 when all went well, 1 when the answer is no (not an ID,
duplicates found), 2 for flags or arguments that mean nothing, and 3 for what
could not be done. An interrupt (ctrl-C) ends it with 130; serve finishes then,
with 0.`,
		Example: `  firn next -n 3
  firn inspect 1212092628029698048
  firn range --layout twitter --from 2024-01-01 --to 2024-01-02 --sql id`,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetIn(a.stdin)
	a.help = helpOutput{w: a.stdout}
	root.SetOut(&a.help)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.Version = buildOf().text()
	root.SetVersionTemplate("{{.Version}}\n")
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
	add(groupServer, newServe(a), newHealth(a), newDoctor(a), newBench(a), newConfig(a), newSequencer(a), newToken(a), newNode(a), newMember(a))
	add(groupOther, newMan(a), newVersion(a))
	root.SetHelpCommand(newHelp())
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			// cobra's own shows its help for a shell that it does not know.
			parent(c)
			for _, shell := range c.Commands() {
				shell.Args = noArgs
			}
		}
	}
	return root
}

// parent completes a command that only has others, and shows its help.
func parent(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return noCommand(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(commands...)
	return cmd
}

// newHelp is cobra's help command, which ends well when there is no such topic.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Long:  "Help shows the help of a command, as firn COMMAND --help does, or lists all.",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) (names []string, _ cobra.ShellCompDirective) {
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, c := range of.Commands() {
				if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), prefix) {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err != nil {
				return misuse("firn help lists the commands", "%w", err)
			}
			if len(rest) > 0 {
				return noCommand(of, rest[0])
			}
			of.InitDefaultHelpFlag() // so that the help shows it
			return of.Help()
		},
	}
}

// noCommand is the error for a subcommand that cmd does not have.
func noCommand(cmd *cobra.Command, name string) error {
	path := cmd.CommandPath()
	hint := "firn help lists the commands"
	if cmd.HasParent() {
		hint = "firn help " + cmd.Name() + " says what there is"
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + path + " " + strings.Join(near, " or "+path+" ") + "?"
	}
	if !cmd.HasParent() {
		return misuse(hint, "there is no command %q", name)
	}
	return misuse(hint, "%s has no command %q", path, name)
}
