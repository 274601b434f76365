package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/config"
)

// A fault is what is wrong with the value of a flag of serve, wherever that
// value comes from: the command line, a variable, or a line of a file.
type fault struct {
	flag  string
	value string // as it was given; "" where that does not help
	err   error
	hint  string // how to do better, or ""
	code  int    // how the program ends; 0 is exitMisuse

	in *config.Fault // where what is wrong is no value of a flag, but a line of a file
}

type faults []fault

// add notes a fault.
func (f *faults) add(flag, value, hint, format string, args ...any) {
	*f = append(*f, fault{flag: flag, value: value, hint: hint, err: fmt.Errorf(format, args...)})
}

// exit notes an error that was made for the command line alone.
func (f *faults) exit(flag, value string, err error) {
	one := fault{flag: flag, value: value, err: err}
	var exit *exitError
	if errors.As(err, &exit) {
		one.err, one.hint, one.code = exit.err, exit.hint, exit.code
	}
	text := one.err.Error()
	for _, prefix := range [...]string{fmt.Sprintf("--%s %q: ", flag, value), fmt.Sprintf("--%s %s: ", flag, value), "--" + flag + ": ", "firn: ", "grant: ", flag + " is " + value + ": "} {
		text = strings.TrimPrefix(text, prefix)
	}
	one.err = &inWords{text, one.err}
	*f = append(*f, one)
}

// file notes what is wrong in lines of a file.
func (f *faults) file(all []*config.Fault) {
	for _, one := range all {
		*f = append(*f, fault{in: one, err: one})
	}
}

// An origin says where the values of keys come from that a file or a variable
// has.
type origin map[string]source

// A source is a place where a value of a key was written.
type source struct {
	where, text string
	line        int // 0 where it is no line of a file
}

// error is all faults in one, nil where there is none: those of a file in the
// order of its lines, before them the others.
func (f faults) error(from origin) error {
	if len(f) == 0 {
		return nil
	}
	type said struct {
		text, hint string
		line       int
	}
	var all []said
	code := exitFailed
	for _, one := range f {
		if one.code != exitFailed {
			code = exitMisuse
		}
		s := said{text: one.err.Error(), hint: one.hint}
		if one.in != nil {
			s.line = one.in.Line
		} else {
			source, shown := from[keyOf(one.flag)], one.value
			switch {
			case source.where != "" && shown != "":
				s.text = fmt.Sprintf("%s: %s is %q: %s", source.where, keyOf(one.flag), shown, s.text)
			case source.where != "":
				s.text = fmt.Sprintf("%s: %s: %s", source.where, keyOf(one.flag), s.text)
			case shown != "":
				s.text = fmt.Sprintf("--%s %s: %s", one.flag, quoted(shown), s.text)
			default:
				s.text = fmt.Sprintf("--%s: %s", one.flag, s.text)
			}
			s.line = source.line
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(a.line, b.line) })
	all = slices.Compact(all)
	hint := ""
	if all[len(all)-1].line > 0 {
		hint = "firn config print lists all keys with their meanings"
	}
	if len(all) == 1 {
		return &exitError{code, &inWords{all[0].text, f[0].err}, cmp.Or(all[0].hint, hint)}
	}
	lines := make([]string, len(all))
	for i, s := range all {
		lines[i] = s.text
		if s.hint != "" {
			lines[i] += " (" + s.hint + ")"
		}
	}
	errs := make([]error, len(f))
	for i, one := range f {
		errs[i] = one.err
	}
	return &exitError{code, &inWords{strings.Join(lines, "\n"), errors.Join(errs...)}, hint}
}

// quoted is a value in quotes, unless it is a word.
func quoted(value string) string {
	if strings.ContainsFunc(value, func(r rune) bool {
		return r != '.' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return strconv.Quote(value)
	}
	return value
}

// keyOf is the key that stands for a flag, or "" if none does.
func keyOf(flag string) string {
	for _, k := range configKeys {
		if k.flag == flag {
			return k.key
		}
	}
	return ""
}

// wrongValue says why a flag did not take a value.
func wrongValue(flag *pflag.Flag, err error) string {
	switch flag.Value.Type() {
	case "bool":
		return "it is true or false"
	case "duration":
		return "it is a duration such as 200ms or 60s"
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = invalid.Unwrap()
	}
	var parse *firn.ParseError
	if errors.As(err, &parse) {
		return parse.Reason
	}
	return strings.TrimPrefix(err.Error(), "firn: ")
}

// An inWords is an error in other words.
type inWords struct {
	text string
	err  error
}

func (e *inWords) Error() string { return e.text }

func (e *inWords) Unwrap() error { return e.err }
