package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// A fault is an error in the value of a flag of serve, whether that comes from
// the command line, a variable, or a line of a file.
type fault struct {
	flag  string // "" if err has the line of a template
	value string // as given; "" if that does not help
	err   error
	hint  string // how to do better, or ""
	code  int    // exit code; 0 means exitMisuse
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
	for _, prefix := range [...]string{fmt.Sprintf("--%s %q: ", flag, value), fmt.Sprintf("--%s %s: ", flag, value), "--" + flag + ": "} {
		text = strings.TrimPrefix(text, prefix)
	}
	text = textfmt.Message(errors.New(text))
	one.err = errors.New(strings.TrimPrefix(text, flag+" is "+value+": "))
	*f = append(*f, one)
}

// An origin maps keys to the places of their values in a file or variable.
type origin map[string]source

// A source is a place where the value of a key was written.
type source struct {
	where, text string
	line        int // 0 if it is not in a file
}

// error returns all faults as one error, or nil, in the order of the file.
func (f faults) error(from origin) error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b fault) int { return cmp.Compare(from[keyOf(a.flag)].line, from[keyOf(b.flag)].line) })
	code, hint := exitFailed, ""
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.text(from)
		if one.code != exitFailed {
			code = exitMisuse
		}
		if from[keyOf(one.flag)].line != 0 {
			hint = configHint
		}
		if one.hint != "" && len(f) > 1 {
			lines[i] += " (" + one.hint + ")"
		}
	}
	if len(f) == 1 {
		hint = cmp.Or(f[0].hint, hint)
	}
	return &exitError{code, errors.New(strings.Join(lines, "\n")), hint}
}

// text returns the fault with the place of the value.
func (f fault) text(from origin) string {
	key := keyOf(f.flag)
	switch source := from[key]; {
	case f.flag == "":
		return f.err.Error()
	case source.where != "" && f.value != "":
		return fmt.Sprintf("%s: %s is %q: %s", source.where, key, f.value, f.err)
	case source.where != "":
		return fmt.Sprintf("%s: %s: %s", source.where, key, f.err)
	case f.value != "":
		return fmt.Sprintf("--%s %q: %s", f.flag, f.value, f.err)
	}
	return fmt.Sprintf("--%s: %s", f.flag, f.err)
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
	return textfmt.Message(err)
}
