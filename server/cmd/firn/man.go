package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man [COMMAND]",
		Short: "Print a manual page",
		Long: `Man prints the manual page of a command, or of firn itself, for the program man.

  firn man serve | man -l -

The page has the same contents as --help. Firn's packages install the pages.`,
		Example: `  firn man serve | man -l -
  firn man --dir ~/.local/share/man/man1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return misuse("run firn help for all commands", "%w", err)
			case len(rest) > 0:
				return noCommand(of, rest[0])
			case dir == "":
				return writePage(a.stdout, of)
			case len(args) > 0:
				return misuse("--dir writes the pages of all commands", "either --dir or %q, not both", args[0])
			}
			return writePages(dir, cmd.Root())
		},
	}
	cmd.Flags().Var(&value[string]{&dir, notEmpty, nil, "DIR"}, "dir", "write the pages of all commands to files in `DIR`")
	return cmd
}

// writePages writes the pages of a command and its subcommands to files in a
// directory.
func writePages(dir string, cmd *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return failed("", "%w", err)
	}
	var page strings.Builder
	if err := writePage(&page, cmd); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(page.String()), 0o644); err != nil {
		return failed("", "%w", err)
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
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() || c.Name() == "help" })
}

// writePage writes the manual page of one command in the language of man(7). It
// has no date, so that a version's page is always the same. The help is plain
// text, not Markdown, which cobra's own generators expect.
func writePage(w io.Writer, cmd *cobra.Command) error {
	p := &page{}
	cmd.InitDefaultHelpFlag()
	p.line(`.TH "%s" 1 "" "firn %s" "Firn"`, roff(strings.ToUpper(pageName(cmd))), roff(buildOf().Version))
	p.line(".SH NAME")
	p.line(`%s \- %s`, roff(pageName(cmd)), roff(cmd.Short))
	p.line(".SH SYNOPSIS")
	p.line(`\fB%s\fR`, roff(cmd.UseLine()))
	p.line(".SH DESCRIPTION")
	p.text(cmp.Or(cmd.Long, cmd.Short+"."))
	subs := subcommands(cmd)
	if len(subs) > 0 {
		p.line(".SH COMMANDS")
		for _, sub := range subs {
			p.line(".TP\n\\fB%s\\fR(1)", roff(pageName(sub)))
			p.line("%s", roff(sub.Short))
		}
	}
	if cmd.HasAvailableFlags() {
		p.line(".SH OPTIONS")
		cmd.Flags().VisitAll(p.flag)
	}
	if cmd.Example != "" {
		p.line(".SH EXAMPLES")
		p.text(cmd.Example)
	}
	if cmd.HasParent() {
		p.line(".SH SEE ALSO")
		p.line(`\fB%s\fR(1)`, roff(pageName(cmd.Parent())))
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// A page is a manual page in progress.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text writes paragraphs. Indented lines stay unchanged.
func (p *page) text(text string) {
	verbatim := false
	set := func(to bool) {
		switch {
		case to && !verbatim:
			p.line(".PP\n.RS 4\n.nf")
		case !to && verbatim:
			p.line(".fi\n.RE")
		}
		verbatim = to
	}
	blank := true
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			blank = true
			continue
		}
		was := verbatim
		set(strings.HasPrefix(line, "  "))
		switch {
		case blank && verbatim && was:
			p.line("")
		case blank && !verbatim, was && !verbatim:
			p.line(".PP")
		}
		blank = false
		p.line("%s", roff(strings.TrimPrefix(line, "  ")))
	}
	set(false)
}

// flag writes what --help shows of a flag.
func (p *page) flag(f *pflag.Flag) {
	if f.Hidden {
		return
	}
	kind, usage := pflag.UnquoteUsage(f)
	name := `\fB\-\-` + roff(f.Name) + `\fR`
	if f.Shorthand != "" {
		name = `\fB\-` + roff(f.Shorthand) + `\fR, ` + name
	}
	if kind != "" {
		name += ` \fI` + roff(kind) + `\fR`
	}
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		usage += " (default " + f.DefValue + ")"
	}
	p.line(".TP\n%s", name)
	p.line("%s", roff(usage))
}

// roffSpecial replaces characters that have a meaning to man, or that it would
// replace by others, which a shell does not understand.
var roffSpecial = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`, `"`, `\(dq`)

// roff escapes a line of plain text.
func roff(line string) string {
	line = roffSpecial.Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}
