package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// An explanation is the reason why no test catches some mutants.
type explanation struct {
	mutants string         // the key of one or, after "~ ", an expression for the keys of several
	all     *regexp.Regexp // that expression, or nil
	reason  string
}

func (e *explanation) explains(key string) bool {
	return e.mutants == key || e.all != nil && e.all.MatchString(key)
}

// explanations are all explanations of a file.
type explanations []*explanation

// of returns the reason why a mutant survives, or "".
func (all explanations) of(key string) string {
	for _, e := range all {
		if e.explains(key) {
			return e.reason
		}
	}
	return ""
}

// readSurvivors reads the file that explains survivors: mutants, one per line,
// then indented lines with the reason for all of them. A line that begins with
// "~ " is a regular expression for whole keys and stands for every mutant that
// it matches. A reason that begins with "Open:" is not known yet. Lines that
// begin with # are comments.
func readSurvivors(file string) (explanations, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all explanations
	first := 0 // of those with the same reason
	known := make(map[string]bool)
	for i, line := range strings.Split(string(b), "\n") {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			if first == len(all) {
				return nil, fmt.Errorf("%s:%d: a reason without a mutant", file, i+1)
			}
			for _, e := range all[first:] {
				e.reason = strings.TrimSpace(e.reason + " " + text)
			}
		default:
			if first < len(all) && all[first].reason != "" {
				first = len(all)
			}
			if known[text] {
				return nil, fmt.Errorf("%s:%d: explained twice: %s", file, i+1, text)
			}
			e := &explanation{mutants: text}
			if expr, ok := strings.CutPrefix(text, "~ "); ok {
				if e.all, err = regexp.Compile("^(?:" + expr + ")$"); err != nil {
					return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
				}
			}
			all, known[text] = append(all, e), true
		}
	}
	for _, e := range all {
		if e.reason == "" {
			return nil, fmt.Errorf("%s: no reason: %s", file, e.mutants)
		}
	}
	return all, nil
}

// report prints the results. It fails if a survivor is not explained, if an
// explanation matches no mutant, and if a test catches a mutant that is
// explained.
func report(w io.Writer, file string, mutants []mutant, outcomes []outcome, explained explanations) error {
	count := make(map[string]int)
	var missing, needless, stale []string
	open := 0
	for _, out := range outcomes {
		count[out.Result]++
		reason := explained.of(out.Mutant)
		switch {
		case out.survived() && reason == "":
			missing = append(missing, fmt.Sprintf("%s (line %d, %s)", out.Mutant, out.Line, out.Result))
		case out.survived() && strings.HasPrefix(reason, "Open:"):
			open++
		case out.Result == "caught" && reason != "": // not if the time limit caught it: the machine may have been busy
			needless = append(needless, out.Mutant+" ("+out.By+")")
		}
	}
	for _, e := range explained {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return e.explains(m.Key) }) {
			stale = append(stale, e.mutants)
		}
	}
	for _, list := range []struct {
		what string
		keys []string
	}{{"survives", missing}, {"explained, but the code has no such mutant", stale}, {"explained, but caught", needless}} {
		slices.Sort(list.keys)
		for _, key := range list.keys {
			fmt.Fprintf(w, "mutate: %s: %s\n", list.what, key)
		}
	}
	survived := count["survived"] + count["unreached"]
	fmt.Fprintf(w, "report: mutants: %d of %d tested: %d caught, %d of them by the time limit; %d survived, of which %d explained and %d open\n",
		len(outcomes), len(mutants), len(outcomes)-survived, count["timeout"], survived, survived-len(missing)-open, open)
	if len(missing)+len(stale)+len(needless) > 0 {
		return errors.New("write a test for each mutant that survives, or explain in " + file + " why no test can tell it from the code; explain no other")
	}
	return nil
}
