package main

import (
	"cmp"
	"embed"
	"strings"

	"github.com/spf13/cobra"
)

// groupBasics has the commands that a newcomer needs, and groupMore the rest.
const groupBasics, groupMore = "basics", "more"

// newRoot makes the command tree. Every subcommand has its own file with a
// function that makes it.
func newRoot(a *app) *cobra.Command {
	root := parent(command("", nil, nil))
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	// Not cobra's Version, whose text is set by a template: text/template alone
	// makes the program a fifth larger.
	root.Flags().BoolP("version", "v", false, "version for firn")
	help := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if version, _ := cmd.Flags().GetBool("version"); version {
			return newVersion(a).RunE(cmd, nil)
		}
		return help(cmd, args)
	}
	root.AddGroup(&cobra.Group{ID: groupBasics, Title: "Start with:"}, &cobra.Group{ID: groupMore, Title: "More:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupBasics, newNext(a), newInspect(a), newServe(a), newSequencer(a), newLayout(a))
	add(groupMore, newCompose(a), newConvert(a), newRange(a), newSQL(a), newCheck(a), newWho(a), newAdopt(a), newHealth(a),
		newDoctor(a),
		newBench(a), newConfig(a), newToken(a), newNode(a), newMember(a), newMan(a), newVersion(a))
	root.AddCommand(command("stores", nil, nil)) // a topic of the help
	root.SetHelpCommand(newHelp())
	root.SetHelpCommandGroupID(groupMore)
	root.SetCompletionCommandGroupID(groupMore)
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	parent(completion) // cobra's own shows its help for an unknown shell
	return root
}

//go:embed help/*.txt
var helpFiles embed.FS

// command returns the command at a path, such as "sequencer create", with its
// section of help/sequencer.txt: its usage, what it does in a line and in full,
// and examples.
func command(path string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	cmd := &cobra.Command{Args: args}
	if run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return asFailure(run(cmd, args)) }
	}
	file, _, _ := strings.Cut(cmp.Or(path, "firn"), " ")
	text := helpSection(file, strings.TrimSpace("firn "+path))
	for _, part := range []string{"{{nodes}}", "{{columns}}", "{{veil}}"} {
		if strings.Contains(text, part) {
			_, shared, _ := strings.Cut(helpSection("parts", part), "\n")
			text = strings.Replace(text, part, strings.TrimSpace(shared), 1)
		}
	}
	usage, text, _ := strings.Cut(text, "\n")
	cmd.Short, text, _ = strings.Cut(text, "\n")
	long, examples, _ := strings.Cut(text, "\nExamples:\n")
	parents := "firn " + path[:strings.LastIndex(path, " ")+1]
	cmd.Use, cmd.Long = strings.TrimPrefix(usage, parents), strings.TrimSpace(long)
	cmd.Example = strings.TrimRight(examples, "\n")
	return cmd
}

// helpSection returns the first section of a file of help with that title, of
// which the first line is the title and possibly more.
func helpSection(file, title string) string {
	text, err := helpFiles.ReadFile("help/" + file + ".txt")
	if err != nil {
		panic(err)
	}
	for section := range strings.SplitSeq("\n"+string(text), "\n# ") {
		if strings.HasPrefix(section, title) {
			return section
		}
	}
	panic("no help for " + title)
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
	return command("help", nil, func(cmd *cobra.Command, args []string) error {
		of, err := find(cmd.Root(), args)
		if err != nil {
			return err
		}
		of.InitDefaultHelpFlag() // so that the help shows it
		return of.Help()
	})
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
