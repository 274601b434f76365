package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/config"
)

// A fault is an error in the value of a flag of serve, whether that comes from
// the command line, a variable, or a line of a file.
type fault struct {
	flag  string
	value string // as given; "" if that does not help
	err   error
	hint  string // how to do better, or ""
	code  int    // exit code; 0 means exitMisuse

	in *config.Fault // set if the fault is in a line of a file, not in the value of a flag
}

type faults []fault

// add adds a fault.
func (f *faults) add(flag, value, hint, format string, args ...any) {
	*f = append(*f, fault{flag: flag, value: value, hint: hint, err: fmt.Errorf(format, args...)})
}

// exit adds an error that was worded for the command line.
func (f *faults) exit(flag, value string, err error) {
	one := fault{flag: flag, value: value, err: err}
	if exit, ok := errors.AsType[*exitError](err); ok {
		one.err, one.hint, one.code = exit.err, exit.hint, exit.code
	}
	text := one.err.Error()
	for _, prefix := range [...]string{fmt.Sprintf("--%s %q: ", flag, value), fmt.Sprintf("--%s %s: ", flag, value), "--" + flag + ": ", "firn: ", "grant: ", flag + " is " + value + ": "} {
		text = strings.TrimPrefix(text, prefix)
	}
	one.err = errors.New(text)
	*f = append(*f, one)
}

// file adds faults in lines of a file.
func (f *faults) file(all []*config.Fault) {
	for _, one := range all {
		*f = append(*f, fault{in: one, err: one})
	}
}

// An origin maps keys to the places of their values in a file or variable.
type origin map[string]source

// A source is a place where the value of a key was written.
type source struct {
	where, text string
	line        int // 0 if it is not in a file
}

// error returns all faults as one error, or nil: first those outside the file,
// then those of the file in the order of its lines.
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
				s.text = fmt.Sprintf("--%s %q: %s", one.flag, shown, s.text)
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
		hint = "run firn config print for all keys and their meanings"
	}
	if len(all) == 1 {
		return &exitError{code, errors.New(all[0].text), cmp.Or(all[0].hint, hint)}
	}
	lines := make([]string, len(all))
	for i, s := range all {
		lines[i] = s.text
		if s.hint != "" {
			lines[i] += " (" + s.hint + ")"
		}
	}
	return &exitError{code, errors.New(strings.Join(lines, "\n")), hint}
}

// keyOf returns the key of a flag, or "".
func keyOf(flag string) string {
	for _, k := range configKeys {
		if k.flag == flag {
			return k.key
		}
	}
	return ""
}

// wrongValue says why a flag did not accept a value.
func wrongValue(flag *pflag.Flag, err error) string {
	switch flag.Value.Type() {
	case "bool":
		return "it must be true or false"
	case "duration":
		return "it must be a duration such as 200ms or 60s"
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = invalid.Unwrap()
	}
	if parse, ok := errors.AsType[*firn.ParseError](err); ok {
		return parse.Reason
	}
	return strings.TrimPrefix(err.Error(), "firn: ")
}
