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

// faults are errors in the values of flags of serve, whether these come from
// the command line, a variable, or a line of a file. The line of a template is
// in the error, which has no flag then.
type faults []*exitError

// add adds an error in the value of a flag.
func (f *faults) add(flag, value, hint, format string, args ...any) {
	*f = append(*f, wrongFlag(flag, value, hint, format, args...))
}

// addError adds an error about the value of a flag, with its code and hint, if
// it has them.
func (f *faults) addError(flag, value string, err error) {
	e := &exitError{code: exitMisuse, err: err}
	if exit, ok := errors.AsType[*exitError](err); ok {
		e.code, e.err, e.hint = exit.code, exit.err, exit.hint
	}
	e.flag, e.value = flag, value
	*f = append(*f, e)
}

// An origin maps keys to the places of their values in a file or variable.
type origin map[string]writtenAt

// A writtenAt is a place where the value of a key was written.
type writtenAt struct {
	where, text string
	line        int // 0 if it is not in a file
}

// error returns all faults as one error, or nil, in the order of the file.
func (f faults) error(from origin) error {
	if len(f) == 0 {
		return nil
	}
	line := func(e *exitError) int { return from[keyOf(e.flag)].line }
	slices.SortStableFunc(f, func(a, b *exitError) int { return cmp.Compare(line(a), line(b)) })
	code, hint := exitFailed, ""
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.at(from)
		if one.code != exitFailed {
			code = exitMisuse
		}
		if line(one) != 0 {
			hint = configHint
		}
		if one.hint != "" && len(f) > 1 {
			lines[i] += " (" + one.hint + ")"
		}
	}
	if len(f) == 1 {
		hint = cmp.Or(f[0].hint, hint)
	}
	return &exitError{code: code, err: errors.New(strings.Join(lines, "\n")), hint: hint}
}

// at returns the error with the place of the value, if a file or a variable has
// it.
func (e *exitError) at(from origin) string {
	key := keyOf(e.flag)
	switch place := from[key]; {
	case place.where == "":
		return e.Error()
	case e.value != "":
		return fmt.Sprintf("%s: %s is %q: %s", place.where, key, e.value, textfmt.Message(e.err))
	default:
		return fmt.Sprintf("%s: %s: %s", place.where, key, textfmt.Message(e.err))
	}
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
	switch kind := flag.Value.Type(); {
	case kind == "bool":
		return "it must be true or false"
	case kind == "duration" && !errors.Is(err, errNegative):
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
