package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/layouts"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// A value is a flag whose text is parsed by parse.
type value[T any] struct {
	target *T
	parse  func(string) (T, error)
	show   func(T) string // formats the default; nil: no default to show
	kind   string
}

func (f *value[T]) String() string {
	if f.target == nil || f.show == nil {
		return ""
	}
	return f.show(*f.target)
}

func (f *value[T]) Set(s string) error {
	v, err := f.parse(s)
	if err != nil {
		return err
	}
	*f.target = v
	return nil
}

func (f *value[T]) Type() string { return f.kind }

// flagError says briefly what is wrong with the flags.
func flagError(cmd *cobra.Command, err error) error {
	var (
		invalid *pflag.InvalidValueError
		unknown *pflag.NotExistError
	)
	switch {
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		hint := cmd.CommandPath() + " --help shows the usage"
		switch flag.Name {
		case "layout":
			hint = layoutHint
		case "from", "to", "format", "time":
			hint = "" // the error lists the valid values
		}
		return misuse(hint, "--%s %q: %s", flag.Name, invalid.GetValue(), wrongValue(flag, err))
	case errors.As(err, &unknown):
		if n, err := strconv.ParseInt("-"+unknown.GetSpecifiedShortnames(), 10, 64); err == nil {
			return misuse("languages with signed integers show IDs from 2^63 on as negative numbers: print them as "+
				"unsigned numbers or as text",
				"IDs are unsigned, but %d has a sign; the ID with the same 64 bits is %d", n, uint64(n))
		}
	}
	return misuse(cmd.CommandPath()+" --help lists the flags", "%w", err)
}

// layoutHint says how to correct an invalid layout.
const layoutHint = "run firn layout for all presets"

// parsedVar adds a flag for text that parse accepts.
func parsedVar(cmd *cobra.Command, text *string, name, kind, usage string, parse func(string) (string, error)) {
	show := func(s string) string { return s }
	cmd.Flags().Var(&value[string]{text, parse, show, kind}, name, usage)
}

// textVar adds a flag for text. It rejects an empty value: most likely a
// variable of the shell is not set. Ignoring the flag would use another node's
// IDs, or worse.
func textVar(cmd *cobra.Command, text *string, name, kind, usage string) {
	parsedVar(cmd, text, name, kind, usage, func(s string) (string, error) {
		if s == "" {
			return "", errors.New("it is empty: check that the variable is set, or leave out the flag for its default")
		}
		return s, nil
	})
}

// wordVar adds a flag that takes one of some words.
func wordVar(cmd *cobra.Command, word *string, name, kind, usage string, words ...string) {
	last := len(words) - 1
	parsedVar(cmd, word, name, kind, usage, func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", errors.New("it must be " + strings.Join(words[:last], ", ") + " or " + words[last])
		}
		return s, nil
	})
	complete(cmd, name, wordsOf(words...))
}

// parseMadeLayout parses a layout whose IDs can be made, and not only read.
func parseMadeLayout(s string) (firn.Layout, error) {
	l, err := firn.ParseLayout(s)
	if err == nil && l.ReadOnly() {
		err = l.CheckGenerator()
	}
	return l, err
}

// parseGeneratedLayout parses a layout of a generator.
func parseGeneratedLayout(s string) (firn.Layout, error) {
	l, err := firn.ParseLayout(s)
	if err == nil {
		err = l.CheckGenerator()
	}
	return l, err
}

// layoutVar adds --layout. The zero layout means that there is no default.
func layoutVar(cmd *cobra.Command, l *firn.Layout, parse func(string) (firn.Layout, error), usage string) {
	show := func(l firn.Layout) string {
		if l.IsZero() {
			return ""
		}
		return strconv.Quote(l.String())
	}
	cmd.Flags().VarP(&value[firn.Layout]{l, parse, show, "LAYOUT"}, "layout", "l", usage)
	complete(cmd, "layout", wordsOf(layouts.PresetNames()...))
}

// formVar adds a flag for the form of IDs. Changed reports whether it was
// given.
func formVar(cmd *cobra.Command, f *form.Form, name, short, usage string) {
	cmd.Flags().VarP(&value[form.Form]{f, form.Parse, nil, "FORMAT"}, name, short, usage)
	complete(cmd, name, wordsOf(formatNames...))
}

// prefixVar adds --prefix.
func prefixVar(cmd *cobra.Command, prefix *string, usage string) {
	parsedVar(cmd, prefix, "prefix", "PREFIX", usage, form.ParsePrefix)
}

// usePrefix completes the form of a flag with --prefix.
func usePrefix(f *form.Form, flag, prefix string) error {
	switch {
	case f.IsTyped() && prefix == "":
		use := map[string]string{"to": "convert --to", "format": "range --format"}[flag]
		return misuse("firn "+use+" typed --prefix order", "--%s typed needs --prefix", flag)
	case !f.IsTyped() && prefix != "":
		return misuse("", "--prefix needs --%s typed", flag)
	}
	return f.SetPrefix(prefix)
}

// outputForm completes the form of --format for one ID of a layout: the
// layout's own by default, and with --prefix.
func outputForm(cmd *cobra.Command, f *form.Form, l firn.Layout, prefix string) error {
	if !cmd.Flags().Changed("format") {
		*f = form.Of(l.Format())
	}
	if err := f.CheckBits(l.Bits()); err != nil {
		return misuse("", "--format %s: %w", f, textfmt.Plain(err))
	}
	if f.IsVeiled() {
		return misuse("use firn convert --to veiled", "--format veiled: %s does not write veiled IDs", cmd.Name())
	}
	return usePrefix(f, "format", prefix)
}

// checkRaw rejects raw output that JSON cannot contain or a terminal cannot
// show.
func (a *app) checkRaw(flag string, f *form.Form, asJSON bool) error {
	switch {
	case f.Is(firn.Raw) && asJSON:
		return misuse("", "--%s raw writes bytes, which JSON cannot contain", flag)
	case f.Is(firn.Raw) && a.style().terminal:
		return misuse("send them to a file or a pipe, or use --"+flag+" hex",
			"--%s raw writes bytes that a terminal cannot show", flag)
	}
	return nil
}

// fromVar adds --from.
func fromVar(cmd *cobra.Command, f *form.Form) {
	show := func(f form.Form) string { return f.String() }
	cmd.Flags().Var(&value[form.Form]{f, form.ParseInput, show, "FORMAT"}, "from", "format of the input")
	complete(cmd, "from", wordsOf(append([]string{"auto"}, formatNames...)...))
}

// bitsVar adds --bits, the size of IDs; 0 means auto.
func bitsVar(cmd *cobra.Command, bits *int, usage string) {
	sizes := map[string]int{"auto": 0, "64": 64, "128": 128}
	parse := func(s string) (int, error) {
		n, ok := sizes[s]
		if !ok {
			return 0, errors.New("it must be auto, 64 or 128")
		}
		return n, nil
	}
	cmd.Flags().Var(&value[int]{bits, parse, func(int) string { return "auto" }, "SIZE"}, "bits", usage)
	complete(cmd, "bits", wordsOf("auto", "64", "128"))
}

// jsonVar adds --json.
func jsonVar(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}

// timeVar adds a flag for a point in time.
func timeVar(cmd *cobra.Command, a *app, t *time.Time, name, usage string) {
	parse := func(s string) (time.Time, error) { return textfmt.ParseTime(s, a.started) }
	cmd.Flags().Var(&value[time.Time]{t, parse, nil, "TIME"}, name, usage)
}

// numberVar adds a flag for a decimal integer: pflag's own reads 010 as 8.
func numberVar[T int | uint64](cmd *cobra.Command, n *T, name, short, usage string) {
	parse := func(s string) (T, error) {
		v, err := textfmt.ParseNumber(s)
		return T(v), err
	}
	show := func(n T) string { return strconv.FormatUint(uint64(n), 10) }
	cmd.Flags().VarP(&value[T]{n, parse, show, "N"}, name, short, usage)
}

var errNegative = errors.New("it must be at least 0s")

// durationVar adds a flag for a duration of 0 or more, which is nil if it is
// not given.
func durationVar(cmd *cobra.Command, d **time.Duration, name, usage string) {
	parse := func(s string) (*time.Duration, error) {
		v, err := time.ParseDuration(s)
		if v < 0 {
			err = errNegative
		}
		return &v, err
	}
	cmd.Flags().Var(&value[*time.Duration]{d, parse, nil, "duration"}, name, usage)
}

var formatNames = []string{
	"dec", "hex", "bin", "base32", "base36", "base58", "base62", "flake62", "uuid", "raw", "typed", "veiled",
}

// complete lets the shell complete a flag's value.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

// wordsOf offers words, and no files.
func wordsOf(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// require makes flags mandatory. Call it when cmd has its Args.
func require(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil { // for the completion
			panic(err)
		}
	}
	positional := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := positional(cmd, args); err != nil {
			return err
		}
		for _, name := range flags {
			if !cmd.Flags().Changed(name) {
				return misuse(usage(cmd), "--%s is not given", name)
			}
		}
		return nil
	}
}

// wantArgs allows at least and at most so many arguments, of which the first is
// what, such as "FILE". most is -1 for any number.
func wantArgs(what string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return misuse(usage(cmd), "%s is not given", what)
		case most == 1 && len(args) == 1 && args[0] == "":
			return misuse("check that the variable is set", "%s is \"\"", what)
		case most >= 0 && len(args) > most:
			return misuse(usage(cmd), "%s takes only %s, but also got %q", cmd.CommandPath(), what, args[most])
		}
		return nil
	}
}

// noArgs allows no arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse(usage(cmd), "%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// nodeUsage describes the values that readNode accepts.
const nodeUsage = "a number, datacenter=9,worker=7, env:NAME, hostname or if:NAME"

// nodeVar adds --node.
func nodeVar(cmd *cobra.Command, node *string, usage string) {
	textVar(cmd, node, "node", "NODE", usage+": "+nodeUsage)
}

// readNode returns the node ID that spec names, for the layout l.
func readNode(l firn.Layout, spec string, allowLocal bool) (uint64, error) {
	kind, name, _ := strings.Cut(spec, ":")
	var node uint64
	var err error
	switch kind {
	case "env":
		if name == "" {
			return 0, wrongFlag("node", spec, "write env:NODE_ID for the environment variable NODE_ID",
				"the name is missing")
		}
		node, err = firn.NodeFromEnv(name)
	case "hostname":
		node, err = firn.NodeFromHostname(name)
	case "if":
		node, err = firn.NodeFromInterface(name, allowLocal)
		if err == nil || allowLocal {
			break
		}
		if _, e := firn.NodeFromInterface(name, true); e == nil {
			return 0, wrongFlag("node", spec,
				"use --allow-local-mac to accept this address, and make sure that no other host has it", "%w", err)
		}
	default:
		if node, err = l.ParseNode(spec); err != nil {
			return 0, wrongFlag("node", spec, nodeHint(l, err), "%w", textfmt.Plain(err))
		}
		return node, nil
	}
	if err != nil {
		return 0, wrongFlag("node", spec, "", "%w", err)
	}
	if _, err := l.ParseNode(strconv.FormatUint(node, 10)); err != nil {
		hint := fmt.Sprintf("layout %s has nodes 0 to %d", l, l.MaxNode())
		if kind == "if" {
			hint = fmt.Sprintf("a MAC address needs a layout with 48 node bits, such as boundary: %s has %d", l,
				l.NodeBits())
		}
		return 0, wrongFlag("node", spec, hint, "it is %d: %w", node, textfmt.Plain(err))
	}
	return node, nil
}

// nodeHint says which nodes a layout has.
func nodeHint(l firn.Layout, err error) string {
	var r *firn.RangeError
	switch {
	case !errors.As(err, &r):
		return "NODE is " + nodeUsage
	case l.NodeBits() == 0:
		return fmt.Sprintf("layout %s has no node bits: leave out --node", l)
	}
	return fmt.Sprintf("layout %s has %d node bits; firn layout --plan finds other layouts", l, l.NodeBits())
}
