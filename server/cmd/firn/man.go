package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newMan(a *app) *cobra.Command {
	var dir string
	cmd := command("man", nil, func(cmd *cobra.Command, args []string) error {
		of, err := find(cmd.Root(), args)
		switch {
		case err != nil:
			return err
		case dir == "":
			fmt.Fprint(a.stdout, pageOf(of))
			return nil
		case len(args) > 0:
			return misuse("--dir writes the pages of all commands", "either --dir or %q, not both", args[0])
		}
		return writePages(dir, cmd.Root())
	})
	textVar(cmd, &dir, "dir", "DIR", "write the pages of all commands to files in `DIR`")
	return cmd
}

// writePages writes the pages of a command and its subcommands to files in a
// directory.
func writePages(dir string, cmd *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(pageOf(cmd)), 0o644); err != nil {
		return err
	}
	for _, sub := range subcommands(cmd) {
		if err := writePages(dir, sub); err != nil {
			return err
		}
	}
	return nil
}

// pageName returns firn-node-list for firn node list.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// subcommands returns the subcommands that have a page.
func subcommands(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool {
		return c.Name() == "help" || !c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand()
	})
}

// pageOf returns the manual page of one command in the language of man(7): its
// help, as it is. It has no date, so that a version's page is always the same.
// The help is plain text, not Markdown, which cobra's own generators expect.
func pageOf(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(name, text string) {
		fmt.Fprintf(&b, ".SH %s\n.nf\n", name)
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			fmt.Fprintf(&b, "%s\n", roff(line))
		}
		b.WriteString(".fi\n")
	}
	cmd.InitDefaultHelpFlag()
	fmt.Fprintf(&b, ".TH \"%s\" 1 \"\" \"firn %s\" \"Firn\"\n", roff(strings.ToUpper(pageName(cmd))),
		roff(buildOf().Version))
	section("NAME", pageName(cmd)+" - "+cmd.Short)
	section("DESCRIPTION", cmp.Or(cmd.Long, cmd.Short+"."))
	section("USAGE", strings.TrimPrefix(cmd.UsageString(), "Usage:"))
	return b.String()
}

// roffSpecial replaces characters that have a meaning to man, or that it would
// replace by others, which a shell does not understand.
var roffSpecial = strings.NewReplacer(
	`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`, `"`, `\(dq`)

// roff escapes a line of plain text.
func roff(line string) string {
	line = roffSpecial.Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}
