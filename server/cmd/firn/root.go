package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// The groups of commands in the help, in order.
const (
	groupIDs    = "ids"
	groupLayout = "layouts"
	groupServer = "server"
	groupOther  = "other"
)

// newRoot makes the command tree. Every subcommand has its own file with a
// function that makes it.
func newRoot(a *app) *cobra.Command {
	root := parent(&cobra.Command{
		Use:   "firn",
		Short: "Make, read and explain unique, time-ordered IDs",
		Long: `Firn makes unique, time-ordered IDs, and inspects IDs of a dozen formats: Hazelcast,
Twitter, Discord, flake-idgen, Boundary, UUIDv7, ULID and more.

  firn next -n 3

The exit code is 0 on success, 1 if the answer is no (not an ID, duplicates found, a
sequencer that is detached, moved or fenced), 2 for invalid flags or arguments, and 3 for
other failures. It is 130 after an interrupt (ctrl-C) and 143 after SIGTERM; serve then
stops normally, with 0.`,
		Example: `  firn inspect 1212092628029698048
  firn range --layout twitter --from 2024-01-01 --to 2024-01-02 --sql id`,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
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
	add(groupIDs, newNext(a), newInspect(a), newCompose(a), newConvert(a), newRange(a), newSQL(a), newCheck(a))
	add(groupLayout, newLayout(a))
	add(groupServer, newServe(a), newAdopt(a), newHealth(a), newDoctor(a), newBench(a), newConfig(a))
	add(groupServer, newSequencer(a), newToken(a), newNode(a), newMember(a))
	add(groupOther, newMan(a), newVersion(a))
	root.AddCommand(newStores())
	root.SetHelpCommand(newHelp())
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	parent(completion) // cobra's own shows its help for an unknown shell
	a.noteBegin(root)
	return root
}

// noteBegin notes when a command begins: until then, cobra has found the command
// line invalid.
func (a *app) noteBegin(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.began = true
			return run(cmd, args)
		}
	}
	for _, c := range cmd.Commands() {
		a.noteBegin(c)
	}
}

// usage is a hint with the usage line of cmd.
func usage(cmd *cobra.Command) string {
	return "write " + strings.TrimSuffix(cmd.UseLine(), " [flags]") + "; --help shows more"
}

// parent completes a command that has only subcommands, and shows its help.
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

// newHelp replaces cobra's help command, which exits with 0 for an unknown
// topic.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Long:  "Help shows the help of a command, like firn COMMAND --help, or lists all commands.",
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := find(cmd.Root(), args)
			if err != nil {
				return err
			}
			of.InitDefaultHelpFlag() // so that the help shows it
			return of.Help()
		},
	}
}

// find returns the command with that path.
func find(root *cobra.Command, path []string) (*cobra.Command, error) {
	cmd, rest, err := root.Find(path)
	if err == nil && len(rest) > 0 {
		err = noCommand(cmd, rest[0])
	}
	return cmd, err
}

// noCommand returns the error for an unknown subcommand of cmd.
func noCommand(cmd *cobra.Command, name string) error {
	path := cmd.CommandPath()
	hint := "run " + path + " --help for its commands"
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + path + " " + strings.Join(near, " or "+path+" ") + "?"
	}
	return misuse(hint, "%s has no command %q", path, name)
}
